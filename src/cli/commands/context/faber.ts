/** The `faber` commands. */
import { basename } from 'node:path';
import { type Command, InvalidArgumentError, Option } from '@commander-js/extra-typings';
import {
  activate,
  bashCharactersMax,
  beginPhase,
  conflictWith,
  currentActor,
  currentProject,
  currentRun,
  danglingRun,
  type FoundRun,
  type NamedValue,
  type NewRun,
  newRun,
  noActiveRun,
  ofWorkItem,
  recordPhase,
  runLocation,
  runNamed,
  settleWithGit,
  soundConfig,
  startBeside,
  startHere,
} from '../../../app/faber/runs.ts';
import {
  type FaberWorktrees,
  removeFinished,
  repositoryOf,
  tidyWorktrees,
  viewWorktrees,
  type WorktreeView,
} from '../../../app/faber/worktrees.ts';
import { type Primed, type PrimedArtifact, primeContext, runLines } from '../../../context/faber/prime.ts';
import { type FaberProject, listRuns, readActiveRun } from '../../../context/faber/project.ts';
import {
  beginSession,
  currentSession,
  endSession,
  inProgress,
  isCompactionDue,
  isoTime,
  isSessionOpen,
  listOf,
  nextPhase,
  nonEmptyText,
  objectOf,
  partOf,
  phasesCompleted,
} from '../../../context/faber/state.ts';
import { loadState, updateState } from '../../../context/faber/state-file.ts';
import { isTrigger, workflowName } from '../../../context/faber/workflow-config.ts';
import { harmless } from '../../../context/hook-call.ts';
import { advise, commandText } from '../../../core/advice.ts';
import { defined } from '../../../core/defined.ts';
import { ok } from '../../../core/failure.ts';
import { nearest } from '../../../core/nearest.ts';
import { hasControl, plainNamePattern } from '../../../core/setting-values.ts';
import { foreignText } from '../../../core/text.ts';
import type { JsonObject } from '../../../store/json.ts';
import { formatTable, plural, titled } from '../../../view/format.ts';
import { safeLine } from '../../../view/terminal-text.ts';
import { type CommandResult, type Context, confirmed, exitCode, need, refuse, refuseWith } from '../../context.ts';
import { parseWorkId } from '../../options/options.ts';

interface Given {
  readonly artifact?: readonly NamedValue[] | undefined;
  readonly artifacts?: readonly string[] | undefined;
  readonly dryRun?: true | undefined;
  readonly force?: true | undefined;
  readonly json?: true | undefined;
  readonly project?: string | undefined;
  readonly prune?: true | undefined;
  readonly runId?: string | undefined;
  readonly takeOver?: true | undefined;
  readonly workId?: string | undefined;
  readonly yes?: true | undefined;
}

const startExample = `
Example:
  $ claude-code-agent faber start --work-id 258
  $ claude-code-agent faber start --work-id 259 --worktree       in ../<project>-issue-259, on the branch feature/259`;

export function defineStart(command: Command, context: Context): void {
  command
    .description(
      'Start a FABER run for a work item and print its id. A worktree has one active run. If another run is ' +
        'in progress, asks what to do; --worktree or --take-over answer that.',
    )
    .requiredOption('--work-id <id>', 'the work item, such as an issue number', parseWorkId)
    .option('--workflow <name>', 'configuration of the workflow', 'default')
    .addOption(new Option('--worktree', 'work in a new git worktree beside this one').conflicts('takeOver'))
    .option('--take-over', 'become the active run even if another one is in progress')
    .option('--project <dir>', 'the project (default: the current folder)')
    .option('--json', 'one JSON document: the run')
    .addHelpText('after', startExample)
    .action((given) => context.run(() => start(context, given)));
}

interface StartGiven extends Given {
  readonly workId: string;
  readonly workflow: string;
  readonly worktree?: true | undefined;
}

