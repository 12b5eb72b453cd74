/**
 * Files of /proc that stay open, for processes that are looked at again and again: most of such a look is the way to
 * the file. What is kept tells of the process it was opened for and of no other, whoever gets its pid.
 */
import { closeSync, openSync, readSync } from 'node:fs';
import { errorCode } from './system-error.ts';

interface KeptFiles {
  readonly stat: number;
  readonly children: number;
}

/** One for all: what is said of one process is short, and a thousand children are ten thousand bytes. */
let room = Buffer.alloc(4_096);

export class KeptProcesses {
  readonly #root: string;
  readonly #kept = new Map<number, KeptFiles>();

  /** `root` is /proc. */
  constructor(root: string) {
    this.#root = root;
  }

  /** The returned function lets go. Where they cannot be opened, with too many files open perhaps, nothing is kept. */
  keep(pid: number): () => void {
    const opened: number[] = [];
    const open = (path: string): number => {
      const fd = openSync(path, 'r');
      opened.push(fd);
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
