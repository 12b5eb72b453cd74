/**
 * Tracks a program and all its descendants under a name, whatever they do to their environment, session and parents.
 * Where control groups are available, the kernel does it, and any later process finds the group by the name. Elsewhere
 * this process is a subreaper (prctl(2)): a descendant that loses its parent becomes its child.
 */
import { readlinkSync } from 'node:fs';
import { becomeSubreaper, waitForEnded } from '../libc.ts';
import type { Containment, LimitKind, Limits } from '../world.ts';
import type { Cgroups } from './cgroup.ts';
import type { ProcEntry, ProcTable } from './proc-table.ts';
import { collectDescendants } from './proc-table.ts';
import { helperMark, isStartedHere } from './program.ts';

type ProcKey = Pick<ProcEntry, 'pid' | 'startTime'>;

/** Processes tracked by the process tree. */
interface Held {
  readonly programs: ProcKey[];
  /** The environment variable with the name; undefined = none. */
  readonly mark: string | undefined;
  /** Start times by pid of processes seen below the program; they stay known when they leave the tree. */
  readonly seen: Map<number, string>;
  readonly sessions: Set<number>;
}

/** A process that became a child of this one when its parent ended. */
interface Orphan {
  readonly startTime: string;
  /**
   * Ended with the last of these. An orphan without a known owner belongs to all names that were tracked when it
   * arrived.
   */
  readonly names: Set<string>;
}

/** How often orphans are checked: claude waits until the zombies of a killed tool are gone. */
const lookMs = 100;
/** A list of children read during an exit may lack one: this many checks in a row must find no new one. */
const calmLooks = 3;

export class Containers {
  readonly #table: ProcTable;
  readonly #open: () => Cgroups | null;
  readonly #mayAdopt: boolean;
  #cgroups: Cgroups | null | undefined;
  /** Null until something is tracked by the process tree. */
  #isSubreaper: boolean | null = null;
  #ownSession = 0;
  /** Sessions of earlier children: of a script that became this program by exec(3). */
  #strangers: ReadonlySet<number> = new Set();
  readonly #held = new Map<string, Held>();
  #orphans = new Map<number, Orphan>();
  /** Number of orphans so far. */
  #arrivals = 0;
  #timer: ReturnType<typeof setInterval> | undefined;

  /** `open` tries to create a control group; called once, when needed. */
  constructor(table: ProcTable, open: () => Cgroups | null, mayAdopt: boolean) {
    this.#table = table;
    this.#open = open;
    this.#mayAdopt = mayAdopt;
  }

  get containment(): Containment {
    if (this.#groups !== null) return 'cgroup';
    return this.#canAdopt ? 'tree' : 'mark';
  }

  /** Whether a control group tracks all of that name: then no other search is needed. */
  isGrouped(name: string): boolean {
    return !this.#held.has(name) && this.#groups?.has(name) === true;
  }

  get #canAdopt(): boolean {
    return this.#mayAdopt && process.platform === 'linux' && this.#table.children(process.pid) !== null;
  }

  get #groups(): Cgroups | null {
    if (this.#cgroups === undefined) this.#cgroups = this.#open();
    return this.#cgroups;
  }

  /** Which limits can be set. For that, this process and its children may move into another control group. */
  limits(): ReadonlySet<LimitKind> {
    return this.#groups?.limits(() => this.#ours()) ?? new Set();
  }

