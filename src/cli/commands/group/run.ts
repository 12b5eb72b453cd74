/** `run`, `group run`, `resume` and `plan`. */
import { type Command, Option } from '@commander-js/extra-typings';
import type { CheckGate } from '../../../app/claude-check/gate.ts';
import { readUserConfig } from '../../../app/config/user-config.ts';
import { createNewGroup, draftState, type NewGroup, unfrozen } from '../../../app/create/new-group.ts';
import { isAwaited } from '../../../app/event-commands.ts';
import { type CommandOf, submit } from '../../../app/group-commands.ts';
import { liveRunner, whileBusy } from '../../../app/live-runner.ts';
import { whileWaiting } from '../../../app/request.ts';
import {
  type GroupMeta,
  type GroupReference,
  groupReference,
  type LoadedGroup,
  type LoadedSession,
  listGroups,
  loadReferredGroup,
  loadWithRunner,
  resolveGroup,
} from '../../../app/resolve.ts';
import { checkNewRehearsed, gateForNewGroup } from '../../../app/run/claude-gate.ts';
import { startDetached } from '../../../app/run/detach.ts';
import { type PreviewOptions, type PreviewTemplates, previewRun, type RunPreview } from '../../../app/run/preview.ts';
import { type RunHere, type RunHereOptions, rehearsalFor, runHere } from '../../../app/run/run-here.ts';
import { checkStartable, type RunConfig } from '../../../app/run/run-options.ts';
import { onSignal } from '../../../app/signals.ts';
import { object } from '../../../claude/lenient.ts';
import { advise, commandText } from '../../../core/advice.ts';
import { defined } from '../../../core/defined.ts';
import type { GroupEvent } from '../../../core/event.ts';
import { fail, ok, type Result } from '../../../core/failure.ts';
import type { SessionId } from '../../../core/group.ts';
import { runCommand, sessionReference } from '../../../core/plan/advice.ts';
import { waitingText } from '../../../core/plan/settle.ts';
import type { SessionRecord } from '../../../core/session-state.ts';
import { type GroupState, isRehearsal, isThrottled } from '../../../core/state.ts';
import { activeGroupStatuses } from '../../../core/status.ts';
import { formatDate, plural } from '../../../view/format.ts';
import { isolationWhy, textPlan } from '../../../view/plan.ts';
import { safeJson, safeLine, safeText } from '../../../view/terminal-text.ts';
import { titleOf } from '../../../view/wording.ts';
import {
  besideDocument,
  type CommandResult,
  type Context,
  exitCode,
  exitCodeForStatus,
  knownExitCode,
  need,
  refuseWith,
} from '../../context.ts';
import type { RunTerminal } from '../../dashboard/display.ts';
import {
  chooseOutput,
  collect,
  createReporter,
  type OutputKind,
  type RunCommandOptions,
  runCommandOptions,
  withRunOptions,
} from '../../options/options.ts';
import type { Output } from '../../output.ts';

export function defineGroupRun(command: Command, context: Context): void {
  defineRun(command.description(runDescription), context, runExample, false);
}

export function defineGroupResume(command: Command, context: Context): void {
  defineRun(command.description(resumeDescription), context, resumeExample, true);
}

function defineRun(command: Command, context: Context, example: string, isResume: boolean): void {
  withRunOptions(command.argument('<group>', 'id, unique prefix or slug'))
    .option('--retry-failed', 'try failed sessions again')
    .addHelpText('after', example)
    .action((reference, { retryFailed, ...given }) => {
      const options = runCommandOptions(given, isResume || retryFailed === true);
      return context.run(() => runGroup(context, reference, options, isResume));
    });
}

async function runGroup(
  context: Context,
  reference: string,
  given: RunCommandOptions,
  isResume: boolean,
): Promise<CommandResult> {
  const group = need(resolveGroup(context, reference));
  const options = withRehearsal(context, group, given);
  if (options.dryRun) return previewGroup(context, group, options);
  if (isResume && (await thaw(context, group, options.config))) return;
  if (options.detach) return runDetached(context, group, options);
  return concludeRun(context, group, need(await runInTerminal(context, group, options)));
}

/** A copy that was made for a rehearsal is rehearsed without --rehearse. */
function withRehearsal({ world }: Context, group: GroupReference, options: RunCommandOptions): RunCommandOptions {
  if (options.rehearse !== undefined) return options;
  const loaded = loadWithRunner(world, group);
  return loaded.ok && loaded.value.state.rehearsal !== undefined ? { ...options, rehearse: true } : options;
}

