/**
 * Looks for what bears the mark of an attempt though it never was below its worker: a service that ran before may have
 * started it for a tool, with the tool's environment. That takes a look at all processes of the machine, so it is done
 * once for all attempts that ended lately, and before the run is over.
 */
import { attemptMark } from '../claude/attempt-mark.ts';
import type { World } from '../world/world.ts';
import { reap } from './reap.ts';

const searchMs = 1_000;

export class LateSearch {
  readonly #world: World;
  readonly #isRunning: (attemptId: string) => boolean;
  readonly #attempts = new Set<string>();
  #cancel: (() => void) | null = null;
  #ending: Promise<unknown> = Promise.resolve();

  /** `isRunning`: the attempt goes on, for example because its work is being accepted by a command with its mark. */
  constructor(world: World, isRunning: (attemptId: string) => boolean) {
    this.#world = world;
    this.#isRunning = isRunning;
  }

  /** The attempt has ended, and nothing is left that was below its worker. */
  readonly add = (attemptId: string): void => {
    this.#attempts.add(attemptId);
    this.#cancel ??= this.#world.clock.after(searchMs, () => this.#search());
  };

  /** Searches for the last ones, and resolves when all that was found has ended, or cannot be ended. */
  async finish(): Promise<void> {
    this.#cancel?.();
    this.#search();
    await this.#ending;
  }

  #search(): void {
    this.#cancel = null;
    const attempts = [...this.#attempts].filter((attemptId) => !this.#isRunning(attemptId));
    this.#attempts.clear();
    try {
      for (const attemptId of attempts) {
        const found = this.#world.processes.findMarked(attemptMark, attemptId);
        if (found.length > 0) this.#ending = Promise.allSettled([this.#ending, reap(this.#world, attemptId, found)]);
      }
    } catch {
      // Whoever cannot ask the system now does not lose its run over it; `doctor` asks again.
    }
  }
}
