/** `stop --all`: pauses every group of this machine, whoever runs it. */

import type { Command } from '@commander-js/extra-typings';
import {
  goneGroup,
  pauseAndTell,
  type RunningGroups,
  runningGroups,
  stopUnreadableGroup,
  type UnreadableGroup,
} from '../../app/pause-group.ts';
import { whileWaiting } from '../../app/request.ts';
import { type GroupReference, loadWithRunner } from '../../app/resolve.ts';
import { endedStartText, type PauseOutcome } from '../../app/submit.ts';
import { advise, commandText } from '../../core/advice.ts';
import { describeFailure, errorText, fail, ok } from '../../core/failure.ts';
import { safeJson, safeLine } from '../../view/terminal-text.ts';
import { besideDocument, type Context, type Work } from '../context.ts';
import { exitCode } from '../exit-code.ts';
import { resumeText } from './group/pause.ts';

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
    .option('--json', 'one JSON document: {"groups": [{"group", "status"}], "unreadable": ids}')
    .addHelpText('after', example)
    .action(({ all, json }) => context.run(() => stop(context, all === true, json === true)));
}

async function stop(context: Context, all: boolean, json: boolean): Promise<Work> {
  if (!all) {
    const next = advise('Give --all to pause every group, or pause one with', ['group', 'pause', 'GROUP']);
    return fail('usage', 'It was not said what to stop.', next);
  }
  const groups = runningGroups(context);
  if (!groups.ok) return groups;
  const { running, unreadable } = groups.value;
  const people = json ? besideDocument(context) : context;
  const stopped = await Promise.all(running.map((group) => stopOne(people, group)));
  const still = await Promise.all(unreadable.map((one) => stopUnreadable(context, one)));
  const other = still.every(Boolean) ? '' : 'other ';
  if (running.length === 0) people.stdout.line(`No ${other}group is running.`);
  if (json) context.stdout.line(safeJson(document(context, groups.value), 2));
  return ok(unreadable.length === 0 && stopped.every(Boolean) ? exitCode.done : exitCode.failed);
}

/** How they stand afterwards. */
function document({ world }: Context, { running, unreadable }: RunningGroups): object {
  const groups = running.map((group) => {
    const loaded = loadWithRunner(world, group);
    return { group: group.groupId, ...(loaded.ok ? { status: loaded.value.state.status } : {}) };
  });
  return { groups, unreadable: unreadable.map(({ group }) => group.groupId) };
}

/** True when nothing of it was running. */
async function stopUnreadable(context: Context, { group, failure }: UnreadableGroup): Promise<boolean> {
  const { groupId } = group;
  const say = (text: string) => context.stderr.line(`${groupId}: ${safeLine(text, sentenceColumnsMax)}`);
  // What can be done about the log, and that nothing was, is said by the command that shows the group.
  const sayDone = (done: string) => say(`${done} ${failure.message} See: ${commandText(['group', 'show', groupId])}`);
  const stopped = await stopUnreadableGroup(context.world, group);
  switch (stopped.kind) {
    case 'runner':
      sayDone(
        stopped.isTold ? `Its runner (process ${stopped.pid}) was told to pause it.` : 'Its runner was not reached.',
      );
      return false;
    case 'held':
      sayDone('Another command holds it, so nothing of it was stopped.');
      return false;
    case 'hidden':
      sayDone(describeFailure(stopped.failure));
      return false;
    case 'failed':
      sayDone(`Nothing of it could be stopped: ${stopped.text}.`);
      return false;
    case 'ended':
      if (stopped.processes === 0 && stopped.runner === undefined) say(describeFailure(failure));
      else sayDone(endedText(stopped));
      return stopped.processes === 0 && stopped.runner === undefined;
  }
}

function endedText({ processes, runner }: { readonly processes: number; readonly runner?: number }): string {
  const many = processes === 1 ? '1 process' : `${processes} processes`;
  if (runner === undefined) {
    if (processes < 0) return 'Some processes that a dead runner left behind could not be ended.';
    return `Ended ${many} that a dead runner left behind.`;
  }
  if (processes < 0) return `Its runner (process ${runner}) was told to end; some processes could not be ended.`;
  return `Ended its runner (process ${runner}) and ${many} of its sessions.`;
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
    const gone = goneGroup(context.world, group);
    const why = gone === null ? errorText(error) : describeFailure(gone);
    context.stderr.line(`${groupId}: ${safeLine(why, sentenceColumnsMax)}`);
  }
  return false;
}

function describe({ world }: Context, group: GroupReference, outcome: PauseOutcome): string {
  const { groupId } = group;
  if (outcome.kind === 'settled' && outcome.had === 'start') return endedStartText(groupId);
  const status = 'status' in outcome ? outcome.status : 'running';
  if (status === 'paused') return `Paused ${groupId}. Go on: ${resumeText(world, group)}`;
  return `Group ${groupId} is ${status}.`;
}
