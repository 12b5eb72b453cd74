/** What is said for a while: what keys came to, and sessions that fail while somebody watches. */
import type { SessionId } from '../../core/group.ts';
import type { GroupState } from '../../core/state.ts';
import type { World } from '../../system/world.ts';
import { type Notice, reasoned } from '../../tui/dashboard/view.ts';
import { plural } from '../../view/format.ts';
import { titleOf } from '../../view/wording.ts';

const shownMs = 8_000;
/** More at once are told by their number. */
const toldOneByOneMax = 2;

interface Toast {
  readonly notice: Notice;
  cancel(): void;
}

export class Toasts {
  readonly #world: World;
  readonly #onChange: () => void;
  /** By what they are about: the next one about the same takes its place. */
  readonly #shown = new Map<string, Toast>();
  #failed: ReadonlySet<SessionId>;

  /** What has failed before is no news. */
  constructor(world: World, { failed }: GroupState, onChange: () => void) {
    this.#world = world;
    this.#failed = new Set(failed);
    this.#onChange = onChange;
  }

  put(about: string, notice: Notice): void {
    this.#shown.get(about)?.cancel();
    this.#shown.delete(about);
    // Not by the time of day, which may be set back.
    const cancel = this.#world.clock.after(shownMs, () => {
      this.#shown.delete(about);
      this.#onChange();
    });
    this.#shown.set(about, { notice, cancel });
  }

  /** All that are to be seen now, the newest last; tells of what has failed since it was asked last. */
  of(state: GroupState): readonly Notice[] {
    const fresh = [...state.failed].filter((id) => !this.#failed.has(id));
    this.#failed = new Set(state.failed);
    if (fresh.length > toldOneByOneMax)
      this.put('failed', { text: `${plural(fresh.length, 'session')} failed.`, tone: 'bad' });
    else for (const id of fresh) this.put(id, failureOf(state, id));
    return [...this.#shown.values()].map(({ notice }) => notice);
  }

  close(): void {
    for (const { cancel } of this.#shown.values()) cancel();
    this.#shown.clear();
  }
}

function failureOf(state: GroupState, id: SessionId): Notice {
  const session = state.sessions.get(id)?.state;
  const why = session?.status === 'failed' ? ` ${reasoned(session.failure.reason, session.failure.message)}` : '';
  return { text: `${titleOf(state, id)} failed.${why}`, tone: 'bad' };
}
