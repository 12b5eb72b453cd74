/**
 * `--detach`: starts the runner in its own process session, independent of the terminal, and waits until it runs the
 * group. Its output goes to a log file of the group.
 */

import { join, resolve } from 'node:path';
import { groupSettings } from '../../core/definitions.ts';
import { fail, ok, type Result } from '../../core/failure.ts';
import { optionOf, settingText } from '../../core/setting-values.ts';
import { isObject, parseJson } from '../../store/json.ts';
import type { GroupPaths } from '../../store/paths.ts';
import { delay } from '../../system/clock.ts';
import { ownCommand } from '../../system/own-program.ts';
import type { ExitStatus, RunningProcess, World } from '../../system/world.ts';
import { safeLine } from '../../view/terminal-text.ts';
import type { AppContext } from '../app-context.ts';
import type { GroupReference } from '../resolve.ts';
import { followGroup, type GroupFollower } from '../watch/follow-group.ts';
import type { RunOptions } from './run-options.ts';

const lookMs = 25;
const outputBytesMax = 20_000;
const sentenceColumnsMax = 1_000;

export type Detached =
  | { readonly kind: 'running'; readonly pid: number; readonly log: string }
  | { readonly kind: 'refused'; readonly code: number; readonly lines: readonly string[] };

type Here = Pick<AppContext, 'world' | 'env' | 'cwd' | 'packageRoot'>;

/** Resolves when the runner runs the group or has refused. Fails if it ended without a message. */
export async function startDetached(
  context: Here,
  group: GroupReference,
  options: RunOptions,
): Promise<Result<Detached>> {
  const { world } = context;
  const { runnerLogs } = group.paths;
  const log = logFileFor(world, runnerLogs);
  const started = startRunner(context, group, options, log);
  if (!started.ok) return started;
  const events = followGroup(world, group);
  const outcome = await beginning(world, group.paths, events, started.value).finally(() => events.close());
  if (outcome !== 'running') return refused(world, outcome, log);
  return ok({ kind: 'running', pid: started.value.identity.pid, log });
}

/** Unique, because two runners may start at the same time. */
function logFileFor(world: World, folder: string): string {
  world.files.makeFolder(folder);
  const time = new Date(world.clock.now()).toISOString().slice(0, 19).replace(/[-:]/g, '').replace('T', '-');
  return join(folder, `${time}-${world.random.uuid().slice(0, 8)}.log`);
}

function startRunner(
  { world, env, cwd, packageRoot }: Here,
  { groupId }: GroupReference,
  options: RunOptions,
  log: string,
): Result<RunningProcess> {
  const { program, args } = ownCommand('main', packageRoot);
  const kept: Record<string, string> = {};
  for (const [name, value] of Object.entries(env)) if (value !== undefined) kept[name] = value;
  return world.processes.spawn({
    program,
    args: [...args, 'group', 'run', groupId, ...runArguments(options, cwd)],
    cwd,
    env: kept,
    stdoutFile: log,
    stderrFile: log,
  });
}

/** The command line of the same run. */
export function runArguments({ config, rehearse, keep, retryFailed }: RunOptions, cwd: string): string[] {
  const words: string[] = [];
  for (const [name, setting] of Object.entries(groupSettings)) {
    const value = config[name as keyof typeof groupSettings];
    if (value === undefined) continue;
    const option = optionOf(name, setting);
    if (typeof value === 'boolean') words.push(value ? `--${option}` : `--no-${option}`);
    else words.push(`--${option}=${settingText(setting, value)}`);
  }
  if (retryFailed) words.push('--retry-failed');
  if (rehearse !== undefined) words.push(rehearse === true ? '--rehearse' : `--rehearse=${resolve(cwd, rehearse)}`);
  if (keep) words.push('--keep');
  return [...words, '--output=text'];
}

/** Waits until the runner ends, or holds the lock and is listed as running. */
async function beginning(
  world: World,
  paths: GroupPaths,
  events: GroupFollower,
  runner: RunningProcess,
): Promise<'running' | ExitStatus> {
  let exit: ExitStatus | null = null;
  runner.onExit((status) => {
    exit = status;
  });
  const { pid, startTime } = runner.identity;
  for (;;) {
    // Check the runner before the log is read, so that the log includes its last events.
    const ended: ExitStatus | null = exit;
    events.catchUp();
    const run = events.state?.run?.runner;
    const isOurs = run?.pid === pid && run.startTime === startTime;
    if (isOurs && (ended !== null || isListed(world, paths, events.state?.status))) return 'running';
    if (ended !== null) return ended;
    await delay(world.clock, lookMs);
  }
}

/** Snapshots lag behind the log. */
function isListed({ files }: World, { meta }: GroupPaths, status: string | undefined): boolean {
  const snapshot = parseJson(files.readText(meta) ?? '');
  return isObject(snapshot) && snapshot.status === status;
}

function refused(world: World, status: ExitStatus, log: string): Result<Detached> {
  const output = new TextDecoder().decode(world.files.readBytes(log, 0, outputBytesMax));
  const lines = output.split('\n').filter((line) => line.trim() !== '');
  world.files.remove(log);
  if (status.kind === 'exited' && lines.length > 0) {
    return ok({ kind: 'refused', code: status.code, lines: lines.map((line) => safeLine(line, sentenceColumnsMax)) });
  }
  const how = status.kind === 'signalled' ? `was ended by ${status.signal}` : 'ended';
  return fail('internal', `The runner ${how} before it started.`, 'Try again, or run the group without --detach.');
}
