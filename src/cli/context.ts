/** What all commands share: the context of a command line, failures, confirmations and exit codes. */
import { type AppContext, findDataRoot } from '../app/app-context.ts';
import { adviceText } from '../core/advice.ts';
import { errorText, type Failure, fail, ok, type Result } from '../core/failure.ts';
import { programName } from '../core/program-name.ts';
import { LogLost } from '../store/system-failure.ts';
import { createRealWorld } from '../system/real-world.ts';
import type { World } from '../system/world.ts';
import { safeLine } from '../view/terminal-text.ts';
import {
  createOutput,
  type Output,
  type OutputStream,
  standardError,
  standardInputIsTerminal,
  standardOutput,
} from './output.ts';

/** Message and next step are cut separately, so that a long message never hides the next step. */
const sentenceColumnsMax = 1000;
const problemsShownMax = 100;

export interface Context extends AppContext {
  readonly stdout: Output;
  readonly stderr: Output;
  readonly stdinIsTerminal: boolean;
  /** The data folder is deleted when the command ends, so no suggestion may refer to it. */
  readonly leavesNothing?: true;
  run(work: () => CommandResult | Promise<CommandResult>): Promise<void>;
  code: ExitCode;
}

/** The outcome of a command: an exit code, nothing for success, or a failure. */
// biome-ignore lint/suspicious/noConfusingVoidType: most commands end without a value.
export type CommandResult = ExitCode | Result<ExitCode> | void;

/** Thrown by `refuse` and `need`; `Context.run` reports it. */
export class Refusal extends Error {
  readonly failure: Failure;

  constructor(failure: Failure) {
    super(failure.message);
    this.failure = failure;
  }
}

export function refuseWith(failure: Failure): never {
  throw new Refusal(failure);
}

export function refuse(...why: Parameters<typeof fail>): never {
  throw new Refusal(fail(...why).failure);
}

export function need<T>(result: Result<T>): T {
  return result.ok ? result.value : refuseWith(result.failure);
}

/** Turns a thrown refusal into a result, for callers that continue after it. */
export async function attempt<T>(work: () => T | Promise<T>): Promise<Result<T>> {
  try {
    return ok(await work());
  } catch (error) {
    if (error instanceof Refusal) return { ok: false, failure: error.failure };
    throw error;
  }
}

export interface TerminalEnvironment {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly stdout: OutputStream;
  readonly stderr: OutputStream;
  stdinIsTerminal(): boolean;
  cwd(): string;
}

function ownSurroundings(): TerminalEnvironment {
  return {
    env: process.env,
    stdout: standardOutput(),
    stderr: standardError(),
    stdinIsTerminal: standardInputIsTerminal,
    cwd: () => process.cwd(),
  };
}

export function createContext(packageRoot: string, surroundings = ownSurroundings()): Context {
  const { env } = surroundings;
  const stderr = createOutput(surroundings.stderr, env);
  let world: World | undefined;
  return {
    env,
    // Read on demand, because the folder may have been removed and most commands do not need it.
    get cwd() {
      return surroundings.cwd();
    },
    packageRoot,
    stdout: createOutput(surroundings.stdout, env),
    stderr,
    notes: stderr,
    get stdinIsTerminal() {
      return surroundings.stdinIsTerminal();
    },
    get world() {
      world ??= createRealWorld();
      return world;
    },
    root() {
      return findDataRoot(this.world, env);
    },
    async run(work) {
      const done = await attempt(work);
      const result = done.ok ? (done.value ?? exitCode.done) : done;
      if (typeof result === 'number') this.code = result;
      else if (result.ok) this.code = result.value;
      else {
        sayFailure(stderr, result.failure);
        this.code = exitCodeFor(result.failure);
      }
    },
    code: exitCode.done,
  };
}

/** For commands with --json: text for people goes to stderr, so that stdout is the document alone. */
export function besideDocument(context: Context): Context {
  return Object.create(context, { stdout: { value: context.stderr } }) as Context;
}

/** Waits until all output is written. Lost output is a failure, unless the reader closed the pipe. */
export async function finishOutput(context: Context): Promise<void> {
  const { stdout, stderr } = context;
  await stdout.flush();
  if (stdout.trouble !== null) {
    const message = `Writing to standard output failed: ${stdout.trouble}.`;
    const next = 'Free disk space, or redirect the output.';
    sayFailure(stderr, fail('write-failed', message, next).failure);
    if (context.code === exitCode.done) context.code = exitCode.failed;
  }
  await stderr.flush();
}