async function start(context: Context, given: StartGiven): Promise<CommandResult> {
  const { workId, workflow, worktree, takeOver, json } = given;
  const project = need(currentProject(context, given.project));
  const config = need(soundConfig(context, project, workflow));
  await tidyWorktrees(context, project);
  const run = newRun(context, { workId, workflow, config });
  const choice = worktree ? 'worktree' : await choose(context, { ...run, project, takeOver, offersWorktree: true });
  if (choice === 'worktree') return say(context, need(await startBeside(context, project, run)), run, json);
  if (choice === 'cancel') {
    context.stderr.line('Workflow start cancelled. Use separate worktrees for concurrent workflows.');
    return exitCode.failed;
  }
  need(startHere(context, project, run));
  await say(context, project, run, json);
  beginPhase(context, project, { ...run, phase: config.phases[0] ?? '' });
}

async function say(context: Context, project: FaberProject, run: NewRun, json: true | undefined): Promise<void> {
  const { runId, workId, workflow, config } = run;
  const { phases } = config;
  if (json) context.stdout.json({ run_id: runId, work_id: workId, workflow, phases, project: project.root });
  else {
    context.stdout.line(runId);
    context.stderr.line(safeLine(`Work in ${project.root}. The first phase is ${phases[0]}.`, 600));
  }
  await settleWithGit(context, project, runId);
}

interface NewRunRequest {
  readonly runId: string;
  /** Empty when the run has none. */
  readonly workId: string;
  readonly project: FaberProject;
  readonly takeOver: true | undefined;
  /** A new run may use its own worktree; an existing run already has a place. */
  readonly offersWorktree: boolean;
}

/** Asks what to do if another run is in progress. Refuses without a terminal. Unknown answers cancel. */
async function choose(
  context: Context,
  { runId, workId, project, takeOver, offersWorktree }: NewRunRequest,
): Promise<'take-over' | 'worktree' | 'cancel'> {
  const conflict = takeOver ? null : need(conflictWith(context, project, runId));
  if (conflict === null) return 'take-over';
  const { stderr } = context;
  stderr.line('WARNING: Another workflow is active in this worktree');
  const item = conflict.workId === undefined ? '' : ` (work item ${conflict.workId})`;
  stderr.lines([`Active: ${conflict.runId}${item}`, `New: ${runId}`].map((line) => `   ${safeLine(line, 600)}`));
  if (conflict.workId === workId) {
    stderr.line(`It is for the same work item. Resume it with: ${commandText(['faber', 'resume', conflict.runId])}`);
  }
  // The work item comes from a file of the repository, so it may not be a valid one.
  const hasCommand = plainNamePattern.test(workId);
  stderr.line(`Recommendation: use separate worktrees for concurrent workflows${hasCommand ? ':' : '.'}`);
  const folder = safeLine(`../${basename(project.top)}-issue-${workId}`, 300);
  if (hasCommand) {
    stderr.line(`   ${commandText(['faber', 'start', '--work-id', workId, '--worktree'])}      in ${folder}`);
  }
  if (!context.stdinIsTerminal || !context.stdout.isTerminal) {
    const message = `The run ${conflict.runId} is in progress in this worktree, so nothing was started.`;
    refuse('illegal-transition', message, 'Give --worktree or --take-over.');
  }
  // `prompt` bypasses our buffers, so write what is buffered first.
  await context.stdout.flush();
  await context.stderr.flush();
  const question =
    'Do you want to proceed anyway? This will take over context management for this worktree, potentially ' +
    'interfering with the other workflow.';
  const tree = offersWorktree ? `, or w for a new worktree in ${folder}` : '';
  const answer = prompt(`${question} [y/N${tree}]`)?.trim().toLowerCase() ?? '';
  if (offersWorktree && /^w(?:orktree)?$/.test(answer)) return 'worktree';
  return /^y(?:es)?$/.test(answer) ? 'take-over' : 'cancel';
}

const resumeExample = `
Example:
  $ git pull && claude-code-agent faber resume fractary-faber-258-20260105-143022-a1b2c3
  $ claude-code-agent faber resume fractary-faber-258            a unique prefix is enough`;

