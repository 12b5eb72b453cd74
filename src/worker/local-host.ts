/** The machine on which this program runs. */
import { defined } from '../core/defined.ts';
import type { SessionId } from '../core/group.ts';
import type { GroupState } from '../core/state.ts';
import type { World } from '../system/world.ts';
import type { AttemptSubject, Host } from './host.ts';
import { LateSearch } from './late-search.ts';
import { LocalAttempt } from './local-attempt.ts';

/** For whom what attempts left behind is looked for some time after they ended. */
export interface LateSearchOptions {
  readonly log: { readonly state: GroupState };
  /** Something of an attempt that is over lives on and cannot be ended. */
  readonly onLeftover: (sessionId: SessionId, attemptId: string) => void;
}

export class LocalHost implements Host {
  readonly #world: World;
  readonly #late: LateSearch | null;

  /** Without `late` it is looked for as each attempt ends. */
  constructor(world: World, late?: LateSearchOptions) {
    this.#world = world;
    this.#late = late === undefined ? null : new LateSearch(world, late.log, late.onLeftover);
  }

  attempt(subject: AttemptSubject): LocalAttempt {
    const late = this.#late;
    const searchLater = late === null ? undefined : (id: string) => late.add(subject.sessionId, id);
    return new LocalAttempt(this.#world, { ...subject, ...defined({ searchLater }) });
  }

  get isIdle(): boolean {
    return this.#late?.isIdle ?? true;
  }

  async finish(): Promise<void> {
    await this.#late?.finish();
  }
}
