/** `faber start`: begins a run for a work item and makes it the active one of this work tree, or of a new one. */
import { basename, join } from 'node:path';
import type { Command } from '@commander-js/extra-typings';
import { type FaberProject, runsPath } from '../../../context/faber/project.ts';
import { beginSession, newState, stamp } from '../../../context/faber/state.ts';
import { createState } from '../../../context/faber/state-file.ts';
import type { WorkflowConfig } from '../../../context/faber/workflow-config.ts';
import { trackWorktree, untrackWorktree } from '../../../context/faber/worktrees.ts';
import { activate, activeNow, conflictWith } from '../../../control/faber/begin.ts';
import { projectHere, soundConfig, warnOfIgnored, whoAsks } from '../../../control/faber/here.ts';
import { beginPhase } from '../../../control/faber/pre-steps.ts';
import { makeWorktree, repositoryOf, tidyWorktrees } from '../../../control/faber/worktrees.ts';
import { tryPath } from '../../../control/path-argument.ts';
import { fail, ok, type Result } from '../../../core/failure.ts';
import { removeWorktree } from '../../../git/worktrees/worktree.ts';
import { safeJson, safeLine } from '../../../report/terminal-text.ts';
import type { Context, Work } from '../../context.ts';
import { exitCode } from '../../exit-code.ts';
import { choose } from '../../faber-choice.ts';
import { parseWorkId } from '../../options/option-values.ts';

const example = `
Example:
  $ claude-code-agent faber start --work-id 258
  $ claude-code-agent faber start --work-id 259 --worktree       in ../<project>-issue-259, on the branch feature/259`;

export function define(command: Command, context: Context): void {
  command
    .description(
      'Begins a FABER run for a work item and prints its id. A work tree has one active run; where one is in ' +
        'progress already you are asked, or choose --worktree or --take-over.',
    )
    .requiredOption('--work-id <id>', 'the work item, such as an issue number', parseWorkId)
    .option('--workflow <name>', 'configuration of the workflow', 'default')
    .option('--worktree', 'work in a new git work tree beside this one')
    .option('--take-over', 'become the active run although another one is in progress')
    .option('--project <dir>', 'the project (default: the current folder)')
    .option('--json', 'one JSON document: the run')
    .addHelpText('after', example)
    .action((given) => context.run(() => start(context, given)));
}

interface Given {
  readonly workId: string;
  readonly workflow: string;
  readonly worktree?: true | undefined;
  readonly takeOver?: true | undefined;
  readonly project?: string | undefined;
  readonly json?: true | undefined;
}

async function start(context: Context, given: Given): Promise<Work> {
  if (given.worktree === true && given.takeOver === true) {
    const message = 'Both --worktree and --take-over are given.';
    return fail('usage', message, 'A run in a work tree of its own takes nothing over: give one of them.');
  }
  const project = projectHere(context, given.project);
  if (!project.ok) return project;
  const config = soundConfig(context, project.value, given.workflow);
  if (!config.ok) return config;
  await tidyWorktrees(context, project.value);
  const { clock, random } = context.world;
  const suffix = random.uuid().replaceAll('-', '').slice(0, 6);
  const run: NewRun = {
    runId: `fractary-faber-${given.workId}-${stamp(clock.now())}-${suffix}`,
    workId: given.workId,
    workflow: given.workflow,
    config: config.value,
  };
  if (given.worktree === true) return startBeside(context, project.value, run, given);
  const conflict = conflictWith(context, project.value, run.runId);
  if (!conflict.ok) return conflict;
  const decidedOn = activeNow(context, project.value);
  if (conflict.value !== null && given.takeOver !== true) {
    const name = basename(project.value.top);
    const choice = await choose(context, conflict.value, { ...run, project: name, offersWorktree: true });
    if (!choice.ok) return choice;
    if (choice.value === 'worktree') return startBeside(context, project.value, run, given);
    if (choice.value === 'cancel') {
      context.stderr.line('Workflow start cancelled. Use separate worktrees for concurrent workflows.');
      return ok(exitCode.failed);
    }
  }
  const begun = begin(context, project.value, run, decidedOn);
  if (!begun.ok) return begun;
  const said = await say(context, project.value, run, given.json === true);
  beginPhase(context, project.value, { ...run, phase: config.value.phases[0] ?? '' });
  return said;
}

interface NewRun {
  readonly runId: string;
  readonly workId: string;
  readonly workflow: string;
  readonly config: WorkflowConfig;
}

/** The state first: an active run without a state would be no run. */
function begin(
  context: Context,
  project: FaberProject,
  run: NewRun,
  decidedOn: string | null,
  branch?: string,
): Result<void> {
  const { files, clock } = context.world;
  const nowMs = clock.now();
  const { phases } = run.config;
  const made = newState({ ...run, phases, workflowId: `fractary-faber:${run.workflow}`, nowMs });
  const who = whoAsks(context, project);
  // The hook of its start found no run yet. In a work tree beside its own the session takes no part.
  const state =
    branch !== undefined
      ? { ...made, worktree: { branch, folder: basename(project.top) } }
      : who.sessionId === undefined
        ? made
        : beginSession(made, who).state;
  const created = createState(files, project, { runId: run.runId, state, nowMs });
  const active = created.ok ? activate(context, project, run.runId, decidedOn) : created;
  // A run that could not be made the active one was never begun.
  if (!active.ok) tryPath(() => files.remove(join(project.root, runsPath, run.runId)));
  return active;
}

async function startBeside(context: Context, project: FaberProject, run: NewRun, given: Given): Promise<Work> {
  const { files, clock } = context.world;
  const repository = await repositoryOf(context, project);
  if (!repository.ok) return repository;
  const made = await makeWorktree(context, project, repository.value, run.workId);
  if (!made.ok) return made;
  const { project: there, branch } = made.value;
  const nowMs = clock.now();
  const entry = { ...run, path: there.top, branch, createdAt: new Date(nowMs).toISOString() };
  const { main } = repository.value;
  const tracked = trackWorktree(files, main, entry, nowMs);
  // What was committed as active run came along with the checkout and belongs to the work tree it came from.
  const begun = tracked.ok ? begin(context, there, run, activeNow(context, there), branch) : tracked;
  if (!begun.ok) {
    // Nothing half made stays behind: no folder without a run, no entry without a folder.
    if (tracked.ok) untrackWorktree(files, main, there.top, nowMs);
    await removeWorktree(context, main.top, there.top);
  }
  return begun.ok ? say(context, there, run, given.json === true) : begun;
}

async function say(context: Context, project: FaberProject, run: NewRun, json: boolean): Promise<Work> {
  const { runId, workId, workflow, config } = run;
  const { phases } = config;
  if (json) {
    const shown = { run_id: runId, work_id: workId, workflow, phases, project: project.root };
    context.stdout.line(safeJson(shown, 2));
  } else {
    context.stdout.line(runId);
    context.stderr.line(safeLine(`Work in ${project.root}. The first phase is ${phases[0]}.`, 600));
  }
  await warnOfIgnored(context, project, runId);
  return ok(exitCode.done);
}