export function defineFaberResume(command: Command, context: Context): void {
  command
    .description('Make a run the active run of this worktree again, so that the next session continues it.')
    .argument('<run>', 'id or unique prefix')
    .option('--take-over', 'even if another run is in progress here')
    .option('--project <dir>', 'the project (default: the current folder)')
    .option('--json', 'one JSON document: the run')
    .addHelpText('after', resumeExample)
    .action((run, given) => context.run(() => resume(context, run, given)));
}

async function resume(context: Context, typed: string, { takeOver, json, ...given }: Given): Promise<CommandResult> {
  const { files } = context.world;
  const project = need(currentProject(context, given.project));
  const runId = need(runNamed(context, project, typed));
  const { status, work_id, workflow_id } = need(loadState(files, project, runId));
  if (status === 'completed') {
    const next = advise('Begin another one with', ['faber', 'start', '--work-id', 'ID']);
    refuse('illegal-transition', `The run ${runId} is completed.`, next);
  }
  const config = need(soundConfig(context, project, workflowName(workflow_id)));
  const workId = foreignText(work_id ?? '');
  const choice = await choose(context, { runId, workId, project, takeOver, offersWorktree: false });
  if (choice !== 'take-over') return exitCode.failed;
  need(activate(context, project, runId));
  const who = currentActor(context, project);
  const { nowMs } = who;
  const changed = need(
    updateState(files, project, runId, (now) => {
      const worktree = { ...objectOf(now.worktree), ...runLocation(context, project) };
      const going = { ...now, worktree, status: inProgress, updated_at: isoTime(nowMs) };
      return ok(who.sessionId === undefined ? going : beginSession(going, who).state);
    }),
  );
  await tidyWorktrees(context, project);
  if (json) context.stdout.json({ run_id: runId, project: project.root });
  else context.stdout.lines(runLines(project, { runId, state: changed }, config.phases));
  await settleWithGit(context, project, runId);
  const phase = nextPhase(changed, config.phases);
  if (phase !== undefined) beginPhase(context, project, { runId, phase, config });
}

const phaseExample = `
Example:
  $ claude-code-agent faber phase frame
  $ claude-code-agent faber phase architect --artifact spec_path=specs/WORK-258.md`;

export function definePhase(command: Command, context: Context): void {
  command
    .description('Record a finished phase. After the last phase, the run is completed.')
    .argument('<name>', 'the phase, such as frame, architect, build, evaluate or release')
    .option('--artifact <name=value>', 'output of the phase; names that end in _path are paths', parseArtifact)
    .option('--run-id <id>', 'the run (default: the active one)')
    .option('--work-id <id>', 'refuse if the run belongs to another work item', parseWorkId)
    .option('--project <dir>', 'the project (default: the current folder)')
    .option('--json', 'one JSON document: the run and its phases')
    .addHelpText('after', phaseExample)
    .action((name, given) => context.run(() => phase(context, name, given)));
}

const valueLengthMax = 4_000;

function parseArtifact(text: string, before: readonly NamedValue[] = []): readonly NamedValue[] {
  const [, name, value = ''] = /^([A-Za-z]\w{0,63})=(.*)$/s.exec(text) ?? [];
  const isFine = name !== undefined && value !== '' && value.length <= valueLengthMax && !hasControl(value);
  if (isFine) return [...before, { name, value }];
  throw new InvalidArgumentError('It must be a name and a value in one line, such as spec_path=specs/WORK-258.md.');
}

async function phase(context: Context, name: string, { artifact = [], json, ...given }: Given): Promise<void> {
  const { stdout, stderr } = context;
  const project = need(currentProject(context, given.project));
  const found = need(currentRun(context, project, given.runId));
  if (found === null) refuseWith(noActiveRun(context, project));
  const { runId, state } = need(ofWorkItem(found, given.workId));
  const config = need(soundConfig(context, project, workflowName(state.workflow_id)));
  const { phases } = config;
  const changed = need(recordPhase(context, project, found, { name, phases, made: artifact }));
  const done = phasesCompleted(changed);
  const next = nextPhase(changed, phases);
  const skipped = phases.slice(0, phases.indexOf(name)).filter((before) => !done.includes(before));
  if (json) {
    stdout.json({ run_id: runId, status: changed.status, phases_completed: done, next_phase: next ?? null });
  } else {
    const then = next === undefined ? 'The run is completed.' : `The next phase is ${next}.`;
    stdout.line(safeLine(`Phase ${name} of run ${runId} is finished. ${then}`, 600));
  }
  if (skipped.length > 0) stderr.line(`WARNING: earlier phases are not recorded as finished: ${skipped.join(', ')}.`);
  if (next === undefined) await tidyWorktrees(context, project);
  else beginPhase(context, project, { runId, phase: next, config });
}

