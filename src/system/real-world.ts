/** The World of a real machine, put together from its parts. */
import { availableParallelism } from 'node:os';
import { assert } from '../core/failure.ts';
import { createClock } from './clock.ts';
import { createFiles, watchPath } from './files.ts';
import { createFifos, createLocks } from './libc.ts';
import { freeMemoryBytes, isPortFree } from './machine.ts';
import { createProcTable } from './processes/proc-table.ts';
import { createProcesses } from './processes/processes.ts';
import type { World } from './world.ts';

/** Throws when the system does not list its processes: our workers could not be identified then. */
export function createRealWorld(options: { readonly adoptsOrphans?: boolean } = {}): World {
  const processes = createProcesses(createProcTable(), options);
  const self = processes.identify(process.pid);
  assert(self !== null, 'this process is not in the process table');
  return {
    clock: createClock(),
    files: { ...createFiles(), watch: watchPath },
    processes,
    fifos: createFifos(),
    locks: createLocks((holder) => processes.isAlive(holder.identity)),
    random: { uuid: () => crypto.randomUUID(), fraction: () => Math.random() },
    machine: {
      host: self.host,
      bootId: self.bootId,
      cores: availableParallelism(),
      freeMemoryBytes,
      isPortFree,
      self,
    },
  };
}
