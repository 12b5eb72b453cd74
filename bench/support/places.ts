/** Where a run of the benchmarks keeps its files: all of them go with it. */
import { join } from 'node:path';
import { packageRoot } from '../../src/system/own-program.ts';

/** Where files are in memory, on Linux. */
export const memoryFolder = '/dev/shm';
/** The smallest program that a runner takes for claude. */
export const tinyClaude = join(import.meta.dir, 'tiny-claude.sh');
/** What is compiled for a run has to lie beside the program. */
export const dist = join(packageRoot, 'dist');

/** What the names of all files and folders of a run begin with that do not lie in a folder of its own. */
export function ownPrefix(runPid: number | string): string {
  return `cca-bench-${runPid}-`;
}
