/** `group watch`: prints past events, then new ones, until the group has no runner. */
import { type Command, Option } from '@commander-js/extra-typings';
import { isRun } from '../../../app/live-runner.ts';
import { type GroupReference, loadReferredGroup } from '../../../app/resolve.ts';
import { followGroup } from '../../../app/watch/follow-group.ts';
import { attemptUsages, type ProgressView, readGroupProgress, withoutRunner } from '../../../app/watch/live-view.ts';
import { commandText } from '../../../core/advice.ts';
import type { Failure } from '../../../core/failure.ts';
import type { SessionId } from '../../../core/group.ts';
import { runCommand } from '../../../core/plan/advice.ts';
import type { GroupState } from '../../../core/state.ts';
import { delay } from '../../../system/clock.ts';
import type { LiveView, Reporter } from '../../../view/reporter.ts';
import { type CommandResult, type Context, exitCode, exitCodeForStatus, need } from '../../context.ts';
import { watchOnScreen } from '../../dashboard/display.ts';
import { chooseOutput, createReporter } from '../../options/options.ts';

const example = `
Example:
  $ claude-code-agent group watch auth-refactor
  $ claude-code-agent group watch auth-refactor --output json | jq -r 'select(.type == "session_failed") | .reason'`;

const outputs = ['tui', 'text', 'json'] as const;
type WatchOutput = (typeof outputs)[number];

/** How often to read progress.json and check the runner. New events are printed at once. */
const lookEveryMs = 250;

export function define(command: Command, context: Context): void {
  command
    .description(`Follow a group from any terminal, starting with its history. On a terminal,
shows the dashboard until you leave it with q. Elsewhere, prints lines until
the group stops running; waits if it has not started.
Exit codes: 0 completed (or left while running), 1 failed, 3 paused or not finished.`)
    .argument('<group>', 'id, unique prefix or slug')
    .addOption(new Option('--output <kind>', 'what to print; default: tui on a terminal, else text').choices(outputs))
    .addHelpText('after', example)
    .action((reference, { output }) => context.run(() => watch(context, reference, output)));
}

async function watch(context: Context, reference: string, wished: WatchOutput | undefined): Promise<CommandResult> {
  const output = need(chooseOutput(context, wished));
  // Read the whole log first, so that a damaged log is refused before anything is printed.
  const group = need(loadReferredGroup(context, reference));
  if (output === 'tui') return watchOnScreen(context, group);
  const reporter = await createReporter(context, group, output);
  return follow(context, group, reporter);
}

async function follow(context: Context, group: GroupReference, reporter: Reporter): Promise<CommandResult> {
  const { world, stdout } = context;
  const reasons = new Map<SessionId, string>();
  const problems: Failure[] = [];
  let live: LiveView = new Map();
  let isAwaited = false;
  const follower = followGroup(
    world,
    group,
    (event, state) => {
      if ('sessionId' in event && event.sessionId !== undefined) reasons.delete(event.sessionId);
      reporter.event(event, state, live);
    },
    (failure) => problems.push(failure),
  );
  try {
    // The reader may close the pipe, as with `| head -1`.
    for (; !stdout.isClosed; await delay(world.clock, lookEveryMs)) {
      // Check the runner before the log is read, so that the log includes its last events.
      const hasRunner = isRun(world, group.paths);
      follower.catchUp();
      const [failure] = problems;
      if (failure !== undefined) return { ok: false, failure };
      const { state } = follower;
      if (state === null) continue;
      const now = hasRunner
        ? readGroupProgress(world, group.paths.progress, state)
        : withoutRunner(state, attemptUsages(world, group.paths, state));
      live = showLive(reporter, state, live, now.live);
      showResting(reporter, state, reasons, now);
      if (state.status === 'created') {
        // Wait, so that `watch` can be started before `run`.
        if (!isAwaited)
          context.stderr.line(`Waiting for the group to start. Start it with: ${commandText(runCommand(state))}`);
        isAwaited = true;
      } else if (!hasRunner) return conclude(context, state, reporter, live);
    }
    return exitCode.done;
  } finally {
    follower.close();
  }
}

/** Reports the running sessions whose activity or usage changed. */
function showLive(reporter: Reporter, state: GroupState, before: LiveView, now: LiveView): LiveView {
  const changed = (id: SessionId): boolean => {
    const [old, current] = [before.get(id), now.get(id)];
    return (
      old?.currentTool !== current?.currentTool ||
      old?.lastText !== current?.lastText ||
      old?.usage.costUsd !== current?.usage.costUsd ||
      old?.usage.tokens.output !== current?.usage.tokens.output
    );
  };
  for (const id of now.keys()) if (changed(id)) reporter.progress(id, state, now);
  return now;
}

/** Reports the sessions whose reason for not running changed. `reasons`: the codes reported last. */
function showResting(
  reporter: Reporter,
  state: GroupState,
  reasons: Map<SessionId, string>,
  { verdicts }: ProgressView,
): void {
  const others = [...state.sessions].flatMap(([id, record]) => {
    const reason = verdicts(record)?.reason;
    if (reason === reasons.get(id)) return [];
    if (reason === undefined) reasons.delete(id);
    else reasons.set(id, reason);
    return reason === undefined ? [] : [id];
  });
  if (others.length > 0) reporter.resting?.(others, state, verdicts);
}

function conclude(context: Context, state: GroupState, reporter: Reporter, live: LiveView): CommandResult {
  const { id } = state.group;
  const isRunning = state.status === 'running';
  reporter.summarize(state, live, isRunning ? Date.parse(state.updatedAt) : context.world.clock.now());
  if (isRunning) {
    context.stderr.line(`The runner of ${id} is gone: \`${commandText(runCommand(state))}\` continues.`);
  }
  return exitCodeForStatus(state.status);
}
