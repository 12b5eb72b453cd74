/**
 * The processes of one attempt. Whatever a tool does to its environment and its session, it stays below claude while
 * that lives; so they are looked at while it lives, and what was seen is ended when it is gone.
 */
import type { ProcessIdentity } from '../core/event.ts';
import type { World } from '../world/world.ts';
import { notedProcesses, noteProcesses, type Whose } from './noted-processes.ts';
import { gatherProcesses, reap } from './reap.ts';

/** Longer than SessionEnd hooks may take: CLAUDE_CODE_SESSIONEND_HOOKS_TIMEOUT_MS is set to 5 s for our workers. */
const termGraceMs = 8_000;
/** The first look at one that was told to end; each further one comes after twice the time. */
const firstLookMs = 15;

export class AttemptProcesses {
  readonly #world: World;
  readonly #whose: Whose;
  #worker: ProcessIdentity | undefined;
  #known: ProcessIdentity[] = [];
  #isEnding = false;
  #timers: (() => void)[] = [];

  constructor(world: World, whose: Whose) {
    this.#world = world;
    this.#whose = whose;
  }

  /** The attempt's claude, once there is one. */
  set worker(identity: ProcessIdentity) {
    this.#worker = identity;
  }

  /** Takes over what an earlier runner had seen. */
  recall(): void {
    this.#known = notedProcesses(this.#world, this.#whose);
  }

  /** From now on nothing that was seen is forgotten: claude may end at any moment, and its tree with it. */
  beginEnd(): void {
    this.#isEnding = true;
  }

  /** The living processes, claude included. They are also noted, for when they must be ended. */
  look(): ProcessIdentity[] {
    const found = gatherProcesses(this.#world, this.#whose.attemptId, this.#worker);
    this.#known = this.#isEnding ? this.#merged(found) : found;
    noteProcesses(this.#world, this.#whose, this.#known);
    return found;
  }

  #merged(found: readonly ProcessIdentity[]): ProcessIdentity[] {
    const keys = new Set(this.#known.map(({ pid, startTime }) => `${pid} ${startTime}`));
    return [...this.#known, ...found.filter(({ pid, startTime }) => !keys.has(`${pid} ${startTime}`))];
  }

  /** Tells claude to end, and kills it when it does not. What it and its tools start meanwhile is seen as well. */
  terminate(): void {
    this.beginEnd();
    this.look();
    const worker = this.#worker;
    if (worker === undefined) return;
    this.#world.processes.signal(worker, 'SIGTERM');
    this.#lookAgain(firstLookMs);
    this.#after(termGraceMs, () => {
      this.look();
      this.#world.processes.signal(worker, 'SIGKILL');
    });
  }

  #lookAgain(delayMs: number): void {
    this.#after(delayMs, () => {
      this.look();
      this.#lookAgain(2 * delayMs);
    });
  }

  #after(delayMs: number, action: () => void): void {
    this.#timers.push(this.#world.clock.after(delayMs, action));
  }

  /** Ends no process any more, and looks at none. */
  leave(): void {
    for (const cancel of this.#timers) cancel();
    this.#timers = [];
  }

  /** Ends all that is left; resolves as `reap` does. */
  reap(): Promise<number> {
    return reap(this.#world, this.#whose.attemptId, this.#known);
  }
}
