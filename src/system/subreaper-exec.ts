/**
 * A program of its own: does what subreaper-image.ts does, where there can be no image. On Linux a process that is left
 * behind goes to the nearest ancestor that asked for it, and that wish survives an exec. So tools that a worker starts
 * cannot leave its tree, not even by daemonising with an emptied environment.
 *
 * Usage: subreaper-exec.ts become|release PROGRAM ARGUMENT... (absolute path). Both turn this process into the program:
 * with `become` it gets the orphans of what it starts, with `release` it is in a session of its own and has the
 * environment that keeper.ts describes. A runner of an earlier version, which goes on while it is replaced, says
 * `supervise PROGRAM ARGUMENT...` or `keep PARENT GROUP PROGRAM ARGUMENT...` for a keeper. Ends with 127 when it cannot
 * be executed.
 */
import { dlopen, ptr } from 'bun:ffi';
import { linuxNames } from './libc-names.ts';

const childSubreaper = 36;
const signalsEnd = 32;
const defaultAction = null;
/** By which an earlier version marked what it handed on, before the name of the variable. */
const earlierPrefix = 'KEPT_';

const [manner, ...given] = process.argv.slice(2);
const isEarlier = manner === 'keep' || manner === 'supervise';
const { command, env } = await prepare();

for (const name of linuxNames) {
  if (command[0] === undefined) break;
  try {
    const { symbols } = dlopen(name, {
      setsid: { args: [], returns: 'i32' },
      prctl: { args: ['i32', 'u64', 'u64', 'u64', 'u64'], returns: 'i32' },
      signal: { args: ['i32', 'ptr'], returns: 'ptr' },
      execve: { args: ['ptr', 'ptr', 'ptr'], returns: 'i32' },
    } as const);
    symbols.setsid();
    symbols.prctl(childSubreaper, manner === 'release' ? 0n : 1n, 0n, 0n, 0n);
    // Bun ignores some, and a shell others for what it starts; what is ignored stays so across an exec.
    for (let signal = 1; signal < signalsEnd; signal += 1) symbols.signal(signal, defaultAction);
    const kept: Buffer[] = [];
    const list = (texts: readonly string[]): BigUint64Array => {
      const bytes = texts.map((text) => Buffer.from(`${text}\0`));
      kept.push(...bytes);
      return new BigUint64Array([...bytes.map((text) => BigInt(ptr(text))), 0n]);
    };
    const [argv, envp] = [list(command), list(Object.entries(env).map(([key, value = '']) => `${key}=${value}`))];
    symbols.execve(ptr(kept[0] as Buffer), ptr(argv), ptr(envp));
  } catch {
    // The next name of the library may be the one this system knows.
  }
}
process.stderr.write(`cannot execute ${command[0] ?? 'nothing'}\n`);
process.exit(127);

async function prepare(): Promise<{ command: string[]; env: Record<string, string | undefined> }> {
  if (manner === 'become') return { command: given, env: process.env };
  const { keeperCommand, keeperEnvironment, keeperMark, keptEnvironment } = await import('./processes/keeper.ts');
  if (!isEarlier) return { command: given, env: keptEnvironment(process.env) };
  const isKeeper = manner === 'keep';
  const [parent, group = '', ...program] = isKeeper ? given : [String(process.ppid), '', ...given];
  const entries = Object.entries(process.env);
  const kept = entries.filter(([key]) => key.startsWith(earlierPrefix));
  const handedOn = kept.map(([key, value]) => [key.slice(earlierPrefix.length), value] as const);
  const { ownCommand } = await import('./own-program.ts');
  const own = ownCommand('subreaper');
  return {
    command: keeperCommand(Number(parent), group, [own.program, ...own.args, 'release', ...program]),
    env: keeperEnvironment(process.env[keeperMark] ?? null, isKeeper ? Object.fromEntries(handedOn) : process.env),
  };
}
