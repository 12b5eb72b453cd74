/**
 * Runs the program like src/main.ts but in the test's process: a separate process costs a tenth of a second of CPU, and
 * the tests run thousands of commands.
 */
import { Writable } from 'node:stream';
import manifest from '../../package.json' with { type: 'json' };
import { createContext } from '../../src/cli/context.ts';
import { runToEnd } from '../../src/cli/program.ts';
import type { World } from '../../src/system/world.ts';
import { fixtureRoot } from './group-fixture.ts';
import { isLongRun } from './long.ts';
import { checkPrinted } from './printed-commands.ts';

export interface ProgramResult {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface ProgramCall {
  readonly args: readonly string[];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Absent = the real one. */
  readonly world?: World;
}

/** These run until something else happens, are called by another program, or print through a library. */
const families = 'hook (?:all|cpm|faber|handover)|group (?:run|resume|watch)';
const outside = new RegExp(`^(?:run|stop|complete|watch|resume|try|rehearsal-serve|${families})(?: |$)`);
const tried = new Set<string>();
let isBusy = false;

/**
 * Whether a refused command line may run here. Not the first of its kind in a process, so that each command is still
 * started as a user starts it; nor one that runs next to another, because they must see each other as processes; nor
 * one that reads standard input. In a long run none does.
 */
export function mayBeRefusedInProcess(args: readonly string[]): boolean {
  if (isLongRun || isBusy || args.includes('-')) return false;
  const kind = args.slice(0, 2).join(' ');
  const isKnown = tried.has(kind);
  tried.add(kind);
  return isKnown;
}

/** The same for a command that may succeed. */
export function mayRunInProcess(args: readonly string[]): boolean {
  return !outside.test(args.join(' ')) && mayBeRefusedInProcess(args);
}

/** Runs it to its end: exit code and output. */
export async function runInProcess({ args, cwd, env, world }: ProgramCall): Promise<ProgramResult> {
  const stdout = collector();
  const stderr = collector();
  const own = { stdinIsTerminal: () => false, cwd: () => cwd };
  const surroundings = { ...own, env, stdout: stdout.stream, stderr: stderr.stream };
  isBusy = true;
  try {
    const context = createContext(fixtureRoot, surroundings);
    if (world !== undefined) Object.defineProperty(context, 'world', { value: world });
    const code = await runToEnd(context, args, manifest.version);
    const finished = { code, stdout: stdout.text(), stderr: stderr.text() };
    if (!args.includes('--json')) await checkPrinted(finished.stdout + finished.stderr);
    return finished;
  } finally {
    isBusy = false;
  }
}

function collector() {
  const parts: Buffer[] = [];
  const stream = new Writable({
    write(part: Buffer, _encoding, done) {
      parts.push(part);
      done();
    },
  });
  return { stream, text: () => Buffer.concat(parts).toString() };
}
