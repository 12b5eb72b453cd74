/**
 * Looks for what bears the mark of an attempt though it never was below its worker: a service that ran before may have
 * started it for a tool, with the tool's environment. That takes a look at all processes of the machine, so it is done
 * once for all attempts that ended lately, and before the run is over.
 */
import { attemptMark } from '../claude/launch/attempt-mark.ts';
import type { ProcessIdentity } from '../core/event.ts';
import type { SessionId } from '../core/group.ts';
import type { GroupState } from '../core/state.ts';
import type { World } from '../system/world.ts';
import { reap } from './reap.ts';

/** It takes ten milliseconds of CPU where hundreds of processes run, and what it finds is rare. */
const searchMs = 10_000;

export class LateSearch {
  readonly #world: World;
  readonly #log: { readonly state: GroupState };
  readonly #onLeftover: (sessionId: SessionId, attemptId: string) => void;
  /** By the attempt. */
  readonly #sessions = new Map<string, SessionId>();
  #cancel: (() => void) | null = null;
  #ending: Promise<unknown> = Promise.resolve();
  #endings = 0;

  constructor(
    world: World,
    log: { readonly state: GroupState },
    onLeftover: (sessionId: SessionId, attemptId: string) => void,
  ) {
    this.#world = world;
    this.#log = log;
    this.#onLeftover = onLeftover;
  }

  /** The attempt has ended, and nothing is left that was below its worker. */
  add(sessionId: SessionId, attemptId: string): void {
    this.#sessions.set(attemptId, sessionId);
    this.#searchSoon();
  }

  /** Nothing is left to be searched for, and nothing that was found is just being ended. */
  get isIdle(): boolean {
    return this.#sessions.size === 0 && this.#endings === 0;
  }

  /** Searches at once, and resolves when all that was found has ended, or cannot be ended. */
  async finish(): Promise<void> {
    this.#search();
    await this.#ending;
  }

  #searchSoon(): void {
    this.#cancel ??= this.#world.clock.after(searchMs, () => {
      this.#cancel = null;
      this.#search();
      if (this.#sessions.size > 0) this.#searchSoon();
    });
  }

  /** It goes on, for example because its work is being accepted by a command with its mark. */
  #isRunning(sessionId: SessionId, attemptId: string): boolean {
    const now = this.#log.state.sessions.get(sessionId)?.state;
    return now?.status === 'running' && now.attempt.id === attemptId;
  }

  #search(): void {
    for (const [attemptId, sessionId] of this.#sessions) {
      if (this.#isRunning(sessionId, attemptId)) continue;
      this.#sessions.delete(attemptId);
      const found = this.#find(attemptId);
      if (found.length > 0) this.#ending = Promise.all([this.#ending, this.#end(sessionId, attemptId, found)]);
    }
    if (this.#sessions.size > 0) return;
    this.#cancel?.();
    this.#cancel = null;
  }

  async #end(sessionId: SessionId, attemptId: string, found: readonly ProcessIdentity[]): Promise<void> {
    this.#endings += 1;
    try {
      // It is told before anybody may think that nothing is left to be waited for.
      if ((await reap(this.#world, attemptId, found)) < 0) this.#onLeftover(sessionId, attemptId);
    } catch {
      // As below.
    } finally {
      this.#endings -= 1;
    }
  }

  /** Whoever cannot ask the system now does not lose its run over it; `doctor` asks again. */
  #find(attemptId: string): ProcessIdentity[] {
    try {
      return this.#world.processes.findMarked(attemptMark, attemptId);
    } catch {
      return [];
    }
  }
}
