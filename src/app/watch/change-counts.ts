/** How many lines sessions have changed: counted by git one after the other, now and then, and once after their end. */
import type { SessionId, Workspace } from '../../core/group.ts';
import type { GroupState } from '../../core/state.ts';
import type { DiffStat } from '../../git/diff.ts';
import type { AppContext } from '../app-context.ts';
import { diffOf } from '../delivery/work-diff.ts';
import type { GroupReference } from '../resolve.ts';

/** A round begins so long after the one before has ended, milliseconds. */
const pauseMs = 5_000;

export class ChangeCounts {
  readonly counts = new Map<SessionId, DiffStat>();
  readonly #place: AppContext;
  readonly #group: GroupReference;
  #isCounting = false;
  #nextAtMs = 0;
  /** Undefined before the first round, which counts all that were started. */
  #counted: ReadonlySet<SessionId> | undefined;

  constructor(place: AppContext, group: GroupReference) {
    this.#place = place;
    this.#group = group;
  }

  /** Starts a round if it is time for one; `onChange` is called when it ends with other counts. */
  refresh(state: GroupState, workspaces: ReadonlyMap<SessionId, Workspace>, onChange: () => void): void {
    const { clock } = this.#place.world;
    const isOver = state.running.size === 0 && this.#counted?.size === 0;
    if (this.#isCounting || isOver || clock.now() < this.#nextAtMs) return;
    this.#isCounting = true;
    this.#count(state, workspaces)
      .then((isChanged) => isChanged && onChange())
      // The next round may succeed.
      .catch(() => {})
      .finally(() => {
        this.#isCounting = false;
        this.#nextAtMs = clock.now() + pauseMs;
      });
  }

  async #count(state: GroupState, workspaces: ReadonlyMap<SessionId, Workspace>): Promise<boolean> {
    let isChanged = false;
    const started = [...state.sessions.values()].filter(({ attempts }) => attempts > 0);
    const ended = this.#counted ?? started.map(({ definition }) => definition.id);
    this.#counted = new Set(state.running);
    for (const sessionId of new Set([...state.running, ...ended])) {
      const record = state.sessions.get(sessionId);
      if (record === undefined) continue;
      const session = { ...this.#group, state, hadRunner: true, sessionId, record };
      const diff = await diffOf(this.#place, session, workspaces.get(sessionId), { numbers: true });
      if (!diff.ok) continue;
      const { stat } = diff.value;
      const before = this.counts.get(sessionId);
      isChanged ||= before?.insertions !== stat.insertions || before.deletions !== stat.deletions;
      this.counts.set(sessionId, stat);
    }
    return isChanged;
  }
}
