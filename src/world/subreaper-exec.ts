/**
 * A program of its own: starts another program such that whatever loses its parent stays below this process. On Linux a
 * process that is left behind goes to the nearest ancestor that asked for it, and that wish survives an exec. So tools
 * that a worker starts cannot leave its tree, not even by daemonising with an emptied environment.
 *
 * `become` is for machines where subreaper-image.ts cannot be used.
 *
 * Usage: subreaper-exec.ts become|supervise PROGRAM ARGUMENT... (absolute path), or keep PARENT GROUP PROGRAM
 * ARGUMENT... `become` turns this process into the program; `supervise` waits for it and ends all that it left; `keep`
 * does so with the environment that keeper.ts describes, and with what is in the control group GROUP (its folder, or
 * empty); it starts nothing when PARENT is not its parent any more. Ends with 127 when it cannot be executed.
 */
import { dlopen, ptr } from 'bun:ffi';
import { linuxNames } from './libc-names.ts';

const childSubreaper = 36;
/** SIGPIPE and SIGXFSZ: Bun ignores them, and what is ignored stays so across an exec. */
const ignoredByBun = [13, 25];
const defaultAction = null;
const anyChild = -1;
const doNotWait = 1;

const [manner, ...given] = process.argv.slice(2);
const isKeeper = manner === 'keep';
const words = isKeeper ? given.slice(2) : given;
const [program] = words;
/** Takes in all children that have ended; false when there is none left. */
let hasChildren: (() => boolean) | null = null;

for (const name of linuxNames) {
  if (program === undefined) break;
  try {
    const { symbols } = dlopen(name, {
      prctl: { args: ['i32', 'u64', 'u64', 'u64', 'u64'], returns: 'i32' },
      signal: { args: ['i32', 'ptr'], returns: 'ptr' },
      waitpid: { args: ['i32', 'ptr', 'i32'], returns: 'i32' },
      execv: { args: ['ptr', 'ptr'], returns: 'i32' },
    } as const);
    symbols.prctl(childSubreaper, 1n, 0n, 0n, 0n);
    hasChildren = () => {
      let answer: number;
      do answer = symbols.waitpid(anyChild, null, doNotWait);
      while (answer > 0);
      return answer === 0;
    };
    if (manner === 'supervise' || isKeeper) break;
    for (const signal of ignoredByBun) symbols.signal(signal, defaultAction);
    const texts = words.map((word) => Buffer.from(`${word}\0`));
    const argv = new BigUint64Array([...texts.map((text) => BigInt(ptr(text))), 0n]);
    symbols.execv(ptr(texts[0] as Buffer), ptr(argv));
  } catch {
    // The next name of the library may be the one this system knows.
  }
}
if ((manner === 'supervise' || isKeeper) && program !== undefined) {
  const [{ keptEnvironment }, { supervise }] = await Promise.all([
    import('./processes/keeper.ts'),
    import('./processes/supervise.ts'),
  ]);
  // Whoever wanted it has died, and nobody would know that it runs.
  if (isKeeper && process.ppid !== Number(given[0])) process.exit(127);
  const env = isKeeper ? keptEnvironment(process.env) : process.env;
  await supervise(words, { env, group: isKeeper ? (given[1] ?? '') : '', hasChildren });
}
process.stderr.write(`cannot execute ${program ?? 'nothing'}\n`);
process.exit(127);
