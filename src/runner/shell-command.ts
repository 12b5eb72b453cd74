/**
 * Runs a command line of the user's (`setup`, `accept`) in a folder, with a log of its own. Like a worker it bears the
 * attempt's mark, so that whatever it leaves behind, also when we die, is found and ended.
 */
import { attemptMark } from '../claude/environment.ts';
import type { World } from '../world/world.ts';
import { gatherProcesses, reap } from './reap.ts';

/** As much of the end of the log is told to people and to the model. */
const tailBytes = 6_000;
const tickMs = 1_000;

export interface ShellCommand {
  /** For `/bin/sh -c`. */
  readonly command: string;
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  /** Appended to. */
  readonly logFile: string;
  readonly timeoutMs: number;
  /** Value of CLAUDE_CODE_AGENT_ATTEMPT. */
  readonly mark: string;
  /** What it reads as its input; absent = nothing. */
  readonly inputFile?: string;
}

export interface CommandEnd {
  readonly ok: boolean;
  /** Null when it was ended by a signal, or could not be started. */
  readonly exitCode: number | null;
  readonly timedOut: boolean;
  /** The end of what it printed. */
  readonly tail: string;
}

export interface RunningCommand {
  /** Settles when nothing of the command lives any more. */
  readonly ended: Promise<CommandEnd>;
  /** Ends it; `ended` settles as if it had failed. */
  stop(): void;
  /** Tells it to end and looks no further: for a runner that leaves at once, and whose successor looks again. */
  abandon(): void;
  /** While it is halted the time that it may take does not pass. */
  halt(isHalted: boolean): void;
}

/** Starts the command. Never rejects: what cannot be started has failed, and the tail says why. */
export function runShellCommand(world: World, options: ShellCommand): RunningCommand {
  const { command, cwd, logFile, timeoutMs, mark, inputFile } = options;
  const log = world.files.openAppend(logFile);
  log.append(`$ ${command}\n`);
  const { size: offset } = log;
  log.close();
  const { promise: ended, resolve } = Promise.withResolvers<CommandEnd>();
  const spawned = world.processes.spawn({
    program: '/bin/sh',
    args: inputFile === undefined ? ['-c', command] : ['-c', 'exec /bin/sh -c "$1" <"$0"', inputFile, command],
    cwd,
    env: { ...options.env, [attemptMark]: mark },
    stdoutFile: logFile,
    stderrFile: logFile,
    keepsOrphans: true,
  });
  if (!spawned.ok) {
    resolve({ ok: false, exitCode: null, timedOut: false, tail: spawned.failure.message });
    return { ended, stop: () => {}, abandon: () => {}, halt: () => {} };
  }
  const { identity } = spawned.value;
  const gather = () => gatherProcesses(world, mark, identity);
  let known = gather();
  let leftMs = timeoutMs;
  let isHalted = false;
  let isEnding = false;
  let isAbandoned = false;
  const end = (): void => {
    if (isEnding) return;
    isEnding = true;
    void reap(world, mark, [...known, ...gather()]);
  };
  let cancel = () => {};
  // Counted by ticks, so that neither a jump of the clock nor a machine that slept ends a command that works.
  const tick = (): void => {
    if (!isHalted) leftMs -= tickMs;
    known = gather();
    if (leftMs <= 0) end();
    else cancel = world.clock.after(Math.min(tickMs, leftMs), tick);
  };
  cancel = world.clock.after(Math.min(tickMs, leftMs), tick);
  spawned.value.onExit((status) => {
    cancel();
    if (isAbandoned) return;
    void reap(world, mark, known).then(() => {
      const exitCode = status.kind === 'exited' ? status.code : null;
      const tail = tailOf(world, logFile, offset);
      resolve({ ok: exitCode === 0 && !isEnding, exitCode, timedOut: leftMs <= 0, tail });
    });
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
    },
  };
}

function tailOf(world: World, logFile: string, offset: number): string {
  const size = world.files.info(logFile)?.size ?? offset;
  const from = Math.max(offset, size - tailBytes);
  const text = new TextDecoder().decode(world.files.readBytes(logFile, from, tailBytes)).trimEnd();
  // A cut in the middle of a line shows only the rest of it.
  return from > offset ? text.slice(text.indexOf('\n') + 1) : text;
}