async function previewGroup(
  context: Context,
  group: GroupReference,
  options: RunCommandOptions,
): Promise<CommandResult> {
  const loaded = need(loadWithRunner(context.world, group));
  const { state } = loaded;
  state.group = { ...state.group, config: { ...state.group.config, ...options.config } };
  return showPreview(context, group.root, state, 'frozen', planOptions(options));
}

export function planOptions({ output, rehearse, prompts, config: { acceptClaude } }: RunCommandOptions): PlanOptions {
  return { json: output === 'json', prompts: prompts === true, rehearsal: rehearse !== undefined, acceptClaude };
}

/** How a run in this process ended, or how its detached runner started. */
export type RunCommandResult = RunHere | { readonly kind: 'handed-over'; readonly work: CommandResult };

/** This process is the runner until the group is settled. `opened`: the check of claude, if it was done already. */
export async function runInTerminal(
  context: Context,
  group: GroupReference,
  options: RunCommandOptions,
  opened?: CheckGate,
): Promise<Result<RunCommandResult>> {
  const output = need(chooseOutput(context, options.output));
  const { stdout, env } = context;
  let display: RunTerminal | undefined;
  const ways: RunHereOptions = {
    openDisplay: async () => {
      display = await openRunDisplay(context, group, output);
      return display;
    },
    ...(options.notify ? { ring: (event, state) => notify(stdout, env, event, state) } : {}),
  };
  const ran = await runHere(context, group, options, ways, opened);
  if (!ran.ok || ran.value.kind !== 'left' || display?.isHandedOver !== true) return ran;
  // The log holds the other options; the detached runner reads them there.
  const { rehearse, keep } = options;
  const further: RunCommandOptions = { config: {}, output: undefined, rehearse, keep, retryFailed: false };
  return ok({ kind: 'handed-over', work: await runDetached(context, group, further) });
}

export function concludeRun(context: Context, { groupId }: GroupReference, result: RunCommandResult): CommandResult {
  switch (result.kind) {
    case 'handed-over':
      return result.work;
    case 'interrupted':
      return exitCode.interrupted;
    case 'called-off':
      context.stderr.line(`The run of ${groupId} was paused before it started.`);
      return exitCode.paused;
    case 'settled':
      return exitCodeForStatus(result.status);
    case 'left': {
      const { pausing } = result.state;
      const workers = pausing === undefined ? 'its sessions continue' : 'its sessions are stopping';
      context.stderr.line(`Left group ${groupId}; ${workers}.`);
      context.stderr.line(`Return with: ${commandText(runCommand(result.state))}`);
      return exitCode.interrupted;
    }
    case 'already-completed':
      context.stderr.line(`Group ${groupId} is already completed.`);
      sayBooked(context, result.booked);
      return;
    case 'refused':
      sayBooked(context, result.booked);
      return refuseWith(result.failure);
  }
}

function sayBooked({ stderr }: Context, booked = 0): void {
  if (booked === 0) return;
  const whose = booked === 1 ? 'an attempt' : `${booked} attempts`;
  stderr.line(`The cost of ${whose} on a lost host is now recorded.`);
}

async function openRunDisplay(context: Context, group: GroupReference, output: OutputKind): Promise<RunTerminal> {
  if (output === 'tui') return (await import('../../dashboard/display.ts')).openRunDashboard(context, group);
  const reporter = await createReporter(context, group, output);
  const listen: RunTerminal['onSignal'] = (handler) => onSignal(context.world.clock, handler);
  return { reporter, onSignal: listen, isScreen: false, isHandedOver: false, close: async () => {} };
}

/** Starts a detached runner. If the runner refuses to start, the exit code is that of the runner. */
export async function runDetached(
  context: Context,
  group: GroupReference,
  options: RunCommandOptions,
): Promise<CommandResult> {
  const { stdout, stderr } = context;
  const { groupId } = group;
  const started = need(await whileBusy(context, 'Starting the runner', () => startDetached(context, group, options)));
  if (started.kind === 'refused') {
    stderr.lines(started.lines);
    return ok(knownExitCode(started.code));
  }
  const { pid, log } = started;
  if (options.output === 'json') stdout.line(safeJson({ groupId, pid, log }));
  else stdout.line(groupId);
  if (options.output !== 'json' && options.output !== 'quiet') sayHowToGoOn(context, groupId, pid, log);
  if (options.notify)
    stderr.line('--notify needs a terminal, so it cannot be combined with --detach. Use an onEvent command.');
}

