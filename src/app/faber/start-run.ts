/** Begins a run in a work tree: this one, or a new one beside it. */
import { basename, join } from 'node:path';
import { type FaberProject, runsPath } from '../../context/faber/project.ts';
import { beginSession, newState, stamp } from '../../context/faber/state.ts';
import { createState } from '../../context/faber/state-file.ts';
import type { WorkflowConfig } from '../../context/faber/workflow-config.ts';
import { trackWorktree, untrackWorktree } from '../../context/faber/worktrees.ts';
import { ok, type Result } from '../../core/failure.ts';
import { removeWorktree } from '../../git/worktrees/worktree.ts';
import { tryPath } from '../path-argument.ts';
import type { Place } from '../place.ts';
import { activate, activeNow } from './begin.ts';
import { whoAsks } from './here.ts';
import { makeWorktree, repositoryOf } from './worktrees.ts';

export interface NewRun {
  readonly runId: string;
  readonly workId: string;
  readonly workflow: string;
  readonly config: WorkflowConfig;
}

/** A run with an id of its own. */
export function newRun(place: Place, run: Omit<NewRun, 'runId'>): NewRun {
  const { clock, random } = place.world;
  const suffix = random.uuid().replaceAll('-', '').slice(0, 6);
  return { ...run, runId: `fractary-faber-${run.workId}-${stamp(clock.now())}-${suffix}` };
}

/**
 * Begins it in the work tree of the project. `decidedOn` is the active run that was seen when that was decided: fails
 * with `busy` when another one is by now. `branch` is that of a new work tree.
 */
export function startHere(
  place: Place,
  project: FaberProject,
  run: NewRun,
  decidedOn: string | null,
  branch?: string,
): Result<void> {
  const { files, clock } = place.world;
  const nowMs = clock.now();
  const { phases } = run.config;
  const made = newState({ ...run, phases, workflowId: `fractary-faber:${run.workflow}`, nowMs });
  const who = whoAsks(place, project);
  // The hook of its start found no run yet. In a work tree beside its own the session takes no part.
  const state =
    branch !== undefined
      ? { ...made, worktree: { branch, folder: basename(project.top) } }
      : who.sessionId === undefined
        ? made
        : beginSession(made, who).state;
  // The state first: an active run without a state would be no run.
  const created = createState(files, project, { runId: run.runId, state, nowMs });
  const active = created.ok ? activate(place, project, run.runId, decidedOn) : created;
  // A run that could not be made the active one was never begun.
  if (!active.ok) tryPath(() => files.remove(join(project.root, runsPath, run.runId)));
  return active;
}

/** Begins it in a new work tree and returns the project there; nothing half made stays behind. */
export async function startBeside(place: Place, project: FaberProject, run: NewRun): Promise<Result<FaberProject>> {
  const { files, clock } = place.world;
  const repository = await repositoryOf(place, project);
  if (!repository.ok) return repository;
  const made = await makeWorktree(place, project, repository.value, run.workId);
  if (!made.ok) return made;
  const { project: there, branch } = made.value;
  const nowMs = clock.now();
  const entry = { ...run, path: there.top, branch, createdAt: new Date(nowMs).toISOString() };
  const { main } = repository.value;
  const tracked = trackWorktree(files, main, entry, nowMs);
  // What was committed as active run came along with the checkout and belongs to the work tree it came from.
  const begun = tracked.ok ? startHere(place, there, run, activeNow(place, there), branch) : tracked;
  if (!begun.ok) {
    // Nothing half made stays behind: no folder without a run, no entry without a folder.
    if (tracked.ok) untrackWorktree(files, main, there.top, nowMs);
    await removeWorktree(place, main.top, there.top);
  }
  return begun.ok ? ok(there) : begun;
}
