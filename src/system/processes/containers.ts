/**
 * Holds together, under a name, a program and all that it starts, whatever that does to its environment, session and
 * parents: below a keeper, and in a control group where we may make one. Any later process finds it by the name.
 */

import { readlinkSync } from 'node:fs';
import type { Containment, LimitKind, Limits } from '../world.ts';
import type { Cgroups, Group } from './cgroup.ts';
import { keeperMark } from './keeper.ts';
import type { ProcEntry, ProcTable } from './proc-table.ts';
import { collectDescendants } from './process-tree.ts';

/** File of the program that a process executes; empty when that is not told. */
function programOf(pid: number): string {
  try {
    return readlinkSync(`/proc/${pid}/exe`);
  } catch {
    return '';
  }
}

type Keeper = Pick<ProcEntry, 'pid' | 'startTime'>;

export class Containers {
  readonly #table: ProcTable;
  readonly #open: () => Cgroups | null;
  #cgroups: Cgroups | null | undefined;
  /** By name; null = it has none. */
  readonly #keepers = new Map<string, Keeper | null>();
  /** By pid of the program. */
  readonly #above = new Map<number, Keeper>();

  /** `open` is asked once, when it is needed: it tries what it says. */
  constructor(table: ProcTable, open: () => Cgroups | null) {
    this.#table = table;
    this.#open = open;
  }

  get containment(): Containment {
    if (this.#groups !== null) return 'cgroup';
    return this.canKeep ? 'keeper' : 'none';
  }

  /** Without these files nobody could tell in time what a keeper has started. */
  get canKeep(): boolean {
    return process.platform === 'linux' && this.#table.children(process.pid, 'first') !== null;
  }

  get #groups(): Cgroups | null {
    if (this.#cgroups === undefined) this.#cgroups = this.#open();
    return this.#cgroups;
  }

  /**
   * Which limits what is held can be given. For that this process may move, with what it has started and the command
   * that started it.
   */
  limits(): ReadonlySet<LimitKind> {
    return this.#groups?.limits(() => this.#ours()) ?? new Set();
  }

  #ours(): ReadonlySet<number> {
    const all = this.#table.all();
    const ours = new Set([process.pid, ...collectDescendants(all, process.pid, process.pid).map(({ pid }) => pid)]);
    const parents = new Map(all.map(({ pid, parent }) => [pid, parent]));
    // A command that starts a runner waits for it.
    for (let pid = process.ppid; programOf(pid) === programOf(process.pid); pid = parents.get(pid) ?? 0) {
      if (pid <= 1 || ours.has(pid)) break;
      ours.add(pid);
    }
    return ours;
  }

  /** The new control group of that name; null when there can be none, or none with these limits. */
  makeGroup(name: string, limits: Limits | undefined): Group | null {
    // Limits that were never asked for are not there yet.
    if (limits !== undefined) this.limits();
    return this.#groups?.make(name, limits) ?? null;
  }

  /** Limits that were reached by what is held under the name; to be asked before its end. */
  hits(name: string): LimitKind[] {
    return this.#groups?.hits(name) ?? [];
  }

  /** `program`: its pid. Without a name only who has started it knows whose it is. */
  noteKeeper(name: string | undefined, keeper: Keeper, program: number): void {
    if (name !== undefined) this.#keepers.set(name, keeper);
    this.#above.set(program, keeper);
  }

  /** Pid of the living keeper above this program. */
  keeperOf(program: number): number | null {
    const keeper = this.#above.get(program);
    if (keeper === undefined || this.#lives(keeper)) return keeper?.pid ?? null;
    this.#above.delete(program);
    return null;
  }

  /** Pids of all that is held under the name; the keeper is not one of them, and ends by itself. */
  members(name: string): number[] {
    const keeper = this.keeper(name);
    const below = keeper === null ? [] : collectDescendants(this.#table.all(), keeper.pid, process.pid);
    return [...(this.#groups?.members(name) ?? []), ...below.map(({ pid }) => pid)];
  }

  /** Ends at once what can be ended at once; false while something is held under the name. */
  end(name: string): boolean {
    const isEmpty = this.#groups?.end(name) ?? true;
    return isEmpty && this.keeper(name) === null;
  }

  /** The living keeper of that name. */
  keeper(name: string): Keeper | null {
    const known = this.#keepers.get(name);
    const keeper = known === undefined ? this.#findKeeper(name) : known;
    const isThere = keeper !== null && this.#lives(keeper);
    this.#keepers.set(name, isThere ? keeper : null);
    return isThere ? keeper : null;
  }

  #findKeeper(name: string): Keeper | null {
    return this.#table.find(this.#table.marked(keeperMark, name))[0] ?? null;
  }

  #lives({ pid, startTime }: Keeper): boolean {
    const [entry] = this.#table.find([pid]);
    return entry?.startTime === startTime && !entry.zombie;
  }
}