function sayHowToGoOn({ stderr }: Context, groupId: string, pid: number, log: string): void {
  stderr.line(`Running in the background (pid ${pid}).`);
  stderr.line(`Watch it: ${commandText(['group', 'watch', groupId])}`);
  stderr.line(`Pause it: ${commandText(['group', 'pause', groupId])}`);
  stderr.line(`Its log:  ${safeLine(log, 1_000)}`);
}

// `session resume` and `session retry` of a group without a runner: this process runs that one session.

/** `rehearse` is the script from the command line. A rehearsal is continued as one without it. */
interface How {
  readonly rehearse?: string | true | undefined;
  readonly json?: true | undefined;
}

/** A live runner starts the session when a slot is free; without a runner this process runs the session. */
export async function startSession(
  context: Context,
  session: LoadedSession,
  command: CommandOf<'resume-session' | 'retry-session'>,
  how: How,
): Promise<CommandResult> {
  const { state, sessionId, record } = session;
  need(liveRunner(context.world, session) === null ? checkStartable(session) : ok(undefined));
  const granted = need(await whileWaiting(context, session, submit(context, session, command)));
  if (granted.by === 'log') return runSession(context, session, how);
  if (how.json) return printSession(context, session);
  const follow = commandText(['session', 'logs', sessionReference(state, record), '--follow']);
  const what = command.kind === 'retry-session' ? 'is retried' : 'continues';
  context.stdout.line(`Session ${titleOf(state, sessionId)} ${what} when a slot is free. Follow it: ${follow}`);
}

/** A live runner retries each failed session; without a runner this process runs the group. */
export async function runFailedAgain(context: Context, group: LoadedGroup, { rehearse }: How): Promise<CommandResult> {
  const { groupId, state } = group;
  if (liveRunner(context.world, group) === null)
    return runGroup(context, groupId, runCommandOptions({ rehearse }, true), false);
  const failed = [...state.sessions].filter(([, record]) => record.state.status === 'failed');
  for (const [sessionId] of failed) need(await submit(context, group, { kind: 'retry-session', sessionId }));
  const what = `Retrying ${plural(failed.length, 'session')} when slots are free.`;
  context.stdout.line(`${what} Watch it: ${commandText(['group', 'watch', groupId])}`);
}

/** Runs only this session of the group. Exit codes: 0 completed, 1 failed, 3 paused. */
export async function runSession(
  context: Context,
  session: LoadedSession,
  { rehearse, json }: How,
): Promise<CommandResult> {
  const { sessionId, state } = session;
  const output = json ? 'quiet' : 'text';
  const again = rehearse ?? (isRehearsal(state) || undefined);
  const options = { config: {}, output, rehearse: again, retryFailed: false, only: [sessionId] } as const;
  const ran = need(await runInTerminal(json ? besideDocument(context) : context, session, options));
  if (ran.kind !== 'settled') return concludeRun(context, session, ran);
  if (json) printSession(context, session);
  return codeOf(ran.state, sessionId);
}

export function printSession(
  context: Context,
  session: GroupReference & { readonly sessionId: SessionId },
): CommandResult {
  const { groupId, sessionId } = session;
  const loaded = need(loadWithRunner(context.world, session));
  const status = loaded.state.sessions.get(sessionId)?.state.status;
  context.stdout.json({ group: groupId, session: sessionId, status });
}

function codeOf(state: GroupState, sessionId: SessionId) {
  const status = state.sessions.get(sessionId)?.state.status;
  if (status === 'completed') return exitCode.done;
  return status === 'failed' ? exitCode.failed : exitCode.paused;
}

/** `--notify`: rings the bell and sends OSC 9, which many terminals show as a desktop notification. */
export function notify(
  stdout: Output,
  env: { readonly TERM?: string | undefined },
  event: GroupEvent,
  state: GroupState,
): void {
  if (!stdout.isTerminal || !isAwaited(event, state)) return;
  const text = safeLine(notificationText(event, state), 120);
  stdout.write(env.TERM === 'dumb' ? '\u0007' : `\u0007\u001b]9;${text}\u0007`);
}

function notificationText(event: GroupEvent, state: GroupState): string {
  const { group } = state;
  const name = safeLine(group.name, 60);
  switch (event.type) {
    case 'group_completed':
      return `${name} is completed`;
    case 'group_failed':
      return `${name} failed: ${event.reason}`;
    case 'group_paused':
      return `${name} is paused: ${event.reason}`;
    case 'item_opened':
      return `${name}: ${waitingText(state)}`;
    case 'limit_reached':
      return isThrottled(event)
        ? `${name} is throttled by the server until ${formatDate(event.resetsAt)}`
        : `${name} waits for a usage limit until ${formatDate(event.resetsAt)}`;
    default:
      return name;
  }
}

