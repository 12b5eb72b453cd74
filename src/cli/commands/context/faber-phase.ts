/** `faber phase`: records a finished phase of a run, and where the documents are that it made. */
import { type Command, InvalidArgumentError } from '@commander-js/extra-typings';
import { type Artifact, recordPhase } from '../../../app/faber/finish-phase.ts';
import { noRunHere, ofWorkItem, projectHere, runHere, soundConfig } from '../../../app/faber/here.ts';
import { beginPhase } from '../../../app/faber/start-run.ts';
import { tidyWorktrees } from '../../../app/faber/worktrees.ts';
import { nextPhase, phasesCompleted } from '../../../context/faber/state.ts';
import { workflowName } from '../../../context/faber/workflow-config.ts';
import { ok } from '../../../core/failure.ts';
import { hasControl } from '../../../core/values.ts';
import { safeJson, safeLine } from '../../../view/terminal-text.ts';
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
  readonly artifact?: readonly Artifact[] | undefined;
  readonly runId?: string | undefined;
  readonly workId?: string | undefined;
  readonly project?: string | undefined;
  readonly json?: true | undefined;
}

const valueLengthMax = 4_000;

function parseArtifact(text: string, before: readonly Artifact[] = []): readonly Artifact[] {
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
  const wanted = { name, phases, made: given.artifact ?? [] };
  const changed = recordPhase(context, project.value, meant.value, wanted);
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
