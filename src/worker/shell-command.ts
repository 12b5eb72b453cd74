/** Runs a user's shell command with a log, a timeout and the attempt's mark. */
import { attemptMark } from '../claude/launch/environment.ts';
import { cleanLine } from '../claude/text.ts';
import type { Failure } from '../core/failure.ts';
import type { World } from '../system/world.ts';
import { gatherProcesses, reap } from './reap.ts';

/** Length of the output's end that users and the model see. */
const tailBytes = 6_000;
/** Protects the disk from endless output. */
const printedMiBMax = 64;
const printedBytesMax = printedMiBMax * 1024 * 1024;
/** The log's size is checked often, because a command can write hundreds of megabytes per second. */
const tickMs = 250;

export interface ShellCommand {
  /** For `/bin/sh -c`. */
  readonly command: string;
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  /** Output is appended. */
  readonly logFile: string;
  readonly timeoutMs: number;
  /** Value of CLAUDE_CODE_AGENT_ATTEMPT. */
  readonly mark: string;
  /** File for its standard input; absent = empty. */
  readonly inputFile?: string;
}

export interface CommandEnd {
  readonly ok: boolean;
  /** Null when ended by a signal or not started. */
  readonly exitCode: number | null;
  readonly timedOut: boolean;
  /** It was ended after 64 MiB of output. */
  readonly printedTooMuch: boolean;
  readonly tail: string;
  readonly unstarted?: Failure;
}

export interface RunningCommand {
  /** Settles when none of its processes is alive. */
  readonly ended: Promise<CommandEnd>;
  /** Ends it; `ended` settles as if it had failed. */
  stop(): void;
  /** Sends SIGTERM without waiting, for a runner that exits. The next runner cleans up. */
  abandon(): void;
  /** While it is suspended, its timeout does not advance. */
  halt(isHalted: boolean): void;
}

/** Throws when its log cannot be written. */
export function runShellCommand(world: World, options: ShellCommand): RunningCommand {
  const { logFile, timeoutMs, mark } = options;
  const { promise: ended, resolve, reject } = Promise.withResolvers<CommandEnd>();
  const { offset, spawned } = spawnShell(world, options);
  if (!spawned.ok) {
    const { failure: unstarted } = spawned;
    resolve({ ok: false, exitCode: null, timedOut: false, printedTooMuch: false, tail: unstarted.message, unstarted });
    return { ended, stop: () => {}, abandon: () => {}, halt: () => {} };
  }
  const { identity } = spawned.value;
  const gather = () => gatherProcesses(world, mark, [identity]);
  let leftMs = timeoutMs;
  let isHalted = false;
  let ending: Promise<unknown> | null = null;
  let isAbandoned = false;
  let isGone = false;
  let printedTooMuch = false;
  const end = (): void => {
    // After the exit, the remaining processes are being ended already.
    if (!isGone) ending ??= reap(world, mark, [identity]);
  };
  let cancel = () => {};
  // Counted by ticks, so that neither a clock jump nor a sleep of the machine ends a running command.
  const tick = (): void => {
    if (!isHalted) leftMs -= tickMs;
    // Record its processes now: they may leave the process tree later.
    world.processes.findContained(mark);
    printedTooMuch = (world.files.info(logFile)?.size ?? 0) - offset > printedBytesMax;
    if (leftMs <= 0 || printedTooMuch) end();
    else cancel = world.clock.after(Math.min(tickMs, leftMs), tick);
  };
  cancel = world.clock.after(Math.min(tickMs, leftMs), tick);
  spawned.value.onExit((status) => {
    isGone = true;
    cancel();
    if (isAbandoned) return;
    // The next command may have the same mark, so wait until this one is cleaned up.
    void Promise.all([reap(world, mark, [identity]), ending])
      .then(() => {
        const exitCode = status.kind === 'exited' ? status.code : null;
        const tail = tailOf(world, logFile, offset);
        if (cutLog(world, logFile, offset)) printedTooMuch = true;
        const isGood = exitCode === 0 && ending === null && !printedTooMuch;
        resolve({ ok: isGood, exitCode, timedOut: leftMs <= 0, printedTooMuch, tail });
      })
      .catch(reject);
  });
  return {
    ended,
    stop: end,
    abandon: () => {
      isAbandoned = true;
      cancel();
      for (const process of gather()) world.processes.signal(process, 'SIGTERM');
    },
    halt: (halted) => {
      isHalted = halted;
      for (const process of gather()) world.processes.signal(process, halted ? 'SIGSTOP' : 'SIGCONT');
    },
  };
}