export interface PlanOptions extends PreviewOptions {
  readonly json: boolean;
  readonly prompts: boolean;
}

export async function showPreview(
  context: Context,
  root: string,
  state: GroupState,
  templates: PreviewTemplates,
  options: PlanOptions,
): Promise<CommandResult> {
  const shown = await previewRun(context, root, state, templates, options);
  if (options.json) context.stdout.json(jsonPlan(state, shown));
  else {
    const details = (id: SessionId) => (options.prompts ? promptLines(state, id) : []);
    context.stdout.lines(textPlan(state, shown, details, context.stdout.style));
  }
  return ok(shown.missing.length === 0 ? exitCode.done : exitCode.failed);
}

function promptLines(state: GroupState, id: SessionId): string[] {
  const { prompt } = (state.sessions.get(id) as SessionRecord).definition;
  return safeText(prompt)
    .split('\n')
    .map((line) => `    ${line}`);
}

function jsonPlan(
  state: GroupState,
  { preview, spentUsd, missing, configs, modes, warnings, leftOut, worktrees, day }: RunPreview,
): object {
  const waveOf = new Map(preview.waves.flatMap((wave, index) => wave.map((id) => [id, index + 1] as const)));
  const { config, ...group } = state.group;
  return {
    group,
    config,
    waves: preview.waves,
    canaryWaves: preview.canaryWaves,
    criticalPath: preview.criticalPath,
    warmUps: preview.warmUps,
    sessions: [...waveOf].map(([id, wave]) => {
      const { definition } = state.sessions.get(id) as SessionRecord;
      const config = configs.get(id);
      const settings = config?.ok ? config.value.settings : {};
      const permissions = { mode: modes.get(id), ...object(settings.permissions) };
      return {
        ...definition,
        wave,
        permissions,
        isolation: isolationWhy(state, id),
        forecast: preview.forecasts.get(id) ?? null,
      };
    }),
    budget: {
      maxBudgetUsd: config.maxBudgetUsd ?? null,
      spentUsd,
      warnings: preview.budgetWarnings,
      ...defined({ day }),
    },
    forecast: {
      costUsd: preview.costUsd,
      criticalMs: preview.criticalMs,
      withoutHistory: preview.withoutHistory,
    },
    missing,
    warnings,
    leftOut,
    worktrees,
  };
}

const runDescription = `Run a group until every session has completed or nothing more can start.
Continues a paused or interrupted group. Options are kept for later runs.
Ctrl-C pauses the group; press it twice to leave at once while the sessions continue.
Exit codes: 0 completed, 1 failed, 2 bad input, 3 paused, 4 another runner is running the group, 130 left early.`;

const runExample = `
Example:
  $ claude-code-agent group run auth-refactor --concurrent 4 --max-budget-usd 10
  $ claude-code-agent group run auth-refactor --rehearse          no account, no cost
  $ claude-code-agent group run auth-refactor --output json | jq -r .type`;

const planExample = `
Example:
  $ claude-code-agent group plan auth-refactor
  $ claude-code-agent group plan auth-refactor --prompts
  $ claude-code-agent group plan auth-refactor --json | jq .missing
The exit code is 1 if something is missing that sessions need.`;

export function definePlan(command: Command, context: Context): void {
  command
    .description('Show the waves, the critical path, what is missing, and what a run may cost. Starts nothing.')
    .argument('<group>', 'id, unique prefix or slug')
    .option('--prompts', 'show the prompt of each session')
    .option('--json', 'one JSON document')
    .addHelpText('after', planExample)
    .action((reference, { prompts, json }) =>
      context.run(() => {
        const { root, state } = need(loadReferredGroup(context, reference));
        const options = { json: json === true, prompts: prompts === true, rehearsal: isRehearsal(state) };
        return showPreview(context, root, state, 'frozen', options);
      }),
    );
}

const resumeDescription = `Continue a paused, failed or interrupted group. Failed sessions are retried.
Paused sessions continue their conversation. Options and exit codes are those of: group run.
A frozen group continues under its own runner, except sessions that were
paused individually; the command returns at once.`;

const resumeExample = `
Example:
  $ claude-code-agent group resume auth-refactor
  $ claude-code-agent group resume auth-refactor --max-budget-usd 20      after the budget was exhausted`;

