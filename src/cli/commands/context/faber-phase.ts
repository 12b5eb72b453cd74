/** `faber phase`: records a finished phase of a run, and where the documents are that it made. */

import { resolve } from 'node:path';
import { type Command, InvalidArgumentError } from '@commander-js/extra-typings';
import { fillIn, portablePath } from '../../../context/faber/artifacts.ts';
import { objectOf } from '../../../context/faber/json-text.ts';
import type { FaberProject } from '../../../context/faber/project.ts';
import { shippedFaber } from '../../../context/faber/shipped.ts';
import { finishPhase, inProgress, nextPhase, phasesCompleted } from '../../../context/faber/state.ts';
import { updateState } from '../../../context/faber/state-file.ts';
import { workflowName } from '../../../context/faber/workflow-config.ts';
import {
  type FoundRun,
  noRunHere,
  ofWorkItem,
  projectHere,
  runHere,
  soundConfig,
  whoAsks,
} from '../../../control/faber/here.ts';
import { beginPhase } from '../../../control/faber/pre-steps.ts';
import { tidyWorktrees } from '../../../control/faber/worktrees.ts';
import { briefPath, lookAt, tryPath } from '../../../control/path-argument.ts';
import { advise } from '../../../core/advice.ts';
import { fail, ok, type Result } from '../../../core/failure.ts';
import { hasControl } from '../../../core/values.ts';
import { safeJson, safeLine } from '../../../report/terminal-text.ts';
import { nearest } from '../../../template/nearest.ts';
import type { Context, Work } from '../../context.ts';
import { exitCode } from '../../exit-code.ts';
import { parseWorkId } from '../../options/option-values.ts';

const example = `
Example:
  $ claude-code-agent faber phase frame
  $ claude-code-agent faber phase architect --artifact spec_path=specs/WORK-258.md`;

export function define(command: Command, context: Context): void {
  command
    .description('Records that a phase is finished. After the last one the run is completed.')
    .argument('<name>', 'the phase, such as frame, architect, build, evaluate or release')
    .option('--artifact <name=value>', 'something the phase made; names that end in _path are paths', parseArtifact)
    .option('--run-id <id>', 'the run (default: the active one)')
    .option('--work-id <id>', 'refuse when the run is of another work item than this one', parseWorkId)
    .option('--project <dir>', 'the project (default: the current folder)')
    .option('--json', 'one JSON document: the run and its phases')
    .addHelpText('after', example)
    .action((name, given) => context.run(() => phase(context, name, given)));
}

interface Given {
  readonly artifact?: readonly Made[] | undefined;
  readonly runId?: string | undefined;
  readonly workId?: string | undefined;
  readonly project?: string | undefined;
  readonly json?: true | undefined;
}

interface Made {
  readonly name: string;
  readonly value: string;
}

const valueLengthMax = 4_000;

function parseArtifact(text: string, before: readonly Made[] = []): readonly Made[] {
  const [, name, value = ''] = /^([A-Za-z]\w{0,63})=(.*)$/s.exec(text) ?? [];
  const isFine = name !== undefined && value !== '' && value.length <= valueLengthMax && !hasControl(value);
  if (isFine) return [...before, { name, value }];
  throw new InvalidArgumentError('It must be a name and a value in one line, such as spec_path=specs/WORK-258.md.');
}

async function phase(context: Context, name: string, given: Given): Promise<Work> {
  const project = projectHere(context, given.project);
  if (!project.ok) return project;
  const run = runHere(context, project.value, given.runId);
  if (!run.ok) return run;
  if (run.value === null) return noRunHere(context, project.value);
  const meant = ofWorkItem(run.value, given.workId);
  if (!meant.ok) return meant;
  const { runId, state } = meant.value;
  const config = soundConfig(context, project.value, workflowName(state.workflow_id));
  if (!config.ok) return config;
  const { phases } = config.value;
  if (!phases.includes(name)) {
    const near = nearest(name, phases);
    const hint = near === undefined ? '' : ` Did you mean ${near}?`;
    const what = JSON.stringify(name.slice(0, 100));
    return fail('usage', `The workflow has no phase ${what}.${hint}`, `Its phases are: ${phases.join(', ')}.`);
  }
  const artifacts = portableArtifacts(context, project.value, meant.value, given.artifact ?? []);
  if (!artifacts.ok) return artifacts;
  const who = whoAsks(context, project.value);
  const changed = updateState(context.world.files, project.value, { runId, nowMs: who.nowMs }, (now) => {
    if (now.status !== inProgress) return notInProgress(runId, String(now.status));
    const made = { ...objectOf(now.artifacts), ...artifacts.value };
    const known = Object.keys(artifacts.value).length === 0 ? now : { ...now, artifacts: made };
    // Recorded twice, a phase keeps the time at which it was finished.
    return ok(phasesCompleted(now).includes(name) ? known : finishPhase(known, name, phases, who));
  });
  if (!changed.ok) return changed;
  const done = phasesCompleted(changed.value);
  const next = nextPhase(changed.value, phases);
  const skipped = phases.slice(0, phases.indexOf(name)).filter((before) => !done.includes(before));
  if (given.json === true) {
    const { status } = changed.value;
    context.stdout.line(safeJson({ run_id: runId, status, phases_completed: done, next_phase: next ?? null }, 2));
  } else {
    const then = next === undefined ? 'The run is completed.' : `The next phase is ${next}.`;
    context.stdout.line(safeLine(`Phase ${name} of run ${runId} is finished. ${then}`, 600));
  }
  if (skipped.length > 0) {
    context.stderr.line(`WARNING: earlier phases are not recorded as finished: ${skipped.join(', ')}.`);
  }
  if (next === undefined) await tidyWorktrees(context, project.value);
  else beginPhase(context, project.value, { runId, phase: next, config: config.value });
  return ok(exitCode.done);
}

function notInProgress(runId: string, status: string): Result<never> {
  const message = `The run ${runId} is not in progress, but ${safeLine(status, 100)}.`;
  return fail('illegal-transition', message, advise('Go on with it', ['faber', 'resume', runId]));
}

const placeholders = 'There are {project_root}, {run_id}, {plan_id}, {work_id} and {faber_root}.';

/**
 * Paths are stored so that they are right on every machine, and may be given as they are stored, with placeholders.
 * Fails with `usage` for paths out of the project and for placeholders without a value.
 */
function portableArtifacts(
  context: Context,
  project: FaberProject,
  { runId, state }: FoundRun,
  given: readonly Made[],
): Result<Record<string, string>> {
  const made: Record<string, string> = {};
  for (const { name, value } of given) {
    const filled = fillIn(value, { project, runId, state, shipped: shippedFaber });
    if (!filled.ok) return fail('usage', `${name} ${filled.trouble}.`, placeholders);
    if (!name.endsWith('_path')) {
      made[name] = value;
      continue;
    }
    const path = resolve(context.cwd, filled.text);
    const kind = lookAt(context.world.files, path);
    const next = 'Give the path of something in the project.';
    if (!kind.ok) return fail('usage', `${name}: ${briefPath(path)} ${kind.trouble}.`, next);
    const real = tryPath(() => context.world.files.realPath(path));
    const portable = real.ok && real.value !== null ? portablePath(project, real.value) : null;
    if (portable === null) return fail('usage', `${name}: ${briefPath(path)} is not in the project.`, next);
    made[name] = portable;
  }
  return ok(made);
}
