/** `faber resume`: makes a run the active one again, here or on another machine. */

import { basename } from 'node:path';
import type { Command } from '@commander-js/extra-typings';
import { projectHere, runNamed, soundConfig, warnOfIgnored, whoAsks } from '../../../app/faber/here.ts';
import { activate, activeNow, beginPhase, conflictWith } from '../../../app/faber/start-run.ts';
import { tidyWorktrees } from '../../../app/faber/worktrees.ts';
import { runLines } from '../../../context/faber/prime.ts';
import { beginSession, inProgress, isoTime, nextPhase } from '../../../context/faber/state.ts';
import { loadState, updateState } from '../../../context/faber/state-file.ts';
import { workflowName } from '../../../context/faber/workflow-config.ts';
import { advise } from '../../../core/advice.ts';
import { fail, ok } from '../../../core/failure.ts';
import { foreignText } from '../../../core/text.ts';
import { safeJson } from '../../../view/terminal-text.ts';
import type { Context, Work } from '../../context.ts';
import { exitCode } from '../../exit-code.ts';
import { choose } from '../../faber-choice.ts';

const example = `
Example:
  $ git pull && claude-code-agent faber resume fractary-faber-258-20260105-143022-a1b2c3
  $ claude-code-agent faber resume fractary-faber-258            an unambiguous beginning is enough`;

export function define(command: Command, context: Context): void {
  command
    .description('Makes a run the active one of this work tree again, so that the next session goes on with it.')
    .argument('<run>', 'its id, or an unambiguous beginning')
    .option('--take-over', 'although another run is in progress here')
    .option('--project <dir>', 'the project (default: the current folder)')
    .option('--json', 'one JSON document: the run')
    .addHelpText('after', example)
    .action((run, given) => context.run(() => resume(context, run, given)));
}

interface Given {
  readonly takeOver?: true | undefined;
  readonly project?: string | undefined;
  readonly json?: true | undefined;
}

async function resume(context: Context, typed: string, given: Given): Promise<Work> {
  const project = projectHere(context, given.project);
  if (!project.ok) return project;
  const named = runNamed(context, project.value, typed);
  if (!named.ok) return named;
  const runId = named.value;
  const { files } = context.world;
  const state = loadState(files, project.value, runId);
  if (!state.ok) return state;
  if (state.value.status === 'completed') {
    const next = advise('Begin another one with', ['faber', 'start', '--work-id', 'ID']);
    return fail('illegal-transition', `The run ${runId} is completed.`, next);
  }
  const config = soundConfig(context, project.value, workflowName(state.value.workflow_id));
  if (!config.ok) return config;
  const conflict = conflictWith(context, project.value, runId);
  if (!conflict.ok) return conflict;
  const decidedOn = activeNow(context, project.value);
  if (conflict.value !== null && given.takeOver !== true) {
    const workId = foreignText(state.value.work_id ?? '');
    const asked = { runId, workId, project: basename(project.value.top), offersWorktree: false };
    const choice = await choose(context, conflict.value, asked);
    if (!choice.ok) return choice;
    if (choice.value !== 'take-over') return ok(exitCode.failed);
  }
  const active = activate(context, project.value, runId, decidedOn);
  if (!active.ok) return active;
  const who = whoAsks(context, project.value);
  const { nowMs } = who;
  const changed = updateState(files, project.value, runId, (now) => {
    const going = now.status === inProgress ? now : { ...now, status: inProgress, updated_at: isoTime(nowMs) };
    return ok(who.sessionId === undefined ? going : beginSession(going, who).state);
  });
  if (!changed.ok) return changed;
  await tidyWorktrees(context, project.value);
  if (given.json === true) context.stdout.line(safeJson({ run_id: runId, project: project.value.root }, 2));
  else for (const line of runLines(runId, changed.value, config.value.phases)) context.stdout.line(line);
  await warnOfIgnored(context, project.value, runId);
  const phase = nextPhase(changed.value, config.value.phases);
  if (phase !== undefined) beginPhase(context, project.value, { runId, phase, config: config.value });
  return ok(exitCode.done);
}
