/** The process table of the system at hand: /proc where there is one, ps(1) elsewhere. */
import { existsSync } from 'node:fs';
import { createLinuxTable } from './proc-linux.ts';
import { createPsTable } from './proc-ps.ts';
import type { ProcTable } from './proc-table.ts';

export function createProcTable(): ProcTable {
  return existsSync('/proc/self/stat') ? createLinuxTable('/proc') : createPsTable();
}
