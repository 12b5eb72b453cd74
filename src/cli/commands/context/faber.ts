/** `faber start`, `resume`, `phase` and `worktrees`. */
import { basename } from 'node:path';
import { type Command, InvalidArgumentError } from '@commander-js/extra-typings';
import {
  currentActor,
  currentProject,
  currentRun,
  noActiveRun,
  ofWorkItem,
  runNamed,
  settleWithGit,
  soundConfig,
} from '../../../app/faber/current-run.ts';
import {
  activate,
  activeNow,
  beginPhase,
  conflictWith,
  type NamedValue,
  type NewRun,
  newRun,
  recordPhase,
  runLocation,
  startBeside,
  startHere,
} from '../../../app/faber/start-run.ts';
import {
  type FaberWorktrees,
  removeFinished,
  repositoryOf,
  tidyWorktrees,
  viewWorktrees,
  type WorktreeView,
} from '../../../app/faber/worktrees.ts';
import { objectOf } from '../../../context/faber/json-text.ts';
import { runLines } from '../../../context/faber/prime.ts';
import type { FaberProject } from '../../../context/faber/project.ts';
import { beginSession, inProgress, isoTime, nextPhase, phasesCompleted } from '../../../context/faber/state.ts';
import { loadState, updateState } from '../../../context/faber/state-file.ts';
import { workflowName } from '../../../context/faber/workflow-config.ts';
import { advise, commandText } from '../../../core/advice.ts';
import { ok } from '../../../core/failure.ts';
import { foreignText } from '../../../core/text.ts';
import { hasControl, plainNamePattern } from '../../../core/values.ts';
import { formatTable, plural } from '../../../view/format.ts';
import { safeLine } from '../../../view/terminal-text.ts';
import { type CommandResult, type Context, confirmed, exitCode, need, refuse, refuseWith } from '../../context.ts';
import { parseWorkId } from '../../options/options.ts';

interface Shared {
  readonly takeOver?: true | undefined;
  readonly project?: string | undefined;
  readonly json?: true | undefined;
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
    .option('--worktree', 'work in a new git worktree beside this one')
    .option('--take-over', 'become the active run even if another one is in progress')
    .option('--project <dir>', 'the project (default: the current folder)')
    .option('--json', 'one JSON document: the run')
    .addHelpText('after', startExample)
    .action((given) => context.run(() => start(context, given)));
}

interface StartGiven extends Shared {
  readonly workId: string;
  readonly workflow: string;
  readonly worktree?: true | undefined;
}

async function start(context: Context, given: StartGiven): Promise<CommandResult> {
  const { workId, workflow, worktree, takeOver, json } = given;
  if (worktree && takeOver) {
    const message = '--worktree and --take-over cannot be combined.';
    refuse('usage', message, 'Give one of them.');
  }
  const project = need(currentProject(context, given.project));
  const config = need(soundConfig(context, project, workflow));
  await tidyWorktrees(context, project);
  const run = newRun(context, { workId, workflow, config });
  const decidedOn = activeNow(context, project);
  const choice = worktree ? 'worktree' : await choose(context, { ...run, project, takeOver, offersWorktree: true });
  if (choice === 'worktree') return say(context, need(await startBeside(context, project, run)), run, json);
  if (choice === 'cancel') {
    context.stderr.line('Workflow start cancelled. Use separate worktrees for concurrent workflows.');
    return exitCode.failed;
  }
  need(startHere(context, project, run, decidedOn));
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
  const conflict = need(conflictWith(context, project, runId));
  if (conflict === null || takeOver) return 'take-over';
  const { stderr } = context;
  stderr.line('WARNING: Another workflow is active in this worktree');
  const item = conflict.workId === undefined ? '' : ` (work item ${conflict.workId})`;
  const indented = [`Active: ${conflict.runId}${item}`, `New: ${runId}`, conflict.trouble ?? ''];
  stderr.lines(indented.filter((line) => line !== '').map((line) => `   ${safeLine(line, 600)}`));
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

async function resume(context: Context, typed: string, { takeOver, json, ...given }: Shared): Promise<CommandResult> {
  const { files } = context.world;
  const project = need(currentProject(context, given.project));
  const runId = need(runNamed(context, project, typed));
  const { status, work_id, workflow_id } = need(loadState(files, project, runId));
  if (status === 'completed') {
    const next = advise('Begin another one with', ['faber', 'start', '--work-id', 'ID']);
    refuse('illegal-transition', `The run ${runId} is completed.`, next);
  }
  const config = need(soundConfig(context, project, workflowName(workflow_id)));
  const decidedOn = activeNow(context, project);
  const workId = foreignText(work_id ?? '');
  const choice = await choose(context, { runId, workId, project, takeOver, offersWorktree: false });
  if (choice !== 'take-over') return exitCode.failed;
  need(activate(context, project, runId, decidedOn));
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

interface PhaseGiven extends Shared {
  readonly artifact?: readonly NamedValue[] | undefined;
  readonly runId?: string | undefined;
  readonly workId?: string | undefined;
}

const valueLengthMax = 4_000;

function parseArtifact(text: string, before: readonly NamedValue[] = []): readonly NamedValue[] {
  const [, name, value = ''] = /^([A-Za-z]\w{0,63})=(.*)$/s.exec(text) ?? [];
  const isFine = name !== undefined && value !== '' && value.length <= valueLengthMax && !hasControl(value);
  if (isFine) return [...before, { name, value }];
  throw new InvalidArgumentError('It must be a name and a value in one line, such as spec_path=specs/WORK-258.md.');
}

async function phase(context: Context, name: string, { artifact = [], json, ...given }: PhaseGiven): Promise<void> {
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

interface WorktreesGiven extends Shared {
  readonly yes?: true | undefined;
  readonly prune?: true | undefined;
  readonly force?: true | undefined;
}

async function worktrees(context: Context, given: WorktreesGiven): Promise<CommandResult> {
  const project = need(currentProject(context, given.project));
  const repository = need(await repositoryOf(context, project));
  const views = need(viewWorktrees(context, repository));
  if (given.prune) return prune(context, repository, views, given);
  listWorktrees(context, views, given.json);
}

function listWorktrees({ stdout, stderr }: Context, views: readonly WorktreeView[], json: true | undefined): void {
  if (json) {
    const shown = views.map(({ workId, runId, status, branch, path, createdAt }) => {
      return { work_id: workId, run_id: runId, status, branch, path, created_at: createdAt };
    });
    stdout.json(shown);
  } else if (views.length === 0) {
    const make = commandText(['faber', 'start', '--work-id', 'ID', '--worktree']);
    stderr.line(`There are no worktrees of runs. Create one with: ${make}`);
  } else {
    const columns = ['WORK', 'STATUS', 'RUN', 'BRANCH', 'PATH'].map((title) => ({ title }));
    const rows = views.map(({ workId, status, runId, branch, path }) =>
      [workId, status, runId, branch, path].map((text) => safeLine(text, 300)),
    );
    stdout.lines(formatTable(columns, rows, stdout.style));
  }
}

async function prune(
  context: Context,
  repository: FaberWorktrees,
  views: readonly WorktreeView[],
  { yes, force, json }: WorktreesGiven,
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
