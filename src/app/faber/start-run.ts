/** Begins a run in a work tree, this one or a new one beside it, and records its finished phases. */

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

/**
 * Begins it in the work tree of the project. `decidedOn` is the active run that was seen when that was decided: fails
 * with `busy` when another one is by now. `isOwnTree`: the work tree was made for it.
 */
export function startHere(
  context: AppContext,
  project: FaberProject,
  run: NewRun,
  decidedOn: string | null,
  isOwnTree = false,
): Result<void> {
  const { files, clock } = context.world;
  const nowMs = clock.now();
  const { phases } = run.config;
  const workflowId = `fractary-faber:${run.workflow}`;
  const made = newState({ ...run, phases, workflowId, nowMs, place: runLocation(context, project, isOwnTree) });
  const who = currentActor(context, project);
  // The hook of its start found no run yet. In a work tree beside its own the session takes no part.
  const state = isOwnTree || who.sessionId === undefined ? made : beginSession(made, who).state;
  // The state first: an active run without a state would be no run.
  const created = createState(files, project, { runId: run.runId, state });
  const active = created.ok ? activate(context, project, run.runId, decidedOn) : created;
  // A run that could not be made the active one was never begun.
  if (!active.ok) tryPath(() => files.remove(join(project.root, project.runs, run.runId)));
  return active;
}

/** The work tree and the branch in which a run is begun or gone on with, as its state names them. */
export function runLocation({ world }: AppContext, { top }: FaberProject, isMade = false): RunPlace {
  const { branch } = readGitHead(world.files, top) ?? {};
  return { path: top, ...defined({ branch }), ...(isMade ? { created_by: 'fractary-faber', auto_cleanup: true } : {}) };
}

/** Begins it in a new work tree and returns the project there; nothing half made stays behind. */
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
  // What was committed as active run came along with the checkout and belongs to the work tree it came from.
  const begun = tracked.ok ? startHere(context, there, run, activeNow(context, there), true) : tracked;
  if (!begun.ok) {
    // Nothing half made stays behind: no folder without a run, no entry without a folder.
    if (tracked.ok) untrackWorktree(files, main, there.top);
    await removeWorktree(context, main.top, there.top);
  }
  return begun.ok ? ok(there) : begun;
}

// How a run becomes the active one of its work tree, with the warning when another run is in progress there.

/** The run that is in the way of another one; null when the work tree is free. */
export interface Conflict {
  readonly runId: string;
  readonly workId: string | undefined;
  /** It cannot be told whether it is in progress. */
  readonly trouble?: string;
}

/** Fails with `corrupt-file` when `.active-run-id` cannot be used. */
export function conflictWith(context: AppContext, project: FaberProject, newRunId: string): Result<Conflict | null> {
  const active = readActiveRun(context.world.files, project);
  if (active.kind === 'unusable') {
    return fail('corrupt-file', `${activeRunPath(project)} ${active.trouble}.`, 'Look at it, then remove it.');
  }
  if (active.kind === 'none' || active.runId === newRunId) return ok(null);
  const { files } = context.world;
  const state = loadState(files, project, active.runId);
  const { runId } = active;
  if (state.ok) {
    if (state.value.status !== inProgress || !belongsHere(files, project, state.value)) return ok(null);
    return ok({ runId, workId: foreignText(state.value.work_id ?? '') || undefined });
  }
  // Without a state there is no run that could go on.
  if (state.failure.reason === 'not-found') return ok(null);
  return ok({ runId, workId: undefined, trouble: state.failure.message });
}

/**
 * Makes the run active, unless `.active-run-id` names another one by now than it did when the user decided. Fails with
 * `busy` then, and with `write-failed`.
 */
export function activate(
  context: AppContext,
  project: FaberProject,
  runId: string,
  decidedOn: string | null,
): Result<void> {
  const { files } = context.world;
  const made = makeFolderInProject(files, project, dirname(activeRunPath(project)));
  if (!made.ok) return made;
  const path = join(project.root, activeRunPath(project));
  const written = updateExclusively(files, {
    path: files.realPath(path) ?? path,
    bytesMax: 4096,
    change: (before) => {
      const now = new TextDecoder().decode(before ?? new Uint8Array(0)).trim();
      if (now !== (decidedOn ?? '') && now !== runId) {
        return fail('busy', `The run ${now} was made active meanwhile.`, 'Run the command again.');
      }
      return ok(new TextEncoder().encode(`${runId}\n`));
    },
  });
  return written.ok ? ok(undefined) : written;
}

/** What `.active-run-id` says now; null when nothing usable. */
export function activeNow(context: AppContext, project: FaberProject): string | null {
  const active = readActiveRun(context.world.files, project);
  return active.kind === 'run' ? active.runId : null;
}

// What a workflow wants done before a phase begins: done for the session of claude that begins it, or told to it.

/** claude's Bash tool hands on 30,000 characters of what a command prints. */
export const bashCharactersMax = 25_000;

/** `/prime-context`, under whatever name of a plugin. */
const primes = /^\/(?:[\w-]+:)?prime-context\s*$/;

/** A person at a terminal has no conversation to load anything into: their session does it at its start. */
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
    // Not on stdout, which scripts read: claude gets both.
    if (primed.ok) notes.line(harmless(primed.value.text));
    else notes.line(safeLine(`WARNING: The context could not be loaded (${id}): ${primed.failure.message}`, 600));
  }
}

// A finished phase, and where the documents are that it made.

export interface NamedValue {
  readonly name: string;
  readonly value: string;
}

/**
 * The state with the phase recorded. Fails with `usage` for a phase that is none of `phases` and for an artifact that
 * is not in the project, with `illegal-transition` when the run is not in progress.
 */
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
    // Recorded twice, a phase keeps the time at which it was finished.
    return ok(phasesCompleted(now).includes(name) ? known : finishPhase(known, name, phases, who));
  });
}

function notInProgress(runId: string, status: string): Result<never> {
  const message = `The run ${runId} is not in progress, but ${safeLine(status, 100)}.`;
  return fail('illegal-transition', message, advise('Continue with it', ['faber', 'resume', runId]));
}

const placeholders = 'There are {project_root}, {run_id}, {plan_id}, {work_id} and {faber_root}.';

/**
 * Paths are stored so that they are right on every machine, and may be given as they are stored, with placeholders.
 * Fails with `usage` for paths out of the project and for placeholders without a value.
 */
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