  #ours(): ReadonlySet<number> {
    const all = this.#table.all();
    const ours = new Set([process.pid, ...collectDescendants(all, [process.pid], process.pid).map(({ pid }) => pid)]);
    const parents = new Map(all.map(({ pid, parent }) => [pid, parent]));
    // The command that started this runner waits for it.
    for (let pid = process.ppid; programOf(pid) === programOf(process.pid); pid = parents.get(pid) ?? 0) {
      if (pid <= 1 || ours.has(pid)) break;
      ours.add(pid);
    }
    return ours;
  }

  /** The folder of the new control group of that name; null when impossible, or impossible with these limits. */
  makeGroup(name: string, limits: Limits | undefined): string | null {
    // Limits must be prepared before they can be set.
    if (limits !== undefined) this.limits();
    return this.#groups?.make(name, limits) ?? null;
  }

  /** Limits that were reached under this name; call before `end`. */
  hits(name: string): LimitKind[] {
    return this.#groups?.hits(name) ?? [];
  }

  /** From now on orphans come to this process. Call before starting anything that `hold` is called for. */
  prepare(): void {
    if (this.#isSubreaper !== null) return;
    this.#isSubreaper = this.#canAdopt && becomeSubreaper();
    this.#ownSession = this.#table.find([process.pid])[0]?.session ?? 0;
    this.#strangers = new Set(this.#foreignChildren().map(({ session }) => session));
  }

  /** Tracks a program by the process tree; `env` is its environment. */
  hold(name: string, program: ProcKey, env: Readonly<Record<string, string>> = {}): void {
    const mark = Object.keys(env).find((key) => env[key] === name);
    const held: Held = this.#held.get(name) ?? { programs: [], mark, seen: new Map(), sessions: new Set() };
    held.programs.push(program);
    this.#held.set(name, held);
    if (!this.#isSubreaper || this.#timer !== undefined) return;
    this.#timer = setInterval(() => this.#tick(), lookMs);
    this.#timer.unref();
  }

  #tick(): void {
    this.#lookForOrphans();
    if (this.#held.size > 0 || this.#orphans.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  /** Live processes tracked under the name. */
  find(name: string): ProcEntry[] {
    const grouped = this.#groups?.members(name) ?? [];
    const held = this.#held.get(name);
    const members = grouped.length > 0 ? this.#table.find(grouped) : [];
    const found = held === undefined ? members : [...members, ...this.#findBelow(name, held)];
    return [...new Map(found.map((entry) => [entry.pid, entry])).values()].filter(
      ({ pid, zombie }) => !zombie && pid !== process.pid,
    );
  }

  #findBelow(name: string, held: Held): ProcEntry[] {
    this.#lookForOrphans();
    const orphans = [...this.#orphans].filter(([, { names }]) => names.size === 1 && names.has(name));
    const roots = new Map([
      ...held.seen,
      ...held.programs.map(({ pid, startTime }) => [pid, startTime] as const),
      ...orphans.map(([pid, { startTime }]) => [pid, startTime] as const),
    ]);
    const living = this.#same(roots);
    const found = [...living, ...this.#below(living)];
    held.seen.clear();
    for (const { pid, startTime, session } of found) {
      held.seen.set(pid, startTime);
      if (session !== this.#ownSession) held.sessions.add(session);
    }
    return found;
  }

  /** The given processes that still exist: a pid may have been reused since. */
  #same(startTimes: ReadonlyMap<number, string>): ProcEntry[] {
    return this.#table.find([...startTimes.keys()]).filter((entry) => startTimes.get(entry.pid) === entry.startTime);
  }

  #below(roots: readonly ProcEntry[]): ProcEntry[] {
    const found = new Map<number, ProcEntry>();
    const waiting = roots.filter(({ zombie }) => !zombie);
    for (let parent = waiting.pop(); parent !== undefined; parent = waiting.pop()) {
      const pids = this.#table.children(parent.pid);
      if (pids === null) {
        // Ended meanwhile, or a system without such lists.
        if (process.platform === 'linux') continue;
        return collectDescendants(
          this.#table.all(),
          roots.map(({ pid }) => pid),
          process.pid,
        );
      }
      for (const entry of this.#table.find(pids)) {
        if (entry.parent !== parent.pid || found.has(entry.pid)) continue;
        found.set(entry.pid, entry);
        waiting.push(entry);
      }
    }
    return [...found.values()];
  }

  /** Kills everything at once, as far as possible; false while something is left. */
  end(name: string): boolean {
    const isGroupGone = this.#groups?.end(name) ?? true;
    const held = this.#held.get(name);
    if (held === undefined) return isGroupGone;
    const killed = new Set<number>();
    for (let calm = 0; calm < calmLooks; ) {
      const arrivals = this.#arrivals;
      const found = this.#findBelow(name, held).filter(({ zombie }) => !zombie);
      const news = found.filter(({ pid }) => !killed.has(pid));
      for (const { pid } of news) kill(pid, killed);
      calm = news.length === 0 && this.#arrivals === arrivals ? calm + 1 : 0;
      // A kill takes effect a moment later.
      if (calm > 0 && found.length > 0) return false;
    }
    this.#held.delete(name);
    for (const { names } of this.#orphans.values()) names.delete(name);
    return isGroupGone;
  }

  /** Records new orphans, and reaps ended ones, each by its pid. */
  #lookForOrphans(): void {
    if (!this.#isSubreaper) return;
    const orphans = new Map<number, Orphan>();
    for (const entry of this.#foreignChildren()) {
      const known = this.#orphans.get(entry.pid);
      const orphan = known?.startTime === entry.startTime ? known : this.#newOrphan(entry);
      if (entry.zombie) waitForEnded(entry.pid);
      else orphans.set(entry.pid, orphan);
    }
    this.#orphans = orphans;
  }

  /** Tracked programs are started in sessions of their own: our session has only children started here. */
  #foreignChildren(): ProcEntry[] {
    const pids = (this.#table.children(process.pid) ?? []).filter((pid) => !isStartedHere(pid));
    const entries = this.#table.find(pids);
    return entries.filter(({ parent, session }) => parent === process.pid && session !== this.#ownSession);
  }

  #newOrphan(entry: ProcEntry): Orphan {
    this.#arrivals += 1;
    return { startTime: entry.startTime, names: new Set(this.#namesOf(entry)) };
  }

  #namesOf(entry: ProcEntry): string[] {
    if (entry.zombie) return [];
    const all = [...this.#held];
    const marked = all.filter(([name, { mark }]) => mark && this.#table.valuesOf(entry.pid, mark).includes(name));
    if (marked.length > 0) return marked.map(([name]) => name);
    // A process left by git or an editor belongs to the user.
    if (this.#table.valuesOf(entry.pid, helperMark).length > 0) return [];
    // So does one that a script had started, such as ssh-agent or a database, before it became this program.
    if (this.#strangers.has(entry.session)) return [];
    const known = all.filter(
      ([, { seen, sessions }]) => seen.get(entry.pid) === entry.startTime || sessions.has(entry.session),
    );
    return (known.length > 0 ? known : all).map(([name]) => name);
  }
}

function kill(pid: number, killed: Set<number>): void {
  killed.add(pid);
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It has just ended, or changed its user.
  }
}

/** File of the program that a process executes; empty when unreadable. */
function programOf(pid: number): string {
  try {
    return readlinkSync(`/proc/${pid}/exe`);
  } catch {
    return '';
  }
}