const worktreesExample = `
Example:
  $ claude-code-agent faber worktrees
  $ claude-code-agent faber worktrees --prune`;

export function defineWorktrees(command: Command, context: Context): void {
  command
    .description(
      'List the worktrees of FABER runs. --prune removes those whose runs are finished or deleted. ' +
        'Worktrees with uncommitted changes are kept, except for ignored files. Branches are kept.',
    )
    .option('--prune', 'remove worktrees of finished runs')
    .option('-y, --yes', 'answer every question with yes')
    .option('--force', 'do not ask, and do not wait for sessions to end')
    .option('--project <dir>', 'the project (default: the current folder)')
    .option('--json', 'one JSON document: an array of worktrees, or of the results')
    .addHelpText('after', worktreesExample)
    .action((given) => context.run(() => worktrees(context, given)));
}

async function worktrees(context: Context, given: Given): Promise<CommandResult> {
  const project = need(currentProject(context, given.project));
  const repository = need(await repositoryOf(context, project));
  const views = need(viewWorktrees(context, repository));
  if (given.prune) return prune(context, repository, views, given);
  listWorktrees(context, views, given.json);
}

function listWorktrees({ stdout, stderr }: Context, views: readonly WorktreeView[], json: true | undefined): void {
  if (json) {
    stdout.json(
      views.map(({ workId, runId, createdAt, ...view }) => ({
        work_id: workId,
        run_id: runId,
        ...view,
        created_at: createdAt,
      })),
    );
  } else if (views.length === 0) {
    const make = commandText(['faber', 'start', '--work-id', 'ID', '--worktree']);
    stderr.line(`There are no worktrees of runs. Create one with: ${make}`);
  } else {
    const rows = views.map(({ workId, status, runId, branch, path }) =>
      [workId, status, runId, branch, path].map((text) => safeLine(text, 300)),
    );
    stdout.lines(formatTable(titled(['WORK', 'STATUS', 'RUN', 'BRANCH', 'PATH']), rows, stdout.style));
  }
}

async function prune(
  context: Context,
  repository: FaberWorktrees,
  views: readonly WorktreeView[],
  { yes, force, json }: Given,
): Promise<CommandResult> {
  const over = views.filter(({ status }) => status !== 'in progress');
  // An entry without a folder needs no confirmation.
  const folders = over.filter(({ status }) => status !== 'missing');
  const question = `Remove ${plural(folders.length, 'worktree')}: ${folders.map(({ path }) => path).join(', ')}?`;
  const isSure = folders.length === 0 || (await confirmed(context, question, yes === true || force === true));
  if (!isSure) return exitCode.failed;
  const results = [];
  for (const view of over) {
    results.push(await removeFinished(context, repository, view, { openSessionsToo: force === true }));
  }
  const { stdout } = context;
  if (json) stdout.json(results);
  else if (results.length === 0) stdout.line('Nothing to remove.');
  else {
    stdout.lines(
      results.map(({ removed, path, why }) => safeLine(`${removed ? 'Removed' : 'Kept'} ${path}. ${why}`, 600)),
    );
  }
  return results.every(({ removed }) => removed) ? exitCode.done : exitCode.failed;
}

const statusExample = `
Example:
  $ claude-code-agent faber status
  $ claude-code-agent faber status --json | jq .sessions`;

