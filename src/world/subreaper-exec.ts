/**
 * A program of its own: turns its process into another program whose orphans stay below it. On Linux a process that is
 * left behind by its parent goes to the nearest ancestor that asked for it, and that wish survives an exec. So tools
 * that a worker starts cannot leave its tree, not even by daemonising with an emptied environment.
 *
 * Usage: subreaper-exec.ts PROGRAM ARGUMENT... (absolute path). Ends with 127 when the program cannot be executed.
 */
import { dlopen, ptr } from 'bun:ffi';
import { linuxNames } from './libc.ts';

const childSubreaper = 36;
const brokenPipe = 13;
const defaultAction = null;

const words = process.argv.slice(2).map((word) => Buffer.from(`${word}\0`));
const [program] = words;
for (const name of linuxNames) {
  if (program === undefined) break;
  try {
    const { symbols } = dlopen(name, {
      prctl: { args: ['i32', 'u64', 'u64', 'u64', 'u64'], returns: 'i32' },
      signal: { args: ['i32', 'ptr'], returns: 'ptr' },
      execv: { args: ['ptr', 'ptr'], returns: 'i32' },
    } as const);
    symbols.prctl(childSubreaper, 1n, 0n, 0n, 0n);
    // Bun ignores it, and what is ignored stays so across an exec.
    symbols.signal(brokenPipe, defaultAction);
    const argv = new BigUint64Array([...words.map((word) => BigInt(ptr(word))), 0n]);
    symbols.execv(ptr(program), ptr(argv));
  } catch {
    // The next name of the library may be the one this system knows.
  }
}
process.stderr.write(`cannot execute ${process.argv[2] ?? 'nothing'}\n`);
process.exit(127);
