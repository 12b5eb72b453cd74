/** `faber start`: begins a run for a work item and makes it the active one of this work tree, or of a new one. */
import { basename } from 'node:path';
import type { Command } from '@commander-js/extra-typings';
import { projectHere, soundConfig, warnOfIgnored } from '../../../app/faber/here.ts';
import {
  activeNow,
  beginPhase,
  conflictWith,
  type NewRun,
  newRun,
  startBeside,
  startHere,
} from '../../../app/faber/start-run.ts';
import { tidyWorktrees } from '../../../app/faber/worktrees.ts';
import type { FaberProject } from '../../../context/faber/project.ts';
import { fail, ok } from '../../../core/failure.ts';
import { safeJson, safeLine } from '../../../view/terminal-text.ts';
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
  const json = given.json === true;
  const project = projectHere(context, given.project);
  if (!project.ok) return project;
  const config = soundConfig(context, project.value, given.workflow);
  if (!config.ok) return config;
  await tidyWorktrees(context, project.value);
  const run = newRun(context, { workId: given.workId, workflow: given.workflow, config: config.value });
  if (given.worktree === true) return beside(context, project.value, run, json);
  const conflict = conflictWith(context, project.value, run.runId);
  if (!conflict.ok) return conflict;
  const decidedOn = activeNow(context, project.value);
  if (conflict.value !== null && given.takeOver !== true) {
    const name = basename(project.value.top);
    const choice = await choose(context, conflict.value, { ...run, project: name, offersWorktree: true });
    if (!choice.ok) return choice;
    if (choice.value === 'worktree') return beside(context, project.value, run, json);
    if (choice.value === 'cancel') {
      context.stderr.line('Workflow start cancelled. Use separate worktrees for concurrent workflows.');
      return ok(exitCode.failed);
    }
  }
  const begun = startHere(context, project.value, run, decidedOn);
  if (!begun.ok) return begun;
  const said = await say(context, project.value, run, json);
  beginPhase(context, project.value, { ...run, phase: config.value.phases[0] ?? '' });
  return said;
}

async function beside(context: Context, project: FaberProject, run: NewRun, json: boolean): Promise<Work> {
  const there = await startBeside(context, project, run);
  return there.ok ? say(context, there.value, run, json) : there;
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