/** Ends the freeze of a live runner. False if there is none, so that the group has to be run. */
async function thaw(context: Context, group: GroupReference, config: RunConfig): Promise<boolean> {
  const { world } = context;
  const loaded = need(loadWithRunner(world, group));
  const { hadRunner, state } = loaded;
  if (!hadRunner || state.frozenUntil === undefined) return false;
  const thawed = need(await whileWaiting(context, group, submit(context, group, { kind: 'thaw' })));
  // The runner died during the freeze. The next run adopts the suspended workers and resumes them.
  if (thawed === 'needs-runner') return false;
  context.stdout.line(`Group ${group.groupId} continues. Watch it: ${commandText(['group', 'watch', group.groupId])}`);
  if (Object.keys(config).length > 0) {
    context.stderr.line('Options are ignored while the group runs; give them to the next run.');
  }
  return true;
}

const workflowDescription = `Create the group that a workflow describes and run it. Relative paths are
resolved from the workflow's folder, or from the current folder for templates
and standard input.`;

const workflowExample = `
Example:
  $ claude-code-agent run change.yaml --var ticket=ABC-12
  $ claude-code-agent run change.yaml --var ticket=ABC-12 --dry-run       show what it would do and may cost
  $ claude-code-agent run nightly.yaml --if-idle --output text            from cron
  $ claude-code-agent run feature-implementation --var feature="Dark mode" --rehearse`;

export function defineRunWorkflow(command: Command, context: Context): void {
  withRunOptions(
    command
      .description(workflowDescription)
      .argument('<workflow>', 'path of a YAML file, "-" for standard input, or a template name'),
  )
    .option('--var <name=value>', 'value of a workflow variable; may be repeated', collect)
    .option('--if-idle', 'do nothing if an earlier group of this workflow is created, running or paused; for cron')
    // Accepted so that scripts can pass the same options to every run. A new group has no failed sessions.
    .addOption(new Option('--retry-failed').hideHelp())
    .addHelpText('after', workflowExample)
    .action((reference, given) => {
      const { var: pairs = [], retryFailed: _nothing, ifIdle, ...rest } = given;
      const options = { ...runCommandOptions(rest, false), ifIdle };
      return context.run(() => runWorkflow(context, reference, pairs, options));
    });
}

export async function runWorkflow(
  context: Context,
  reference: string,
  pairs: readonly string[],
  options: RunCommandOptions & { readonly ifIdle?: true | undefined },
): Promise<CommandResult> {
  const root = need(context.root());
  const { readNamedWorkflow } = await import('../../options/prompt-source.ts');
  const named = await readNamedWorkflow(context, reference, pairs);
  if (!named.ok && named.failure.reason === 'not-found' && resolveGroup(context, reference).ok) {
    const next = advise('Run it with', ['group', 'run', reference]);
    return fail('usage', `${JSON.stringify(reference)} is a group; this command takes a workflow.`, next);
  }
  const group = need(named);
  const earlier = options.ifIdle ? activeGroup(context, root, group) : undefined;
  if (earlier !== undefined) {
    context.stderr.line(`Nothing was started: ${earlier.id}, of the same workflow, is ${earlier.status}.`);
    return;
  }
  if (options.dryRun) return previewWorkflow(context, root, group, options);
  // Check before the group is created, so that a refused run leaves no group behind.
  need(chooseOutput(context, options.output));
  const rehearsal = need(await rehearsalFor(context, options.rehearse));
  need(await readUserConfig(context));
  const checked =
    rehearsal === undefined ? gateForNewGroup(context, root, options, group) : checkNewRehearsed(context, group);
  const claude = need(await checked);
  if (claude === 'interrupted') return exitCode.interrupted;
  const created = need(createNewGroup(context, root, group));
  const { id } = created.group;
  context.stderr.line(`Created group ${id}`);
  const taken = groupReference(root, id);
  if (options.detach) return runDetached(context, taken, options);
  return concludeRun(context, taken, need(await runInTerminal(context, taken, options, claude)));
}

/** The newest active group of the same workflow, without rehearsals. */
function activeGroup({ world }: Context, root: string, { definition: { workflow } }: NewGroup): GroupMeta | undefined {
  const metas = listGroups(world, root).flatMap((listing) => ('meta' in listing ? [listing.meta] : []));
  return metas.findLast(
    (meta) => meta.workflow?.origin === workflow?.origin && !meta.rehearsal && activeGroupStatuses.has(meta.status),
  );
}

async function previewWorkflow(
  context: Context,
  root: string,
  group: NewGroup,
  options: RunCommandOptions,
): Promise<CommandResult> {
  const { definition } = group;
  const config = { ...definition.config, ...options.config };
  const state = need(draftState(context, { ...group, definition: { ...definition, config } }));
  return showPreview(context, root, state, unfrozen(group), planOptions(options));
}