export function defineFaberStatus(command: Command, context: Context): void {
  command
    .description('Show the active FABER run: phases, sessions on all hosts, and their loaded artifacts.')
    .option('--run-id <id>', 'run id (default: the active run)')
    .option('--work-id <id>', 'refuse if the run belongs to another work item', parseWorkId)
    .option('--project <dir>', 'the project (default: the current folder)')
    .option('--json', 'one JSON document: the state of the run, and the other runs')
    .addHelpText('after', statusExample)
    .action((given) => context.run(() => status(context, given)));
}

async function status(context: Context, given: Given): Promise<void> {
  const { stdout, stderr } = context;
  const project = need(currentProject(context, given.project));
  const active = readActiveRun(context.world.files, project);
  const found = currentRun(context, project, given.runId);
  // Several runs without an active one are listed, too.
  if (!found.ok && found.failure.reason !== 'ambiguous') refuseWith(found.failure);
  const run = found.ok && found.value !== null ? need(ofWorkItem(found.value, given.workId)) : null;
  const others = otherRuns(context, project, run?.runId);
  const activeId = active.kind === 'run' ? active.runId : null;
  const dangling = run === null ? danglingRun(context, project) : null;
  if (dangling !== null) stderr.line(`WARNING: ${dangling}`);
  if (given.json) {
    stdout.json({ active_run_id: activeId, run: run?.state ?? null, other_runs: others });
    return;
  }
  if (run === null) stdout.line('No FABER run is active in this project.');
  else stdout.lines(describe(context, project, run, activeId));
  if (others.length > 0) {
    stdout.line('Other runs:');
    const rows = others.map((other) => [`  ${other.run_id}`, other.status]);
    stdout.lines(formatTable([{ title: '  RUN' }, { title: 'STATUS' }], rows, stdout.style));
  }
  if (run !== null && run.runId === activeId) await settleWithGit(context, project, run.runId);
}

function otherRuns(context: Context, project: FaberProject, shown: string | undefined) {
  return listRuns(context.world.files, project)
    .filter((runId) => runId !== shown)
    .map((runId) => {
      const state = loadState(context.world.files, project, runId);
      return { run_id: runId, status: state.ok ? word(state.value.status) : 'its state cannot be read' };
    });
}

function describe(context: Context, project: FaberProject, { runId, state }: FoundRun, activeId: string | null) {
  const config = soundConfig(context, project, workflowName(state.workflow_id));
  const done = phasesCompleted(state);
  const next = config.ok ? nextPhase(state, config.value.phases) : undefined;
  const sessions = objectOf(state.sessions);
  const current = currentSession(state);
  const open = isSessionOpen(state) ? 'open' : 'ended';
  const metadata = objectOf(state.context_metadata);
  const loaded = listOf(metadata.artifacts_in_context).map((one) => word(objectOf(one).artifact_id));
  const history = listOf(sessions.session_history).map(objectOf);
  const last = nonEmptyText(metadata.last_artifact_reload);
  const rows: readonly (readonly [string, string])[] = [
    ['Run', `${runId}${runId === activeId ? '' : ' (not the active one)'}`],
    ['Work item', word(state.work_id)],
    ['Workflow', word(state.workflow_id)],
    ['Status', word(state.status)],
    ['Finished', done.join(', ') || 'no phase'],
    ...(next === undefined ? [] : [['Next', next] as const]),
    ['Sessions', word(sessions.total_sessions ?? 0)],
    ...history.map((record) => ['', describeSession(record)] as const),
    ...(current.id === undefined
      ? []
      : [['Current', `${current.id}${partText(current.record) || ','} ${open}`] as const]),
    ['Loaded', `${loaded.join(', ') || 'nothing'}${last === undefined ? '' : `, last at ${last}`}`],
    ...(config.ok ? [] : [['Trouble', config.failure.message] as const]),
  ];
  return rows.map(([title, text]) => `${title.padEnd(10)}${safeLine(text, 400)}`);
}