/** `offset`: bytes of the log before the command's output. */
function spawnShell(world: World, { command, cwd, env, logFile, mark, inputFile }: ShellCommand) {
  const log = world.files.openAppend(logFile);
  log.append(`$ ${command}\n`);
  const { size: offset } = log;
  log.close();
  const streams = { stdoutFile: logFile, stderrFile: logFile };
  const marked = { ...env, [attemptMark]: mark };
  const args = inputFile === undefined ? ['-c', command] : ['-c', 'exec /bin/sh -c "$1" <"$0"', inputFile, command];
  const spawned = world.processes.spawn({ program: '/bin/sh', args, cwd, env: marked, ...streams, contained: mark });
  return { offset, spawned };
}

function tailOf(world: World, logFile: string, offset: number): string {
  const size = world.files.info(logFile)?.size ?? offset;
  const from = Math.max(offset, size - tailBytes);
  const text = new TextDecoder().decode(world.files.readBytes(logFile, from, tailBytes)).trimEnd();
  // Drops the partial line at the cut.
  return from > offset ? text.slice(text.indexOf('\n') + 1) : text;
}

function cutLog({ files }: World, logFile: string, offset: number): boolean {
  if ((files.info(logFile)?.size ?? 0) - offset <= printedBytesMax) return false;
  try {
    files.truncate(logFile, offset + printedBytesMax);
    const log = files.openAppend(logFile);
    log.append(`\n[cut: it printed more than ${printedMiBMax} MiB]\n`);
    log.close();
  } catch {}
  return true;
}

const commandCharsMax = 200;

/** A sentence about the failure of `command`. */
export function commandFailure(name: string, command: string, end: CommandEnd, timeoutMs: number): string {
  const what = `${name} \`${cleanLine(command, commandCharsMax)}\``;
  if (end.printedTooMuch) return `${what} printed more than 64 MiB and was ended.`;
  if (end.timedOut) return `${what} did not end within ${Math.round(timeoutMs / 1000)} seconds.`;
  const how = end.exitCode === null ? 'was ended by a signal or could not be started' : `failed (exit ${end.exitCode})`;
  const said = failureLine(end.tail);
  return said === ''
    ? `${what} ${how} and printed nothing.`
    : `${what} ${how}: ${said.slice(0, 200).replace(/[.\s]+$/, '')}.`;
}

/** Words by which test runners, compilers and package managers mark a failure. */
const failureWords = [
  ...['not ok', 'fail(?:ed|ure)?', 'error', 'ERR!', '[A-Za-z]*(?:Error|Exception)', 'expected', 'panicked', 'fatal'],
  ...['cannot', "can't", 'no such', 'not found', 'unable to'],
];
const failureSign = new RegExp(
  String.raw`^\s*(?:[✖✗✘×●]|E\s{2,}\S)|(?<![\w-])(?:${failureWords.join('|')})(?![\w-])`,
  'i',
);
/** Lines that match but are not failures: passed tests, headings, source lines, zero counts, npm's closing lines. */
const noFailure = new RegExp(
  [
    String.raw`^\s*(?:ok\b|[✓✔√ℹ]|#(?! \w*Error:)|raise |throw |File "|at )`,
    '^[=_-]{3,}(?:$|.*[=_-]{3,}$)',
    '^npm (?:error|ERR!) (?:code|path|errno|syscall|command|workspace|Lifecycle|A complete log)',
    String.raw`\b0 (?:fail|error)|\b(?:fail(?:ed|ures)?|errors?):? 0\b`,
  ].join('|'),
  'i',
);

/** The first line that reports a failure, otherwise the last line. */
export function failureLine(output: string): string {
  const lines = output.trimEnd().split('\n');
  const sign = lines.find((line) => failureSign.test(line) && !noFailure.test(line));
  return (sign ?? lines.at(-1) ?? '').trim();
}
