/** Starts a run in this worktree or a new one, and records finished phases. */

import { dirname, join, resolve } from 'node:path';
import { updateExclusively } from '../../context/exclusive-update.ts';
import { fillPlaceholders, portablePath } from '../../context/faber/artifacts.ts';
import { readGitHead } from '../../context/faber/git-head.ts';
import { objectOf } from '../../context/faber/json-text.ts';
import { primeContext } from '../../context/faber/prime.ts';
import { activeRunPath, type FaberProject, makeFolderInProject, readActiveRun } from '../../context/faber/project.ts';
import {
  beginSession,
  finishPhase,
  inProgress,
  newState,
  phasesCompleted,
  type RunPlace,
  stamp,
} from '../../context/faber/state.ts';
import { belongsHere, createState, loadState, updateState } from '../../context/faber/state-file.ts';
import type { WorkflowConfig } from '../../context/faber/workflow-config.ts';
import { harmless } from '../../context/hook-call.ts';
import { advise } from '../../core/advice.ts';
import { defined } from '../../core/defined.ts';
import { fail, ok, type Result } from '../../core/failure.ts';
import { nearest } from '../../core/nearest.ts';
import { foreignText } from '../../core/text.ts';
import { removeWorktree } from '../../git/worktrees/worktree.ts';
import type { JsonObject } from '../../store/json.ts';
import { safeLine } from '../../view/terminal-text.ts';
import type { AppContext } from '../app-context.ts';
import { briefPath, lookAt, tryPath } from '../path-argument.ts';
import { currentActor, type FoundRun } from './current-run.ts';
import { makeWorktree, repositoryOf, trackWorktree, untrackWorktree } from './worktrees.ts';

export interface NewRun {
  readonly runId: string;
  readonly workId: string;
  readonly workflow: string;
  readonly config: WorkflowConfig;
}

export function newRun(context: AppContext, run: Omit<NewRun, 'runId'>): NewRun {
  const { clock, random } = context.world;
  const suffix = random.uuid().replaceAll('-', '').slice(0, 6);
  return { ...run, runId: `fractary-faber-${run.workId}-${stamp(clock.now())}-${suffix}` };
}

/** Starts the run in the worktree of the project. `isOwnTree`: the worktree was created for this run. */
export function startHere(context: AppContext, project: FaberProject, run: NewRun, isOwnTree = false): Result<void> {
  const { files, clock } = context.world;
  const nowMs = clock.now();
  const { phases } = run.config;
  const workflowId = `fractary-faber:${run.workflow}`;
  const made = newState({ ...run, phases, workflowId, nowMs, place: runLocation(context, project, isOwnTree) });
  const who = currentActor(context, project);
  // The SessionStart hook found no run yet, so record the session now. It has no part in a run in another worktree.
  const state = isOwnTree || who.sessionId === undefined ? made : beginSession(made, who).state;
  // Write the state first, so that the active run always has one.
  const created = createState(files, project, { runId: run.runId, state });
  const active = created.ok ? activate(context, project, run.runId) : created;
  // The run could not become active, so remove its state.
  if (!active.ok) tryPath(() => files.remove(join(project.root, project.runs, run.runId)));
  return active;
}

/** The worktree and branch of a run, for its state. */
export function runLocation({ world }: AppContext, { top }: FaberProject, isMade = false): RunPlace {
  const { branch } = readGitHead(world.files, top) ?? {};
  return { path: top, ...defined({ branch }), ...(isMade ? { created_by: 'fractary-faber', auto_cleanup: true } : {}) };
}

/** Starts the run in a new worktree and returns the project there. Cleans up on failure. */
export async function startBeside(
  context: AppContext,
  project: FaberProject,
  run: NewRun,
): Promise<Result<FaberProject>> {
  const { files, clock } = context.world;
  const repository = await repositoryOf(context, project);
  if (!repository.ok) return repository;
  const made = await makeWorktree(context, project, repository.value, run.workId);
  if (!made.ok) return made;
  const { project: there, branch } = made.value;
  const entry = { ...run, path: there.top, branch, createdAt: new Date(clock.now()).toISOString() };
  const { main } = repository.value;
  const tracked = trackWorktree(files, main, entry);
  const begun = tracked.ok ? startHere(context, there, run, true) : tracked;
  if (!begun.ok) {
    // Leave neither a folder without a run nor an entry without a folder.
    if (tracked.ok) untrackWorktree(files, main, there.top);
    await removeWorktree(context, main.top, there.top);
  }
  return begun.ok ? ok(there) : begun;
}

/** Another run that is in progress in the worktree. */
export interface Conflict {
  readonly runId: string;
  readonly workId: string | undefined;
}