/** Prints what went wrong and what to do next, in one line. A list of problems keeps its lines. */
export function sayFailure(stderr: Output, failure: Failure): void {
  // Only a list has several lines. A line break in a path must not look like a second message.
  const parts = failure.isList ? failure.message.split('\n') : [failure.message];
  const [first = '', ...problems] = parts.map((text) => safeLine(text, sentenceColumnsMax));
  const next = safeLine(adviceText(failure.next), sentenceColumnsMax);
  if (problems.length === 0) {
    stderr.line(`${programName}: ${`${first} ${next}`.trim()}`);
    return;
  }
  const hidden = problems.length - problemsShownMax;
  stderr.line(`${programName}: ${first}`);
  for (const problem of problems.slice(0, problemsShownMax)) stderr.line(problem);
  if (hidden > 0) stderr.line(`and ${hidden} more`);
  if (next !== '') stderr.line(next);
}

/** Reports an exception: a system error by its code, anything else as a bug of this program. */
export function sayException(context: Pick<Context, 'stderr' | 'env'>, error: unknown): void {
  sayFailure(context.stderr, exceptionFailure(error));
  if (context.env.CLAUDE_CODE_AGENT_DEBUG === '1' && error instanceof Error) {
    const lines = (error.stack ?? error.message).split('\n');
    context.stderr.lines(lines.map((line) => `  ${safeLine(line, 400)}`));
  }
}

function exceptionFailure(error: unknown): Failure {
  if (error instanceof LogLost) return error.failure;
  const { code, path, syscall } = error as { code?: unknown; path?: unknown; syscall?: unknown };
  if (syscall === 'uv_cwd') {
    const next = 'Change to another folder, then run the command again.';
    return fail('not-found', 'The current folder no longer exists.', next).failure;
  }
  if (typeof code === 'string' && /^E[A-Z0-9]+$/.test(code)) {
    const where = typeof path === 'string' ? ` at ${path}` : '';
    const next = 'Check the permissions and the free disk space, then run the command again.';
    return fail('write-failed', `The system refused ${syscall ?? 'a call'}${where}: ${code}.`, next).failure;
  }
  const next = 'This is a bug. Set CLAUDE_CODE_AGENT_DEBUG=1 for details.';
  return fail('internal', `Unexpected error: ${errorText(error)}.`, next).failure;
}

/** False = the user declined. Fails with `usage` without a terminal. */
export async function confirmed(context: Context, question: string, isAnswered: boolean): Promise<boolean> {
  if (isAnswered) return true;
  if (!context.stdinIsTerminal || !context.stdout.isTerminal) {
    const message = `Confirmation is needed, but there is no terminal: ${question}`;
    return refuse('usage', message, 'Give --force or --yes to skip the question.');
  }
  // `prompt` bypasses our buffers, so write what is buffered first.
  await context.stdout.flush();
  return confirm(question);
}

export const exitCode = {
  /** Done; for `group run` and `group resume`: every session completed. */
  done: 0,
  /** The group ended failed, or the command failed. */
  failed: 1,
  /** Usage or bad input: nothing was started. */
  usage: 2,
  /** The group is paused or not finished; `group resume` continues it. */
  paused: 3,
  /** Another live runner holds the group. */
  busy: 4,
  /** Interrupted twice by the user. */
  interrupted: 130,
} as const;

export type ExitCode = (typeof exitCode)[keyof typeof exitCode];

export function exitCodeFor(failure: Failure): ExitCode {
  switch (failure.reason) {
    case 'busy':
      return exitCode.busy;
    case 'usage':
    case 'config-invalid':
    case 'not-found':
    case 'ambiguous':
    case 'cycle':
    case 'unknown-dependency':
    case 'duplicate':
    case 'project-missing':
    case 'claude-missing':
    case 'claude-unproven':
    case 'not-logged-in':
      return exitCode.usage;
    default:
      return exitCode.failed;
  }
}

/** The exit code of `group run` and `group watch` for a final status. */
export function exitCodeForStatus(status: string): ExitCode {
  if (status === 'completed' || status === 'archived') return exitCode.done;
  return status === 'failed' ? exitCode.failed : exitCode.paused;
}

export function knownExitCode(code: number): ExitCode {
  return Object.values(exitCode).find((known) => known === code) ?? exitCode.failed;
}