function describeSession(record: JsonObject): string {
  const { hostname } = objectOf(record.environment);
  const ended = nonEmptyText(record.ended_at) === undefined ? 'end not recorded' : `to ${word(record.ended_at)}`;
  const why = nonEmptyText(record.end_reason) === undefined ? '' : ` (${word(record.end_reason)})`;
  const who = `${word(record.session_id)}${partText(record)} on ${word(hostname)}`;
  return `${who}, from ${word(record.started_at)} ${ended}${why}`;
}

/** A conversation has one record per part; each compaction starts a new part. */
function partText(record: JsonObject | null): string {
  const part = partOf(record);
  return part === 1 ? '' : ` part ${part}, after a compaction,`;
}

function word(value: unknown): string {
  return value === undefined || value === null ? '-' : safeLine(foreignText(value), 200);
}

const primeExample = `
Example:
  $ claude-code-agent faber prime-context
  $ claude-code-agent faber prime-context --artifacts workflow-state,specification
  $ claude-code-agent faber prime-context --dry-run`;

export function definePrimeContext(command: Command, context: Context): void {
  command
    .description(
      'Print the critical artifacts of the active FABER run. Skips artifacts that this session loaded ' +
        'within the last five minutes.',
    )
    .option('--run-id <id>', 'the run (default: the active one)')
    .option('--artifacts <ids>', 'only these, separated by commas', parseIds)
    .option('--force', 'load all of them, including recently loaded ones')
    .option('--dry-run', 'show what would be loaded; write nothing')
    .option('--trigger <trigger>', 'session_start, manual or phase_transition:a->b', parseTrigger, 'manual')
    .option('--project <dir>', 'the project (default: the current folder)')
    .option('--json', 'one JSON document: the session and each artifact')
    .addHelpText('after', primeExample)
    .action((given) => context.run(() => prime(context, given)));
}

interface PrimeGiven extends Given {
  readonly trigger: string;
}

function parseIds(text: string): readonly string[] {
  const ids = text
    .split(',')
    .map((id) => id.trim())
    .filter((id) => id !== '');
  if (ids.length > 0) return ids;
  throw new InvalidArgumentError('It must be a list of artifacts such as workflow-state,specification.');
}

function parseTrigger(text: string): string {
  if (isTrigger(text)) return text;
  throw new InvalidArgumentError('It must be session_start, manual or phase_transition:a->b.');
}

function prime(context: Context, given: PrimeGiven): void {
  const project = need(currentProject(context, given.project));
  const run = need(currentRun(context, project, given.runId));
  const isHook = given.trigger === 'session_start';
  // Not an error, because a hook of the user may call this in every session.
  const isOver = isHook && run?.state.status !== inProgress;
  if (run === null || isOver) {
    const none = noActiveRun(context, project);
    if (!isHook) refuseWith(none);
    context.stdout.line('No active workflow found, skipping prime-context');
    if (run === null && danglingRun(context, project) !== null) context.stderr.line(none.message);
    return;
  }
  checkIds(context, project, run, given.artifacts);
  const primed = need(
    primeContext(context.world.files, {
      project,
      runId: run.runId,
      who: currentActor(context, project),
      trigger: given.trigger,
      ...defined({ only: given.artifacts }),
      force: given.force === true,
      dryRun: given.dryRun === true,
      isCompacted: isHook && isCompactionDue(run.state),
      charactersMax: bashCharactersMax,
    }),
  );
  show(context, run.runId, primed, given);
  const { missing, trouble } = primed;
  if (missing.length > 0) {
    const next = 'The work needs them. The lines above show their expected paths.';
    refuse('corrupt-file', `Required artifacts are missing: ${missing.join(', ')}.`, next);
  }
  if (trouble !== undefined) refuse('write-failed', `The context was loaded but not recorded: ${trouble}`, '');
}

/** Refuses a faulty configuration and unknown artifact ids. */
function checkIds(context: Context, project: FaberProject, { state }: FoundRun, ids: readonly string[] = []): void {
  const config = need(soundConfig(context, project, workflowName(state.workflow_id)));
  const known = config.artifacts.map(({ id }) => id);
  const unknown = ids.filter((id) => !known.includes(id));
  if (unknown.length === 0) return;
  const names = unknown.map((id) => {
    const near = nearest(id, known);
    return `${JSON.stringify(id.slice(0, 100))}${near === undefined ? '' : ` (did you mean ${near}?)`}`;
  });
  refuse('usage', `There is no artifact ${names.join(' and no ')}.`, `There are: ${known.join(', ') || 'none'}.`);
}

