/**
 * `--detach`: the runner becomes a process in a session of its own, which no terminal can end, and this command returns
 * once it runs the group. What such a runner prints goes into a log file of the group.
 */

import { join, resolve } from 'node:path';
import { whileBusy } from '../control/busy.ts';
import type { GroupReference } from '../control/resolve.ts';
import { LogReader } from '../control/watch/log-reader.ts';
import { commandText } from '../core/advice.ts';
import { fail, ok, type Result } from '../core/failure.ts';
import { safeJson, safeLine } from '../report/terminal-text.ts';
import type { GroupPaths } from '../store/paths.ts';
import { isObject, parseJson } from '../store/shape.ts';
import { delay } from '../world/clock.ts';
import { ownCommand } from '../world/own-program.ts';
import type { ExitStatus, RunningProcess, World } from '../world/world.ts';
import type { Context, Work } from './context.ts';
import { type ExitCode, exitCode } from './exit-code.ts';
import type { ConfigOptions } from './options/group-options.ts';
import type { RunWish } from './options/run-options.ts';

const lookMs = 25;
/** Of what a runner that was refused has printed. */
const saidBytesMax = 20_000;
const sentenceColumnsMax = 1_000;

/** What came of it: a runner that runs the group, or one that refused and what it said. */
export type Detached =
  | { readonly kind: 'running'; readonly pid: number; readonly log: string }
  | { readonly kind: 'refused'; readonly code: ExitCode; readonly said: readonly string[] };

type Place = Pick<Context, 'world' | 'env' | 'cwd' | 'packageRoot'>;

/** Starts a runner of its own for the group; the exit code is that of its refusal when it does not begin to run. */
export async function runDetached(context: Context, group: GroupReference, wish: RunWish): Promise<Work> {
  const { stdout, stderr } = context;
  const { groupId } = group;
  const started = await whileBusy(context, 'Starting the runner', () => startDetached(context, group, wish));
  if (!started.ok) return started;
  if (started.value.kind === 'refused') {
    for (const line of started.value.said) stderr.line(line);
    return ok(started.value.code);
  }
  const { pid, log } = started.value;
  if (wish.output === 'json') stdout.line(safeJson({ groupId, pid, log }));
  else stdout.line(groupId);
  if (wish.output !== 'json' && wish.output !== 'quiet') sayHowToGoOn(context, groupId, pid, log);
  if (wish.notify) stderr.line('A detached run has no terminal to notify; an onEvent command is told of events.');
  return ok(exitCode.done);
}

/** Resolves when the runner runs the group or has refused to. Fails when it ended and did not say why. */
export async function startDetached(place: Place, group: GroupReference, wish: RunWish): Promise<Result<Detached>> {
  const { world } = place;
  const log = logFileFor(world, group.paths.runnerLogs);
  const events = new LogReader(world, group.paths.events);
  const started = startRunner(place, group, wish, log);
  if (!started.ok) return started;
  const outcome = await beginning(world, group.paths, events, started.value);
  if (outcome !== 'running') return refused(world, outcome, log);
  return ok({ kind: 'running', pid: started.value.identity.pid, log });
}

/** One for each runner: those that come at the same time are not to be mistaken for each other. */
function logFileFor(world: World, folder: string): string {
  world.files.makeFolder(folder);
  const time = new Date(world.clock.now()).toISOString().slice(0, 19).replace(/[-:]/g, '').replace('T', '-');
  return join(folder, `${time}-${world.random.uuid().slice(0, 8)}.log`);
}

function sayHowToGoOn({ stderr }: Context, groupId: string, pid: number, log: string): void {
  stderr.line(`It runs on its own (pid ${pid}), whatever becomes of this terminal.`);
  stderr.line(`Watch it: ${commandText(['group', 'watch', groupId])}`);
  stderr.line(`Pause it: ${commandText(['group', 'pause', groupId])}`);
  stderr.line(`Its log:  ${safeLine(log, sentenceColumnsMax)}`);
}

function startRunner(
  { world, env, cwd, packageRoot }: Place,
  { groupId }: GroupReference,
  wish: RunWish,
  log: string,
): Result<RunningProcess> {
  const { program, args } = ownCommand('main', packageRoot);
  const kept: Record<string, string> = {};
  for (const [name, value] of Object.entries(env)) if (value !== undefined) kept[name] = value;
  return world.processes.spawn({
    program,
    args: [...args, 'group', 'run', groupId, ...runArguments(wish, cwd)],
    cwd,
    env: kept,
    stdoutFile: log,
    stderrFile: log,
  });
}

/** The words of a command line that ask for the same run, in this process's place. */
export function runArguments({ config, rehearse, retryFailed }: RunWish, cwd: string): string[] {
  const words: string[] = [];
  for (const [name, value] of Object.entries(config) as [keyof ConfigOptions, unknown][]) {
    if (value === undefined) continue;
    const flag = name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
    if (typeof value === 'boolean') words.push(value ? `--${flag}` : `--no-${flag}`);
    else if (name === 'minFreeMemory') words.push(`--${flag}=${Math.round(Number(value) / 1_000_000)}`);
    else words.push(`--${flag}=${value}`);
  }
  if (retryFailed) words.push('--retry-failed');
  if (rehearse !== undefined) words.push(rehearse === true ? '--rehearse' : `--rehearse=${resolve(cwd, rehearse)}`);
  return [...words, '--output=text'];
}

/**
 * How the runner ended, or that it runs the group: it holds the lock, everything it needs was found, and whoever lists
 * groups sees it.
 */
async function beginning(
  world: World,
  paths: GroupPaths,
  events: LogReader,
  runner: RunningProcess,
): Promise<'running' | ExitStatus> {
  let exit: ExitStatus | null = null;
  runner.onExit((status) => {
    exit = status;
  });
  const { pid, startTime } = runner.identity;
  for (;;) {
    // Asked before the log is read: what was logged before the end is then seen for certain.
    const ended: ExitStatus | null = exit;
    events.read();
    const run = events.state?.run?.runner;
    const isOurs = run?.pid === pid && run.startTime === startTime;
    if (isOurs && (ended !== null || isListed(world, paths, events.state?.status))) return 'running';
    if (ended !== null) return ended;
    await delay(world.clock, lookMs);
  }
}

/** Snapshots come a moment later than the log. */
function isListed({ files }: World, { meta }: GroupPaths, status: string | undefined): boolean {
  const snapshot = parseJson(files.readText(meta) ?? '');
  return isObject(snapshot) && snapshot.status === status;
}

/** What the runner said, harmless, and the code with which it ended. */
function refused(world: World, status: ExitStatus, log: string): Result<Detached> {
  const said = new TextDecoder().decode(world.files.readBytes(log, 0, saidBytesMax));
  const lines = said.split('\n').filter((line) => line.trim() !== '');
  world.files.remove(log);
  const code = status.kind === 'exited' ? Object.values(exitCode).find((known) => known === status.code) : undefined;
  if (code !== undefined && lines.length > 0) {
    return ok({ kind: 'refused', code, said: lines.map((line) => safeLine(line, sentenceColumnsMax)) });
  }
  const how = status.kind === 'signalled' ? `was ended by ${status.signal}` : 'ended';
  return fail('internal', `The runner ${how} before it began.`, 'Try again, or run the group without --detach.');
}
