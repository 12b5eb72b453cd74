/** `group pause`: stops all sessions of a group so that they can be resumed. */
import type { Command } from '@commander-js/extra-typings';
import { whileBusy } from '../../../app/live-runner.ts';
import { pauseAndTell } from '../../../app/pause-group.ts';
import { whileWaiting } from '../../../app/request.ts';
import { type GroupReference, loadWithRunner, resolveGroup } from '../../../app/resolve.ts';
import { endedStartText, type PauseMode, type PauseOutcome } from '../../../app/submit.ts';
import { advise, commandText, see } from '../../../core/advice.ts';
import { fail, ok, type Result } from '../../../core/failure.ts';
import type { GroupId } from '../../../core/group.ts';
import { resumeCommand } from '../../../core/plan/advice.ts';
import type { GroupStatus } from '../../../core/status.ts';
import type { World } from '../../../system/world.ts';
import { formatClock } from '../../../view/format.ts';
import { safeJson } from '../../../view/terminal-text.ts';
import { besideDocument, type Context, type Work } from '../../context.ts';
import { exitCode } from '../../exit-code.ts';
import { concludeRun, runInTerminal } from '../../run-command.ts';

const example = `
Example:
  $ claude-code-agent group pause auth-refactor               everything stops now; group resume goes on
  $ claude-code-agent group pause auth-refactor --drain       running sessions finish first
  $ claude-code-agent group pause auth-refactor --freeze      for a minute at most; group resume thaws it`;

export function define(command: Command, context: Context): void {
  command
    .description(`Pauses a group and returns when it is paused, from any process, also when its runner is gone.
Every session keeps its conversation; nothing of it is left running.`)
    .argument('<group>', 'id, unique prefix or slug')
    .option('--drain', 'start nothing new and wait until running sessions have finished')
    .option('--freeze', 'halt every process where it stands; after 60 s that becomes a pause')
    .option('--json', 'one JSON document: {"group", "status"}, and "frozenUntil" of a frozen one')
    .addHelpText('after', example)
    .action((reference, given) => context.run(() => pause(context, reference, given)));
}

interface Given {
  readonly drain?: true | undefined;
  readonly freeze?: true | undefined;
  readonly json?: true | undefined;
}

async function pause(context: Context, reference: string, { drain, freeze, json }: Given): Promise<Work> {
  if (drain && freeze) return fail('usage', 'Both --drain and --freeze were given.', 'Give one of them.');
  const group = resolveGroup(context, reference);
  if (!group.ok) return group;
  const mode = drain ? 'drain' : freeze ? 'freeze' : 'now';
  const words =
    mode === 'drain' ? 'Waiting until running sessions have finished' : 'Waiting until everything has stopped';
  const paused = await whileBusy(context, words, () =>
    whileWaiting(context, group.value, pauseAndTell(context, group.value, mode)),
  );
  if (!paused.ok) return paused;
  const { outcome, warnings } = paused.value;
  for (const warning of warnings) context.stderr.line(warning);
  const concluded = await conclude(json ? besideDocument(context) : context, group.value, mode, outcome);
  if (!json || !concluded.ok) return concluded;
  const loaded = loadWithRunner(context.world, group.value);
  if (!loaded.ok) return loaded;
  const { status, frozenUntil } = loaded.value.state;
  context.stdout.line(safeJson({ group: group.value.groupId, status, frozenUntil }, 2));
  return concluded;
}

function conclude(
  context: Context,
  group: GroupReference,
  mode: PauseMode,
  outcome: PauseOutcome,
): Work | Promise<Work> {
  const { stdout } = context;
  const { groupId } = group;
  switch (outcome.kind) {
    case 'unchanged':
      if (outcome.status !== 'paused') return nothingToPause(groupId, outcome.status);
      stdout.line(`Group ${groupId} is paused already.`);
      return ok(exitCode.done);
    case 'frozen':
      stdout.line(
        `Group ${groupId} is frozen until ${formatClock(outcome.until)}; then it becomes a pause. ` +
          `Before that it goes on where it stands with: ${commandText(['group', 'resume', groupId])}`,
      );
      return ok(exitCode.done);
    case 'runner-gone':
      return drainHere(context, group);
    case 'settled':
      if (outcome.had === 'start') {
        stdout.line(endedStartText(groupId));
        return ok(exitCode.done);
      }
      if (mode === 'freeze' && outcome.had === 'workers') {
        context.stderr.line(`The runner of ${groupId} is gone and nobody could end a freeze, so it was paused.`);
      }
      if (outcome.status === 'paused') stdout.line(`Paused ${groupId}. Go on: ${resumeText(context.world, group)}`);
      else stdout.line(`Group ${groupId} ${outcome.status} before it could be paused.`);
      return ok(outcome.status === 'failed' ? exitCode.failed : exitCode.done);
  }
}

/** Somebody must be there when the sessions end: this command becomes their runner and starts nothing. */
async function drainHere(context: Context, group: GroupReference): Promise<Work> {
  const { groupId } = group;
  const loaded = loadWithRunner(context.world, group);
  if (!loaded.ok) return loaded;
  context.stderr.line(`The runner of ${groupId} is gone; this command waits for what it left running.`);
  const rehearse = loaded.value.state.run?.rehearsal;
  const options = { config: {}, output: 'text', rehearse, retryFailed: false, only: [] } as const;
  const drained = await runInTerminal(context, group, options);
  if (!drained.ok) return drained;
  const { value: result } = drained;
  return result.kind === 'settled' && result.status === 'paused'
    ? ok(exitCode.done)
    : concludeRun(context, group, result);
}

function nothingToPause(groupId: GroupId, status: GroupStatus): Result<never> {
  if (status === 'created') {
    const next = advise('Start it with', ['group', 'run', groupId]);
    return fail('usage', `Group ${groupId} was not started yet; there is nothing to pause.`, next);
  }
  const next = see('group', 'show', groupId);
  return fail('usage', `Group ${groupId} is ${status}; there is nothing to pause.`, next);
}

// How a paused group goes on, for commands that did not read it.

export function resumeText(world: World, group: GroupReference): string {
  const loaded = loadWithRunner(world, group);
  return commandText(loaded.ok ? resumeCommand(loaded.value.state) : ['group', 'resume', group.groupId]);
}
