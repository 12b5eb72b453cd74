/**
 * Looks for what bears the mark of an attempt though it never was below its worker: a service that ran before may have
 * started it for a tool, with the tool's environment. That takes a look at all processes of the machine, so it is done
 * once for all attempts that ended lately, and before the run is over.
 */
import { attemptMark } from '../claude/attempt-mark.ts';
import type { ProcessIdentity } from '../core/event.ts';
import type { World } from '../world/world.ts';
import { reap } from './reap.ts';

/** It takes ten milliseconds of CPU where hundreds of processes run, and what it finds is rare. */
const searchMs = 10_000;

export class LateSearch {
  readonly #world: World;
  readonly #isRunning: (attemptId: string) => boolean;
  readonly #attempts = new Set<string>();
  #cancel: (() => void) | null = null;
  #ending: Promise<unknown> = Promise.resolve();
  #endings = 0;

  /** `isRunning`: the attempt goes on, for example because its work is being accepted by a command with its mark. */
  constructor(world: World, isRunning: (attemptId: string) => boolean) {
    this.#world = world;
    this.#isRunning = isRunning;
  }

  /** The attempt has ended, and nothing is left that was below its worker. */
  readonly add = (attemptId: string): void => {
    this.#attempts.add(attemptId);
    this.#searchSoon();
  };

  /** Nothing is left to be searched for, and nothing that was found is just being ended. */
  get isIdle(): boolean {
    return this.#attempts.size === 0 && this.#endings === 0;
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
      if (this.#attempts.size > 0) this.#searchSoon();
    });
  }

  #search(): void {
    for (const attemptId of this.#attempts) {
      if (this.#isRunning(attemptId)) continue;
      this.#attempts.delete(attemptId);
      const found = this.#find(attemptId);
      if (found.length === 0) continue;
      this.#endings += 1;
      const ended = () => {
        this.#endings -= 1;
      };
      const reaped = reap(this.#world, attemptId, found).then(ended, ended);
      this.#ending = Promise.all([this.#ending, reaped]);
    }
    if (this.#attempts.size > 0) return;
    this.#cancel?.();
    this.#cancel = null;
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
