/**
 * What came to this process because a session killed the keeper above it. Without a mark nothing says any more whose it
 * is; but whatever comes here was started below something of ours, and what has no keeper is nobody's to keep.
 */
import { forgetEnded } from '../libc.ts';
import type { ProcEntry, ProcTable } from './proc-table.ts';

/** One that was started with a keeper and has no control group. */
interface Kept {
  readonly program: Pick<ProcEntry, 'pid' | 'startTime'>;
  /** The variable in which the program is told the name, undefined = none. */
  readonly mark: string | undefined;
  isLost: boolean;
}

/** A chain of processes that start another and end at once is over long before; zombies are met until they are gone. */
const killsMax = 20_000;
/** Nothing may come for so many looks, a millisecond apart. */
const calmLooks = 5;

export class Strays {
  readonly #table: ProcTable;
  /** Pids of what came to this process; null = not known. */
  readonly #inherited: () => number[] | null;
  readonly #kept = new Map<string, Kept>();

  constructor(table: ProcTable, inherited: () => number[] | null) {
    this.#table = table;
    this.#inherited = inherited;
  }

  /** `env` is the program's. `noteEnd` is to be told of the end of its keeper. */
  note(name: string, program: Kept['program'], env: Readonly<Record<string, string | undefined>>): void {
    const mark = Object.keys(env).find((key) => env[key] === name);
    this.#kept.set(name, { program, mark, isLost: false });
  }

  /**
   * The keeper has ended. One that ends by itself has waited for its program; where that has come here, or the keeper
   * was killed outright, all the rest has come here too, or is going to.
   */
  noteEnd(name: string, wasKilled: boolean): void {
    const kept = this.#kept.get(name);
    if (kept === undefined) return;
    const [entry] = this.#table.find([kept.program.pid]);
    const cameHere = entry?.startTime === kept.program.startTime && entry.parent === process.pid;
    if (wasKilled || cameHere) kept.isLost = true;
    else this.#kept.delete(name);
  }

  /** What lives of it, as far as it has come here; none where its keeper has done its work. */
  find(name: string): ProcEntry[] {
    const kept = this.#kept.get(name);
    if (kept?.isLost !== true) return [];
    const came = this.#table.find(this.#inherited() ?? []).filter(({ zombie }) => !zombie);
    const foreign = new Set(this.#foreign(name, kept, came));
    return came.filter(({ pid }) => !foreign.has(pid));
  }

  /** Kills all of it, and what comes here after that; false when there was no end of it. */
  end(name: string): boolean {
    const kept = this.#kept.get(name);
    if (kept?.isLost !== true) return true;
    let kills = 0;
    for (let calm = 0; calm < calmLooks; calm += 1) {
      const spared = new Set(this.#foreign(name, kept, this.#table.find(this.#inherited() ?? [])));
      // Each link of a chain lives for a millisecond: what comes meanwhile is not looked at before it is killed.
      const came = () => (this.#inherited() ?? []).filter((pid) => !spared.has(pid));
      for (let pids = came(); pids.length > 0; pids = came()) {
        calm = 0;
        kills += pids.length;
        for (const pid of pids) killQuietly(pid);
        if (kills > killsMax) return false;
      }
      Bun.sleepSync(1);
    }
    this.#kept.delete(name);
    return true;
  }

  /** Pids of those that were there before, or say in their environment that they belong to another one. */
  #foreign(name: string, { program }: Kept, came: readonly ProcEntry[]): number[] {
    if (came.length === 0) return [];
    const others = [...this.#kept].flatMap(([other, { mark }]) =>
      other === name || mark === undefined ? [] : this.#table.marked(mark, other),
    );
    const earlier = came.filter(({ startTime }) => Number(startTime) < Number(program.startTime));
    return [...others, ...earlier.map(({ pid }) => pid)];
  }
}

function killQuietly(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It has ended by itself, or became somebody else's.
  }
  // As long as nobody has waited for it it is in the list.
  forgetEnded(pid);
}
