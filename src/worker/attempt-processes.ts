/**
 * The processes of one attempt. Whatever a tool does to its environment and its session, it stays below claude while
 * that lives; so they are looked at while it lives, and what was seen is ended when it is gone.
 */
import type { ProcessIdentity } from '../core/event.ts';
import type { LimitKind, World } from '../system/world.ts';
import { notedProcesses, noteProcesses, type Whose } from './noted-processes.ts';
import { assertRefusal, gatherFromAll, patiently, reap } from './reap.ts';

/** Longer than SessionEnd hooks may take: CLAUDE_CODE_SESSIONEND_HOOKS_TIMEOUT_MS is set to 5 s for our workers. */
const termGraceMs = 8_000;
/** The first look at one that was told to end; each further one comes after twice the time. */
const firstLookMs = 15;
/** Between two looks at what tools left, from the first signal to the one nobody can ignore, and in all. */
const clearing = { lookMs: 20, graceMs: 300, mostMs: 3_000 };

export class AttemptProcesses {
  readonly #world: World;
  readonly #whose: Whose;
  #worker: ProcessIdentity | undefined;
  /** An earlier runner started it: what it leaves behind does not come to us. */
  #isAdopted = false;
  #known: readonly ProcessIdentity[] = [];
  /** Of those, and of others that have ended, the keys of all that stand in the note. */
  #noted: ReadonlySet<string> = new Set();
  /** Those that claude itself needs, its MCP servers above all; null = nobody looked in time. */
  #own: readonly ProcessIdentity[] | null = null;
  /** The end of claude has begun: what it starts now are its own hooks. */
  #isEnding = false;
  #timers: (() => void)[] = [];
  /** Known once all of it was ended. */
  #limitsHit: readonly LimitKind[] = [];

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
    this.#isAdopted = true;
    this.#known = notedProcesses(this.#world, this.#whose);
  }

  /** To be called before its first tool runs: whatever is there by now belongs to claude, what comes later to tools. */
  noteOwn(): void {
    this.#own ??= this.look();
  }

  /** The living processes, claude included. They are also noted, for when they must be ended. */
  look(): ProcessIdentity[] {
    try {
      const found = this.#found(this.#branches());
      this.#keep(found);
      return found;
    } catch (error) {
      // Should the table of open files be full for a moment, what was seen before is the best we know.
      assertRefusal(error);
      return [...this.#known];
    }
  }

  #branches(): ProcessIdentity[][] | null {
    return this.#worker === undefined ? null : this.#world.processes.findBranches(this.#worker);
  }

  /** All there is, when `branches` is what is below the living worker; null: that is not known. */
  #found(branches: readonly ProcessIdentity[][] | null): ProcessIdentity[] {
    if (this.#worker !== undefined && branches !== null) return [this.#worker, ...branches.flat()];
    return gatherFromAll(this.#world, this.#whose.attemptId, this.#worker);
  }

  /** What left the tree is not forgotten while it lives: claude may end at any moment, and everything else with it. */
  #keep(found: readonly ProcessIdentity[]): void {
    const keys = new Set(found.map(keyOf));
    const others = this.#known.filter((process) => !keys.has(keyOf(process)) && this.#world.processes.isAlive(process));
    this.#known = [...found, ...others];
    // What has ended may stand in the note: nobody is mistaken for it.
    if (this.#known.every((process) => this.#noted.has(keyOf(process)))) return;
    if (noteProcesses(this.#world, this.#whose, this.#known)) this.#noted = new Set(this.#known.map(keyOf));
  }

  /**
   * Ends a claude that is idle. What its tools left running is ended before: while claude lives nothing of that can get
   * lost, even what is just being started.
   */
  endIdle(): void {
    if (this.#isEnding || this.#worker === undefined) return;
    this.#isEnding = true;
    const worker = this.#worker;
    this.#insist(firstLookMs, () => {
      const branches = this.#branches();
      this.#keep(this.#found(branches));
      this.#clear(worker, this.#leftByTools(branches), new Map(), 0);
    });
  }

  /** Tells claude to end in the middle of its work. A tool that ended before it would be an answer to the model. */
  terminate(): void {
    if (this.#isEnding || this.#worker === undefined) return;
    this.#isEnding = true;
    this.look();
    const worker = this.#worker;
    this.#insist(firstLookMs, () => this.#signal(worker));
  }

  /** `asked`: when each process was asked to end, in milliseconds from the first look. */
  #clear(worker: ProcessIdentity, left: ProcessIdentity[], asked: Map<string, number>, atMs: number): void {
    // What comes back for so long is kept alive by claude itself.
    if (left.length === 0 || atMs > clearing.mostMs) {
      this.#signal(worker);
      return;
    }
    this.#keep(left);
    for (const process of left) {
      const askedMs = asked.get(keyOf(process));
      if (askedMs === undefined) asked.set(keyOf(process), atMs);
      else if (atMs - askedMs < clearing.graceMs) continue;
      this.#world.processes.signal(process, askedMs === undefined ? 'SIGTERM' : 'SIGKILL');
    }
    this.#after(clearing.lookMs, () => this.#clear(worker, this.#leftByTools(), asked, atMs + clearing.lookMs));
  }

  /** A list that is read just while one of them ends may lack what that leaves: two must be empty. */
  #leftByTools(branches = this.#branches()): ProcessIdentity[] {
    const left = this.#ofTools(branches);
    return left.length > 0 ? left : this.#ofTools(this.#branches());
  }

  /** What tools left. None when it is not known what belongs to claude, which ends its MCP servers itself. */
  #ofTools(branches: readonly ProcessIdentity[][] | null): ProcessIdentity[] {
    if (this.#own === null || branches === null) return [];
    const own = new Set(this.#own.map(keyOf));
    return branches.filter(([child]) => child !== undefined && !own.has(keyOf(child))).flat();
  }

  /** Tells it, and kills it when it does not end. What it and its hooks start meanwhile is seen as well. */
  #signal(worker: ProcessIdentity): void {
    this.#world.processes.signal(worker, 'SIGTERM');
    this.#lookAgain(firstLookMs);
    this.#after(termGraceMs, () => {
      this.look();
      this.#world.processes.signal(worker, 'SIGKILL');
    });
  }

  #lookAgain(delayMs: number): void {
    this.#after(delayMs, () => {
      const branches = this.#branches();
      if (branches !== null || !this.#isInherited) this.#keep(this.#found(branches));
      this.#lookAgain(2 * delayMs);
    });
  }

  /** Whatever is left when it ends comes to this runner. */
  get #isInherited(): boolean {
    return !this.#isAdopted && this.#world.processes.findOrphans() !== null;
  }

  #after(delayMs: number, action: () => void): void {
    this.#timers.push(this.#world.clock.after(delayMs, () => this.#insist(delayMs, action)));
  }

  /** Does it now, or as soon as the system does not refuse it any more. */
  #insist(delayMs: number, action: () => void): void {
    try {
      action();
    } catch (error) {
      assertRefusal(error);
      this.#after(delayMs, action);
    }
  }

  /** Ends no process any more, and looks at none. */
  leave(): void {
    for (const cancel of this.#timers) cancel();
    this.#timers = [];
  }

  /** Ends all that is left by a worker that has ended; resolves as `reap` does. */
  async reap(): Promise<number> {
    this.#limitsHit = this.#world.processes.limitsHit(this.#whose.attemptId);
    const { attemptId, searchLater } = this.#whose;
    if (searchLater === undefined || !(await patiently(this.#world, () => this.#hasLeftNothing())))
      return reap(this.#world, attemptId, this.#known);
    searchLater(attemptId);
    return 0;
  }

  /** The limits that the attempt has reached; to be asked after `reap`. */
  get limitsHit(): readonly LimitKind[] {
    return this.#limitsHit;
  }

  /** Of what was below the worker; false also when that is not known. */
  #hasLeftNothing(): boolean {
    const worker = this.#worker;
    if (this.#isAdopted || worker === undefined || this.#world.processes.findOrphans()?.length !== 0) return false;
    if (!this.#world.processes.endContained(this.#whose.attemptId)) return false;
    // One that was found by its mark need not have been below the worker.
    return !this.#known.some((process) => process.pid !== worker.pid && this.#world.processes.isAlive(process));
  }
}

function keyOf({ pid, startTime }: ProcessIdentity): string {
  return `${pid} ${startTime}`;
}
