/** `stop --all`: pauses every group of this machine, whoever runs it. */

import type { Command } from '@commander-js/extra-typings';
import { hiddenDamagedWorker, stopDamagedGroup } from '../../control/leftovers.ts';
import { liveRunner } from '../../control/live-runner.ts';
import { tryPath } from '../../control/path-argument.ts';
import { type PauseOutcome, pauseAndTell } from '../../control/pause-group.ts';
import { whileWaiting } from '../../control/request.ts';
import type { GroupReference } from '../../control/resolve.ts';
import { advise, commandText } from '../../core/advice.ts';
import { describeFailure, errorText, type Failure, fail, ok, type Result } from '../../core/failure.ts';
import { safeLine } from '../../report/terminal-text.ts';
import { isGone, listGroups, loadGroup, noSuchGroup } from '../../store/group-store.ts';
import { groupPaths } from '../../store/paths.ts';
import type { Context, Work } from '../context.ts';
import { exitCode } from '../exit-code.ts';
import { resumeText } from '../go-on.ts';

const example = `
Example:
  $ claude-code-agent stop --all
  Paused 20260104-143022-auth-refactor. Go on: claude-code-agent group resume 20260104-143022-auth-refactor`;

const sentenceColumnsMax = 800;
/** A runner that has not answered for so long is not waited for any more. */
const patienceMs = 10_000;

export function define(command: Command, context: Context): void {
  command
    .description(
      'Pauses every group of the data folder that is running, now and resumably, also those without a runner.',
    )
    .option('--all', 'needed, so that nobody stops everything by mistake')
    .addHelpText('after', example)
    .action(({ all }) => context.run(() => stop(context, all === true)));
}

async function stop(context: Context, all: boolean): Promise<Work> {
  if (!all) {
    const next = advise('Give --all to pause every group, or pause one with', ['group', 'pause', 'GROUP']);
    return fail('usage', 'It was not said what to stop.', next);
  }
  const groups = runningGroups(context);
  if (!groups.ok) return groups;
  const { running, unreadable } = groups.value;
  const stopped = await Promise.all(running.map((group) => stopOne(context, group)));
  const still = await Promise.all(unreadable.map((one) => stopUnreadable(context, one)));
  const other = still.every(Boolean) ? '' : 'other ';
  if (running.length === 0) context.stdout.line(`No ${other}group is running.`);
  return ok(unreadable.length === 0 && stopped.every(Boolean) ? exitCode.done : exitCode.failed);
}

/** A group of which nobody can tell whether it is running, and why. */
interface Unreadable {
  readonly group: GroupReference;
  readonly failure: Failure;
}

interface Found {
  readonly running: readonly GroupReference[];
  readonly unreadable: readonly Unreadable[];
}

/** By their logs: what meta.json says may be older than the death of a runner. */
function runningGroups(context: Context): Result<Found> {
  const root = context.root();
  if (!root.ok) return root;
  const { world } = context;
  const running: GroupReference[] = [];
  const unreadable: Unreadable[] = [];
  for (const listing of listGroups(world, root.value)) {
    if (listing.problem === undefined && listing.meta?.status === 'archived') continue;
    const group = { root: root.value, groupId: listing.id, paths: groupPaths(root.value, listing.id) };
    const state = loadGroup(world, root.value, listing.id);
    const isRunning = state.ok
      ? tryPath(() => state.value.status === 'running' || liveRunner(world, group) !== null)
      : null;
    // Deleted since it was listed.
    if (!state.ok && state.failure.reason === 'not-found') continue;
    if (!state.ok) unreadable.push({ group, failure: state.failure });
    else if (isRunning?.ok === false) unreadable.push({ group, failure: unreadableLock(group, isRunning.trouble) });
    else if (isRunning?.value) running.push(group);
  }
  return ok({ running, unreadable });
}

function unreadableLock({ paths }: GroupReference, trouble: string): Failure {
  const message = `The lock file ${paths.lock} ${trouble}.`;
  return fail('corrupt-file', message, 'Check the permissions of file and folder.').failure;
}

/**
 * Its log cannot tell what runs of it, but its runner hears a signal, and what a dead one left can be found. True when
 * nothing of it was running.
 */
async function stopUnreadable({ world, stderr }: Context, { group, failure }: Unreadable): Promise<boolean> {
  const { groupId, paths } = group;
  const say = (text: string) => stderr.line(`${groupId}: ${safeLine(text, sentenceColumnsMax)}`);
  // What can be done about the log, and that nothing was, is said by the command that shows the group.
  const sayDone = (done: string) => say(`${done} ${failure.message} See: ${commandText(['group', 'show', groupId])}`);
  try {
    const runner = liveRunner(world, group) === null ? undefined : world.locks.holder(paths.lock)?.identity;
    if (runner !== undefined) {
      const isTold = runner.host === world.machine.host && world.processes.signal(runner, 'SIGTERM');
      const done = isTold ? `Its runner (process ${runner.pid}) was told to pause it.` : 'Its runner was not reached.';
      sayDone(done);
      return false;
    }
    const lock = world.locks.tryLock(paths.lock, { identity: world.machine.self, runId: world.random.uuid() });
    if (lock === null) {
      sayDone('Another command holds it, so nothing of it was stopped.');
      return false;
    }
    try {
      const hidden = hiddenDamagedWorker(world, groupId, paths);
      if (hidden) {
        sayDone(describeFailure(hidden.failure));
        return false;
      }
      const ended = await stopDamagedGroup(world, paths);
      if (ended === 0) say(describeFailure(failure));
      else sayDone(endedText(ended));
      return ended === 0;
    } finally {
      // Whoever takes it next is told the same as we were.
      if (lock.wasReleased) lock.release();
      else lock.abandon();
    }
  } catch (error) {
    sayDone(`Nothing of it could be stopped: ${errorText(error)}.`);
    return false;
  }
}

/** `ended`: as `stopDamagedGroup` counts them. */
function endedText(ended: number): string {
  if (ended < 0) return 'Some processes that a dead runner left behind could not be ended.';
  return `Ended ${ended === 1 ? '1 process' : `${ended} processes`} that a dead runner left behind.`;
}

/** True when nothing of the group runs any more. One that cannot be stopped does not keep the others running. */
async function stopOne(context: Context, group: GroupReference): Promise<boolean> {
  const { groupId } = group;
  try {
    const paused = await whileWaiting(context, group, pauseAndTell(context, group, 'now'), {
      afterMs: patienceMs,
      outcome: fail('busy', 'Its runner does not answer, so it was not stopped.', 'It stops when its runner goes on.'),
    });
    if (paused.ok) {
      context.stdout.line(describe(context, group, paused.value.outcome));
      for (const warning of paused.value.warnings) context.stderr.line(warning);
      return true;
    }
    context.stderr.line(`${groupId}: ${safeLine(describeFailure(paused.failure), sentenceColumnsMax)}`);
  } catch (error) {
    const gone = isGone(context.world, group.paths) ? noSuchGroup(groupId).failure : null;
    const why = gone === null ? errorText(error) : describeFailure(gone);
    context.stderr.line(`${groupId}: ${safeLine(why, sentenceColumnsMax)}`);
  }
  return false;
}

function describe({ world }: Context, group: GroupReference, outcome: PauseOutcome): string {
  const { groupId } = group;
  const status = 'status' in outcome ? outcome.status : 'running';
  if (status === 'paused') return `Paused ${groupId}. Go on: ${resumeText(world, group)}`;
  return `Group ${groupId} is ${status}.`;
}
