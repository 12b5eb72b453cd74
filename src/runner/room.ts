/** Whether the machine has room for another worker: memory and disk, looked at no more than once a second. */
import { defaultMinFreeMemoryBytes, type GroupConfig } from '../core/group.ts';
import type { Circumstances } from '../core/schedule.ts';
import type { World } from '../world/world.ts';

/** What a worker takes of its own, measured (docs/claude-contract.md): 110 MB and some for what it starts. */
const workerBytes = 120 * 1024 ** 2;
const minFreeDiskBytes = 500 * 1000 ** 2;
const lookMs = 1_000;

/** A function that tells how many more workers may start; `starting` have been spawned but not grown yet. */
export function watchRoom(
  world: World,
  root: string,
): (config: GroupConfig, starting: number) => Circumstances['room'] {
  let lookedAtMs = Number.NEGATIVE_INFINITY;
  let memory = 0;
  let disk = 0;
  return (config, starting) => {
    const now = world.clock.now();
    if (Math.abs(now - lookedAtMs) >= lookMs) {
      lookedAtMs = now;
      memory = world.machine.freeMemoryBytes();
      disk = world.files.freeBytes(root);
    }
    if (disk < minFreeDiskBytes) {
      const message = `Only ${megabytes(disk)} MB are free on the disk of ${root}; waiting for 500 MB.`;
      return { starts: 0, reason: 'disk', message };
    }
    const keep = config.minFreeMemoryBytes ?? defaultMinFreeMemoryBytes;
    const starts = Math.floor((memory - keep) / workerBytes) - starting;
    const message = `Only ${megabytes(memory)} MB of memory are free, of which ${megabytes(keep)} MB are kept free.`;
    return { starts: Math.max(0, starts), reason: 'memory', message };
  };
}

function megabytes(bytes: number): number {
  return Math.floor(bytes / 1000 ** 2);
}
