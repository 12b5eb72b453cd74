/** Whether the machine has room for workers: memory, disk, open files; each looked at no more than once a second. */

import { defaultMinFreeMemoryBytes, type GroupConfig } from '../core/group.ts';
import type { SchedulingContext } from '../core/plan/decision.ts';
import { isTableFull } from '../system/system-error.ts';
import type { ReadFile, World } from '../system/world.ts';

/** What a worker takes of its own, measured (docs/claude-contract.md): 110 MB and some for what it starts. */
const workerBytes = 120 * 1024 ** 2;
/** Nothing starts with less. */
const minFreeDiskBytes = 500 * 1000 ** 2;
/** What runs is stopped with less: claude needs some of it to write its conversation down, and we to log that. */
const lowDiskBytes = 250 * 1000 ** 2;
/** With less it is too late: nothing more can be written down, so that an interrupt would only lose the work. */
const fullDiskBytes = 16 * 1000 ** 2;
/** Files that a start holds open at once, and some for what goes on beside it. */
const openedByStart = 32;
const lookMs = 1_000;

export interface Room {
  /** How many more workers may start; `starting` have been spawned but not grown yet. */
  forStarts(config: GroupConfig, starting: number): SchedulingContext['room'];
  /** What running workers write may soon get lost. */
  isDiskLow(): boolean;
}

export function watchRoom(world: World, root: string): Room {
  const memoryBytes = watched(world, () => world.machine.freeMemoryBytes());
  const diskBytes = watched(world, () => world.files.freeBytes(root));
  const mayOpen = watched(world, () => (canOpen(world, root) ? 1 : 0));
  return {
    forStarts(config, starting) {
      if (mayOpen() === 0) {
        const message = 'The table of open files is full (see: ulimit -n); waiting until some are closed.';
        return { starts: 0, reason: 'files', message };
      }
      const disk = diskBytes();
      if (disk < minFreeDiskBytes) {
        const message = `Only ${megabytes(disk)} MB are free on the disk of ${root}; waiting for 500 MB.`;
        return { starts: 0, reason: 'disk', message };
      }
      const memory = memoryBytes();
      const keep = config.minFreeMemoryBytes ?? defaultMinFreeMemoryBytes;
      const starts = Math.floor((memory - keep) / workerBytes) - starting;
      const message = `Only ${megabytes(memory)} MB of memory are free, of which ${megabytes(keep)} MB are kept free.`;
      return { starts: Math.max(0, starts), reason: 'memory', message };
    },
    isDiskLow() {
      try {
        const bytes = diskBytes();
        return bytes < lowDiskBytes && bytes >= fullDiskBytes;
      } catch {
        // A disk that does not even answer this is told of by whoever writes to it next.
        return false;
      }
    },
  };
}

/** Nothing more can be written down below this folder. False when the disk does not answer. */
export function isDiskFull({ files }: Pick<World, 'files'>, folder: string): boolean {
  try {
    return files.freeBytes(folder) < fullDiskBytes;
  } catch {
    return false;
  }
}

/** Whether the system would open so many files more. Other trouble is told of by whoever starts something. */
function canOpen({ files }: World, path: string): boolean {
  const opened: (ReadFile | null)[] = [];
  try {
    for (let count = 0; count < openedByStart; count += 1) opened.push(files.openRead(path));
    return true;
  } catch (error) {
    return !isTableFull(error);
  } finally {
    for (const file of opened) file?.close();
  }
}

function watched(world: World, look: () => number): () => number {
  let lookedAtMs = Number.NEGATIVE_INFINITY;
  let seen = 0;
  return () => {
    const now = world.clock.now();
    if (Math.abs(now - lookedAtMs) >= lookMs) {
      seen = look();
      lookedAtMs = now;
    }
    return seen;
  };
}

function megabytes(bytes: number): number {
  return Math.floor(bytes / 1000 ** 2);
}
