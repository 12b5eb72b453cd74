/** state.json of a run on disk: read completely or not at all, changed under a lock, never written partially. */

import { isAbsolute, join } from 'node:path';
import { advise } from '../../core/advice.ts';
import { fail, ok, type Result } from '../../core/failure.ts';
import { isObject, type JsonObject } from '../../store/json.ts';
import { type ContextFiles, quietly, readProjectText } from '../hook-call.ts';
import { changeInProject, type FaberProject, findProject, readActiveRun, readGitHead, statePath } from './project.ts';
import { inProgress, objectOf, readJson, nonEmptyText as wordOf } from './state.ts';

/** Enough for years of sessions; a larger file is not ours. */
export const stateBytesMax = 8 * 1024 ** 2;

/**
 * The state of a run. Fails with `not-found` without one, `corrupt-file` with file, line and column when it is not a
 * JSON object.
 */
export function loadState(files: ContextFiles, project: FaberProject, runId: string): Result<JsonObject> {
  const path = statePath(project, runId);
  const read = readProjectText(files, project.root, join(project.root, path), stateBytesMax);
  if (!read.ok) {
    const reason = read.trouble === 'does not exist' ? 'not-found' : 'corrupt-file';
    const next = advise('List the runs of this project with', ['faber', 'status']);
    return fail(reason, `The state of run ${runId} (${path}) ${read.trouble}.`, next);
  }
  if (read.truncated) {
    return fail('corrupt-file', `${path} is larger than ${stateBytesMax / 1024 ** 2} MiB.`, 'Move it away.');
  }
  return parseState(read.text, path);
}

function parseState(text: string, path: string): Result<JsonObject> {
  const wrong = (trouble: string): Result<never> =>
    fail('corrupt-file', `${path}:${trouble}.`, 'Correct the file; nothing was changed.');
  const parsed = readJson(text);
  if (!parsed.ok) return wrong(parsed.trouble);
  const { value } = parsed;
  if (!isObject(value)) return wrong('1:1: is not a JSON object');
  const name = ['sessions', 'context_metadata', 'artifacts'].find((one) => !isObject(value[one] ?? {}));
  return name === undefined ? ok(value) : wrong(`${parsed.placeOf([name])}: ${name} is not an object`);
}

/** Writes the state of a new run. Fails with `write-failed` or `busy`. */
export function createState(
  files: ContextFiles,
  project: FaberProject,
  runId: string,
  state: JsonObject,
): Result<void> {
  return changeInProject(files, project, statePath(project, runId), stateBytesMax, () => ok(textOf(state)));
}

/**
 * Changes the present state under a lock, so that no other process's changes are lost; returns the new state. Fails as
 * loadState does, with `write-failed` or `busy`, or as `change` does; the file is unchanged then.
 */
export function updateState(
  files: ContextFiles,
  project: FaberProject,
  runId: string,
  change: (state: JsonObject) => Result<JsonObject>,
): Result<JsonObject> {
  // Symlinks that lead out of the project, FIFOs and the like are refused before anything is opened.
  const first = loadState(files, project, runId);
  if (!first.ok) return first;
  let changed = first.value;
  const path = statePath(project, runId);
  const written = changeInProject(files, project, path, stateBytesMax, (before) => {
    const parsed = parseState(before ?? '', path);
    const after = parsed.ok ? change(parsed.value) : parsed;
    if (!after.ok) return after;
    changed = after.value;
    return ok(textOf(changed));
  });
  return written.ok ? ok(changed) : written;
}

function textOf(state: JsonObject): string {
  return `${JSON.stringify(state, null, 2)}\n`;
}

// The active run of a project by the run's own state, because `.active-run-id` outlives the run.

export type Running =
  | { readonly ok: true; readonly runId: string; readonly state: JsonObject }
  /** `why` is for users. `isBroken`: there is a run, but its state is unreadable. */
  | { readonly ok: false; readonly why: string; readonly isBroken?: true };

/**
 * Whether the run belongs to this worktree: it was started or continued here, or its branch is checked out.
 * `.active-run-id` may be a copy from another checkout.
 */
export function belongsHere(files: ContextFiles, { top }: FaberProject, state: JsonObject): boolean {
  const { path: given, branch } = objectOf(state.worktree);
  const path = wordOf(given);
  const real = (folder: string) => quietly(() => files.realPath(folder)) ?? folder;
  if (path !== undefined && isAbsolute(path) && real(path) === real(top)) return true;
  if (wordOf(branch) === undefined) return path === undefined || !isAbsolute(path);
  return readGitHead(files, top)?.branch === branch;
}

/** A sentence that begins with the run. */
export function elsewhere(runId: string, state: JsonObject): string {
  const { path, branch } = objectOf(state.worktree);
  const names = [
    ['the branch', branch],
    ['the work tree', path],
  ].filter(([, name]) => wordOf(name) !== undefined);
  return `${runId} belongs to ${names.map(([what, name]) => `${what} ${name}`).join(', ')}, not to this work tree.`;
}

/** The run named by `.active-run-id`, with any status, if it belongs to this worktree. */
export function activeRun(files: ContextFiles, project: FaberProject): Running {
  const active = readActiveRun(files, project);
  if (active.kind === 'none') return { ok: false, why: 'none is active' };
  if (active.kind === 'unusable') return { ok: false, why: `.active-run-id ${active.trouble}` };
  const state = loadState(files, project, active.runId);
  if (state.ok && !belongsHere(files, project, state.value)) {
    return { ok: false, why: elsewhere(active.runId, state.value) };
  }
  if (state.ok) return { ok: true, runId: active.runId, state: state.value };
  const isBroken = state.failure.reason !== 'not-found';
  return { ok: false, why: state.failure.message, ...(isBroken ? { isBroken } : {}) };
}

export function runInProgress(files: ContextFiles, project: FaberProject): Running {
  const run = activeRun(files, project);
  if (!run.ok || run.state.status === inProgress) return run;
  return { ok: false, why: `${run.runId} is not in progress` };
}

export function isFaberRunning(files: ContextFiles, projectFolder: string): boolean {
  return runInProgress(files, findProject(files, projectFolder)).ok;
}