/** Null if the worktree is free. */
export function conflictWith(context: AppContext, project: FaberProject, newRunId: string): Result<Conflict | null> {
  const active = readActiveRun(context.world.files, project);
  if (active.kind === 'unusable') {
    return fail('corrupt-file', `${activeRunPath(project)} ${active.trouble}.`, 'Check it, then remove it.');
  }
  if (active.kind === 'none' || active.runId === newRunId) return ok(null);
  const { files } = context.world;
  const state = loadState(files, project, active.runId);
  const { runId } = active;
  // A run without a state cannot continue.
  if (!state.ok) return state.failure.reason === 'not-found' ? ok(null) : state;
  if (state.value.status !== inProgress || !belongsHere(files, project, state.value)) return ok(null);
  return ok({ runId, workId: foreignText(state.value.work_id ?? '') || undefined });
}

export function activate(context: AppContext, project: FaberProject, runId: string): Result<void> {
  const { files } = context.world;
  const made = makeFolderInProject(files, project, dirname(activeRunPath(project)));
  if (!made.ok) return made;
  const path = join(project.root, activeRunPath(project));
  const written = updateExclusively(files, {
    path: files.realPath(path) ?? path,
    bytesMax: 4096,
    change: () => ok(new TextEncoder().encode(`${runId}\n`)),
  });
  return written.ok ? ok(undefined) : written;
}

/** claude's Bash tool passes on 30,000 characters of output. */
export const bashCharactersMax = 25_000;

/** `/prime-context`, with or without the name of a plugin. */
const primes = /^\/(?:[\w-]+:)?prime-context\s*$/;

/** Runs the actions of a workflow before a phase. Outside claude there is no conversation to load context into. */
export function beginPhase(
  context: AppContext,
  project: FaberProject,
  { runId, phase, config }: { readonly runId: string; readonly phase: string; readonly config: WorkflowConfig },
): void {
  const who = currentActor(context, project);
  if (who.sessionId === undefined) return;
  const { notes } = context;
  for (const { id, prompt } of config.preSteps.filter((step) => step.phase === phase)) {
    if (!primes.test(prompt)) {
      notes.line(safeLine(`Before the phase ${phase} (${id}): ${prompt}`, 4_000));
      continue;
    }
    const primed = primeContext(context.world.files, {
      project,
      runId,
      who,
      trigger: 'manual',
      force: false,
      dryRun: false,
      isCompacted: false,
      charactersMax: bashCharactersMax,
    });
    // On stderr, because scripts read stdout; claude receives both.
    if (primed.ok) notes.line(harmless(primed.value.text));
    else notes.line(safeLine(`WARNING: The context could not be loaded (${id}): ${primed.failure.message}`, 600));
  }
}

export interface NamedValue {
  readonly name: string;
  readonly value: string;
}

/** Records the phase in the state. Fails for an unknown phase, an artifact outside the project, and a finished run. */
export function recordPhase(
  context: AppContext,
  project: FaberProject,
  run: FoundRun,
  finished: { readonly name: string; readonly phases: readonly string[]; readonly made: readonly NamedValue[] },
): Result<JsonObject> {
  const { name, phases, made } = finished;
  if (!phases.includes(name)) {
    const near = nearest(name, phases);
    const hint = near === undefined ? '' : ` Did you mean ${near}?`;
    const what = JSON.stringify(name.slice(0, 100));
    return fail('usage', `The workflow has no phase ${what}.${hint}`, `Its phases are: ${phases.join(', ')}.`);
  }
  const artifacts = portableArtifacts(context, project, run, made);
  if (!artifacts.ok) return artifacts;
  const who = currentActor(context, project);
  return updateState(context.world.files, project, run.runId, (now) => {
    if (now.status !== inProgress) return notInProgress(run.runId, foreignText(now.status));
    const all = { ...objectOf(now.artifacts), ...artifacts.value };
    const known = Object.keys(artifacts.value).length === 0 ? now : { ...now, artifacts: all };
    // A phase that is recorded again keeps its time.
    return ok(phasesCompleted(now).includes(name) ? known : finishPhase(known, name, phases, who));
  });
}

function notInProgress(runId: string, status: string): Result<never> {
  const message = `The run ${runId} is not in progress, but ${safeLine(status, 100)}.`;
  return fail('illegal-transition', message, advise('Continue with it', ['faber', 'resume', runId]));
}

const placeholders = 'Placeholders: {project_root}, {run_id}, {plan_id}, {work_id} and {faber_root}.';

/** Stores paths with placeholders, so that they are valid on every machine. Fails for paths outside the project. */
function portableArtifacts(
  context: AppContext,
  project: FaberProject,
  { runId, state }: FoundRun,
  given: readonly NamedValue[],
): Result<Record<string, string>> {
  const made: Record<string, string> = {};
  for (const { name, value } of given) {
    const filled = fillPlaceholders(value, { project, runId, state });
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