function show({ stdout, stderr }: Context, runId: string, primed: Primed, { json, dryRun, trigger }: PrimeGiven): void {
  if (json) stdout.json(documentOf(runId, primed, trigger));
  else if (dryRun) {
    stdout.line(safeLine(`Would load for run ${runId} at ${trigger}:`, 400));
    stdout.lines(primed.artifacts.map((one) => `  ${safeLine(wouldLoad(one), 400)}`));
  } else {
    stdout.line(harmless(primed.text));
    for (const { artifact, due } of primed.artifacts) {
      if (due.action === 'cached') stderr.line(safeLine(`${artifact.id} ${due.why}`, 400));
    }
  }
}

function wouldLoad({ artifact, due, content }: PrimedArtifact): string {
  const what = `${artifact.id} (${artifact.type})`;
  if (due.action !== 'load') return `${what} ${due.action}: ${due.why}`;
  if (content?.kind === 'missing') return `${what} missing: ${content.source} ${content.trouble}`;
  return `${what} ${content?.source}${content?.kind === 'text' ? ` (${content.sizeBytes} bytes)` : ''}`;
}

function documentOf(runId: string, primed: Primed, trigger: string): object {
  return {
    run_id: runId,
    trigger,
    session_id: primed.sessionId,
    is_new_session: primed.isNewSession,
    artifacts: primed.artifacts.map(({ artifact, due, content }) => ({
      id: artifact.id,
      type: artifact.type,
      required: artifact.required,
      action: content?.kind === 'missing' ? 'missing' : due.action,
      ...(due.action === 'load' ? {} : { why: due.why }),
      ...(content === undefined ? {} : { source: content.source }),
      ...(content?.kind === 'missing' ? { why: content.trouble } : {}),
      ...(content?.kind === 'text' ? { size_bytes: content.sizeBytes } : {}),
    })),
    text: primed.text,
  };
}

const endExample = `
Example:
  $ claude-code-agent faber session-end
  $ claude-code-agent faber session-end --reason compaction`;

export function defineSessionEnd(command: Command, context: Context): void {
  command
    .description('Record the end of the current session, with its finished phases and loaded artifacts.')
    .option('--run-id <id>', 'the run (default: the active one)')
    .option('--reason <word>', 'reason, such as normal or compaction', parseReason, 'normal')
    .option('--project <dir>', 'the project (default: the current folder)')
    .option('--json', 'one JSON document: the run and the session')
    .addHelpText('after', endExample)
    .action((given) => context.run(() => endCurrent(context, given)));
}

function parseReason(text: string): string {
  if (/^[a-z][a-z_-]{0,63}$/.test(text)) return text;
  throw new InvalidArgumentError('It must be a lower-case word such as normal or compaction.');
}

function endCurrent(context: Context, { reason, json, ...given }: Given & { readonly reason: string }): void {
  const { stdout, stderr } = context;
  const project = need(currentProject(context, given.project));
  const run = need(currentRun(context, project, given.runId));
  if (run === null) {
    const dangling = danglingRun(context, project);
    if (dangling !== null) stderr.line(dangling);
    if (json) stdout.json({ run_id: null, session_id: null });
    else stdout.line('No active workflow found, skipping session-end');
    return;
  }
  const { runId } = run;
  const who = currentActor(context, project);
  let ended: string | null = null;
  need(
    updateState(context.world.files, project, runId, (state) => {
      const done = endSession(state, who, { atMs: who.nowMs, reason });
      ended = done.ended;
      return ok(done.state);
    }),
  );
  if (json) stdout.json({ run_id: runId, session_id: ended, reason });
  else if (ended === null) stdout.line(`Run ${runId} has no record of this session; nothing was changed`);
  else stdout.line(`Recorded the end of session ${ended} in run ${runId}`);
}
