/**
 * Files of /proc that stay open, for processes that are looked at again and again: most of such a look is the way to
 * the file. What is kept tells of the process it was opened for and of no other, whoever gets its pid.
 */
import { closeSync, openSync, readFileSync, readSync } from 'node:fs';
import { errorCode } from '../system-error.ts';

interface KeptFiles {
  readonly stat: number;
  readonly children: number;
}

/**
 * Files get the lowest number there is. From this share of those that may be open on nothing is kept any more, so that
 * there are enough for what cannot do without.
 */
const shareMax = 1 / 3;

/** One for all: what is said of one process is short, and a thousand children are ten thousand bytes. */
let room = Buffer.alloc(4_096);

export class KeptProcesses {
  readonly #root: string;
  readonly #kept = new Map<number, KeptFiles>();
  readonly #most: () => number;

  /** `root` is /proc, and `most` says how many files this process may have open. */
  constructor(root: string, most = openFilesMax) {
    this.#root = root;
    this.#most = most;
  }

  /** The returned function lets go. Where files cannot be opened, or many are open, nothing is kept. */
  keep(pid: number): () => void {
    const opened: number[] = [];
    const open = (path: string): number => {
      const fd = openSync(path, 'r');
      opened.push(fd);
      if (fd > this.#most() * shareMax) throw new Error('Too many files are open to keep one more.');
      return fd;
    };
    try {
      const folder = `${this.#root}/${pid}`;
      const files = { stat: open(`${folder}/stat`), children: open(`${folder}/task/${pid}/children`) };
      this.#kept.set(pid, files);
      return () => {
        if (this.#kept.get(pid) === files) this.#kept.delete(pid);
        closeAll(opened);
      };
    } catch {
      closeAll(opened);
      return () => {};
    }
  }

  /** The line of its stat, empty when it has ended; null when it is not kept. */
  stat(pid: number): string | null {
    const files = this.#kept.get(pid);
    return files === undefined ? null : readWhole(files.stat);
  }

  /** The pids of the children of its first thread, none when it has ended; null when it is not kept. */
  children(pid: number): string | null {
    const files = this.#kept.get(pid);
    return files === undefined ? null : readWhole(files.children);
  }
}

let openFilesKnown: number | undefined;

/** Asked for once, because Bun sets it when it starts; Infinity where the system does not tell. */
function openFilesMax(): number {
  openFilesKnown ??= readOpenFilesMax();
  return openFilesKnown;
}

function readOpenFilesMax(): number {
  try {
    const said = /^Max open files +(\d+)/m.exec(readFileSync('/proc/self/limits', 'latin1'))?.[1];
    return said === undefined ? Number.POSITIVE_INFINITY : Number(said);
  } catch {
    return Number.POSITIVE_INFINITY;
  }
}

/** Twice would close what has got the same numbers meanwhile. */
function closeAll(files: number[]): void {
  for (const fd of files.splice(0)) closeSync(fd);
}

/** To the end, and from the start again each time: a page at a time is what the system says of a long list. */
function readWhole(fd: number): string {
  try {
    for (let got = 0; ; ) {
      if (got === room.length) room = Buffer.concat([room], 2 * room.length);
      const count = readSync(fd, room, got, room.length - got, got);
      if (count === 0) return room.toString('latin1', 0, got);
      got += count;
    }
  } catch (error) {
    // It has ended, and whoever had to know does.
    if (errorCode(error) === 'ESRCH') return '';
    throw error;
  }
}
