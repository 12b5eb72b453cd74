/** `group pause` and `stop --all`. */
import { type Command, Option } from '@commander-js/extra-typings';
import { endedStartText, type PauseOutcome, type PauseRequestMode } from '../../../app/group-commands.ts';
import { whileBusy } from '../../../app/live-runner.ts';
import {
  goneGroup,
  pauseAndNotify,
  type RunningGroups,
  runningGroups,
  stopUnreadableGroup,
  type UnreadableGroup,
} from '../../../app/pause-group.ts';
import { whileWaiting } from '../../../app/request.ts';
import { type GroupReference, loadWithRunner, resolveGroup } from '../../../app/resolve.ts';
import { advise, commandText, see } from '../../../core/advice.ts';
import { describeFailure, errorText, fail, ok } from '../../../core/failure.ts';
import type { GroupId } from '../../../core/group.ts';
import { resumeCommand } from '../../../core/plan/advice.ts';
import type { GroupStatus } from '../../../core/status.ts';
import type { World } from '../../../system/world.ts';
import { formatClock } from '../../../view/format.ts';
import { safeLine } from '../../../view/terminal-text.ts';
import { besideDocument, type CommandResult, type Context, exitCode, need, refuse } from '../../context.ts';
import { concludeRun, runInTerminal } from './run.ts';

const pauseExample = `
Example:
  $ claude-code-agent group pause auth-refactor               stop everything now
  $ claude-code-agent group pause auth-refactor --drain       let running sessions finish first
  $ claude-code-agent group pause auth-refactor --freeze      for at most a minute`;

export function defineGroupPause(command: Command, context: Context): void {
  command
    .description(
      `Pause a group and return when it is paused. Works from any terminal and
without a runner. Sessions keep their conversations; none of their processes
is left running.`,
    )
    .argument('<group>', 'id, unique prefix or slug')
    .addOption(new Option('--drain', 'start nothing new and wait for running sessions to finish').conflicts('freeze'))
    .option('--freeze', 'suspend all processes; after 60 s the group is paused')
    .option('--json', 'one JSON document: {"group", "status"}, and "frozenUntil" of a frozen one')
    .addHelpText('after', pauseExample)
    .action((reference, { drain, freeze, json }) =>
      context.run(async () => {
        const group = need(resolveGroup(context, reference));
        const mode = drain ? 'drain' : freeze ? 'freeze' : 'now';
        const words = mode === 'drain' ? 'Waiting for running sessions to finish' : 'Waiting for sessions to stop';
        const paused = need(
          await whileBusy(context, words, () => whileWaiting(context, group, pauseAndNotify(context, group, mode))),
        );
        const { outcome, warnings } = paused;
        for (const warning of warnings) context.stderr.line(warning);
        const concluded = await conclude(json ? besideDocument(context) : context, group, mode, outcome);
        if (json) {
          const { status, frozenUntil } = need(loadWithRunner(context.world, group)).state;
          context.stdout.json({ group: group.groupId, status, frozenUntil });
        }
        return concluded;
      }),
    );
}

function conclude(
  context: Context,
  group: GroupReference,
  mode: PauseRequestMode,
  outcome: PauseOutcome,
): CommandResult | Promise<CommandResult> {
  const { stdout } = context;
  const { groupId } = group;
  switch (outcome.kind) {
    case 'unchanged':
      if (outcome.status !== 'paused') return nothingToPause(groupId, outcome.status);
      stdout.line(`Group ${groupId} is already paused.`);
      return;
    case 'frozen':
      stdout.line(
        `Group ${groupId} is frozen until ${formatClock(outcome.until)} and then paused. Continue before that ` +
          `with: ${commandText(['group', 'resume', groupId])}`,
      );
      return;
    case 'runner-gone':
      return drainHere(context, group);
    case 'settled':
      if (outcome.had === 'start') {
        stdout.line(endedStartText(groupId));
        return;
      }
      if (mode === 'freeze' && outcome.had === 'workers') {
        context.stderr.line(`The runner of ${groupId} is gone, so the group was paused instead of frozen.`);
      }
      if (outcome.status === 'paused')
        stdout.line(`Paused ${groupId}. Resume with: ${resumeText(context.world, group)}`);
      else stdout.line(`Group ${groupId} ${outcome.status} before it could be paused.`);
      return outcome.status === 'failed' ? exitCode.failed : exitCode.done;
  }
}

/** Running sessions need a runner until they finish: this process becomes that runner and starts nothing. */
async function drainHere(context: Context, group: GroupReference): Promise<CommandResult> {
  const { groupId } = group;
  const loaded = need(loadWithRunner(context.world, group));
  context.stderr.line(`The runner of ${groupId} is gone. Waiting for its running sessions.`);
  const rehearse = loaded.state.run?.rehearsal;
  const options = { config: {}, output: 'text', rehearse, retryFailed: false, only: [] } as const;
  const result = need(await runInTerminal(context, group, options));
  const isPaused = result.kind === 'settled' && result.status === 'paused';
  return isPaused ? exitCode.done : concludeRun(context, group, result);
}

