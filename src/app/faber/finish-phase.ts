/** Records a finished phase of a run, and where the documents are that it made. */
import { resolve } from 'node:path';
import { fillIn, portablePath } from '../../context/faber/artifacts.ts';
import { type JsonObject, objectOf } from '../../context/faber/json-text.ts';
import type { FaberProject } from '../../context/faber/project.ts';
import { finishPhase, inProgress, phasesCompleted } from '../../context/faber/state.ts';
import { updateState } from '../../context/faber/state-file.ts';
import { advise } from '../../core/advice.ts';
import { fail, ok, type Result } from '../../core/failure.ts';
import { nearest } from '../../core/nearest.ts';
import { foreignText } from '../../core/text.ts';
import { safeLine } from '../../view/terminal-text.ts';
import { briefPath, lookAt, tryPath } from '../path-argument.ts';
import type { Place } from '../place.ts';
import { type FoundRun, whoAsks } from './here.ts';

/** Something a phase made: a name, and a value that is a path when the name ends in `_path`. */
export interface Artifact {
  readonly name: string;
  readonly value: string;
}

/**
 * The state with the phase recorded. Fails with `usage` for a phase that is none of `phases` and for an artifact that
 * is not in the project, with `illegal-transition` when the run is not in progress.
 */
export function recordPhase(
  place: Place,
  project: FaberProject,
  run: FoundRun,
  {
    name,
    phases,
    made,
  }: { readonly name: string; readonly phases: readonly string[]; readonly made: readonly Artifact[] },
): Result<JsonObject> {
  if (!phases.includes(name)) {
    const near = nearest(name, phases);
    const hint = near === undefined ? '' : ` Did you mean ${near}?`;
    const what = JSON.stringify(name.slice(0, 100));
    return fail('usage', `The workflow has no phase ${what}.${hint}`, `Its phases are: ${phases.join(', ')}.`);
  }
  const artifacts = portableArtifacts(place, project, run, made);
  if (!artifacts.ok) return artifacts;
  const who = whoAsks(place, project);
  return updateState(place.world.files, project, run.runId, (now) => {
    if (now.status !== inProgress) return notInProgress(run.runId, foreignText(now.status));
    const all = { ...objectOf(now.artifacts), ...artifacts.value };
    const known = Object.keys(artifacts.value).length === 0 ? now : { ...now, artifacts: all };
    // Recorded twice, a phase keeps the time at which it was finished.
    return ok(phasesCompleted(now).includes(name) ? known : finishPhase(known, name, phases, who));
  });
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
  place: Place,
  project: FaberProject,
  { runId, state }: FoundRun,
  given: readonly Artifact[],
): Result<Record<string, string>> {
  const made: Record<string, string> = {};
  for (const { name, value } of given) {
    const filled = fillIn(value, { project, runId, state });
    if (!filled.ok) return fail('usage', `${name} ${filled.trouble}.`, placeholders);
    if (!name.endsWith('_path')) {
      made[name] = value;
      continue;
    }
    const path = resolve(place.cwd, filled.text);
    const kind = lookAt(place.world.files, path);
    const next = 'Give the path of something in the project.';
    if (!kind.ok) return fail('usage', `${name}: ${briefPath(path)} ${kind.trouble}.`, next);
    const real = tryPath(() => place.world.files.realPath(path));
    const portable = real.ok && real.value !== null ? portablePath(project, real.value) : null;
    if (portable === null) return fail('usage', `${name}: ${briefPath(path)} is not in the project.`, next);
    made[name] = portable;
  }
  return ok(made);
}