function nothingToPause(groupId: GroupId, status: GroupStatus): never {
  if (status === 'created') {
    const next = advise('Start it with', ['group', 'run', groupId]);
    return refuse('usage', `Group ${groupId} has not been started.`, next);
  }
  const next = see('group', 'show', groupId);
  return refuse('usage', `Group ${groupId} is ${status}; nothing to pause.`, next);
}

export function resumeText(world: World, group: GroupReference): string {
  const loaded = loadWithRunner(world, group);
  return commandText(loaded.ok ? resumeCommand(loaded.value.state) : ['group', 'resume', group.groupId]);
}

const stopExample = `
Example:
  $ claude-code-agent stop --all
  Paused 20260104-143022-auth-refactor. Resume with: claude-code-agent group resume 20260104-143022-auth-refactor`;

const sentenceColumnsMax = 800;
/** How long to wait for a runner that does not answer. */
const patienceMs = 10_000;

export function defineStop(command: Command, context: Context): void {
  command
    .description(
      'Pause every running group on this host, including groups without a runner. Continue with: group ' + 'resume.',
    )
    .option('--all', 'required, to prevent mistakes')
    .option('--json', 'one JSON document: {"groups": [{"group", "status"}], "unreadable": ids}')
    .addHelpText('after', stopExample)
    .action(({ all, json }) =>
      context.run(async () => {
        if (!all) {
          const next = advise('Give --all to pause every group, or pause one with', ['group', 'pause', 'latest']);
          return refuse('usage', 'The option --all is missing.', next);
        }
        const groups = need(runningGroups(context));
        const { running, unreadable } = groups;
        const people = json ? besideDocument(context) : context;
        const stopped = await Promise.all(running.map((group) => stopOne(people, group)));
        const still = await Promise.all(unreadable.map((one) => stopUnreadable(context, one)));
        const other = still.every(Boolean) ? '' : 'other ';
        if (running.length === 0) people.stdout.line(`No ${other}group is running.`);
        if (json) context.stdout.json(stopDocument(context, groups));
        return ok(unreadable.length === 0 && stopped.every(Boolean) ? exitCode.done : exitCode.failed);
      }),
    );
}

function stopDocument({ world }: Context, { running, unreadable }: RunningGroups): object {
  const groups = running.map((group) => {
    const loaded = loadWithRunner(world, group);
    return { group: group.groupId, ...(loaded.ok ? { status: loaded.value.state.status } : {}) };
  });
  return { groups, unreadable: unreadable.map(({ group }) => group.groupId) };
}

/** True if nothing of the group was running. */
async function stopUnreadable(context: Context, { group, failure }: UnreadableGroup): Promise<boolean> {
  const { groupId } = group;
  const say = (text: string) => context.stderr.line(`${groupId}: ${safeLine(text, sentenceColumnsMax)}`);
  // `group show` explains what to do about the log.
  const sayDone = (done: string) => say(`${done} ${failure.message} See: ${commandText(['group', 'show', groupId])}`);
  const stopped = await stopUnreadableGroup(context.world, group);
  switch (stopped.kind) {
    case 'runner':
      sayDone(
        stopped.isSignalled
          ? `Its runner (pid ${stopped.pid}) received SIGTERM to pause it.`
          : 'Its runner could not be reached.',
      );
      return false;
    case 'held':
      sayDone('Another command is using it, so it was not stopped.');
      return false;
    case 'failed':
      sayDone(`It could not be stopped: ${stopped.text}.`);
      return false;
    case 'ended':
      if (stopped.processes === 0 && stopped.runner === undefined) say(describeFailure(failure));
      else sayDone(endedText(stopped));
      return stopped.processes === 0 && stopped.runner === undefined;
  }
}

function endedText({ processes, runner }: { readonly processes: number; readonly runner?: number }): string {
  const many = processes === 1 ? '1 process' : `${processes} processes`;
  if (processes < 0) return 'Some of its processes could not be ended.';
  if (runner === undefined) return `Ended ${many} left by a dead runner.`;
  return `Ended its runner (pid ${runner}) and ${many} of its sessions.`;
}

/** True if nothing of the group runs any more. A failure does not prevent the other groups from being stopped. */
async function stopOne(context: Context, group: GroupReference): Promise<boolean> {
  const { groupId } = group;
  try {
    const paused = await whileWaiting(context, group, pauseAndNotify(context, group, 'now'), {
      afterMs: patienceMs,
      outcome: fail(
        'busy',
        'Its runner does not respond, so it was not stopped.',
        'It stops when its runner continues.',
      ),
    });
    if (paused.ok) {
      context.stdout.line(describeStop(context, group, paused.value.outcome));
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

function describeStop({ world }: Context, group: GroupReference, outcome: PauseOutcome): string {
  const { groupId } = group;
  if (outcome.kind === 'settled' && outcome.had === 'start') return endedStartText(groupId);
  const status = 'status' in outcome ? outcome.status : 'running';
  if (status === 'paused') return `Paused ${groupId}. Resume with: ${resumeText(world, group)}`;
  return `Group ${groupId} is ${status}.`;
}
