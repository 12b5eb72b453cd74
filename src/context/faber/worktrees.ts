/** `.fractary/faber/worktrees.json` of the first work tree: which run lives in which other work tree. */
import { basename, dirname, join, relative, resolve } from 'node:path';
import { fail, ok, type Result } from '../../core/failure.ts';
import { updateExclusively } from '../exclusive-update.ts';
import { type ContextFiles, readProjectText } from '../hook-call.ts';
import { firstWorktree } from './git-head.ts';
import { isObject, type JsonObject, listOf, readExactJson, textOf } from './json-text.ts';
import { type FaberProject, findProject, isRunId, makeFolderInProject, worktreesPath } from './project.ts';
import { runInProgress } from './running.ts';
import { loadState } from './state-file.ts';

export interface TrackedWorktree {
  readonly workId: string;
  readonly runId: string;
  /** Absolute. */
  readonly path: string;
  readonly branch: string;
  readonly createdAt: string;
}

const bytesMax = 1024 ** 2;

/** Fails with `corrupt-file`, with file, line and column. Entries that name no run and no path are passed over. */
export function loadWorktrees(files: ContextFiles, project: FaberProject): Result<readonly TrackedWorktree[]> {
  const read = readProjectText(files, project.root, join(project.root, worktreesPath), bytesMax);
  if (!read.ok && read.trouble === 'does not exist') return ok([]);
  if (!read.ok)
    return fail('corrupt-file', `${worktreesPath} ${read.trouble}.`, 'Put a regular file there, or nothing.');
  const parsed = parse(read.text);
  return parsed.ok ? ok(listOf(parsed.value.worktrees).flatMap((entry) => trackedOf(project, entry) ?? [])) : parsed;
}

/** Adds an entry; one for the same folder is replaced. Fails with `write-failed`, `busy` or `corrupt-file`. */
export function trackWorktree(files: ContextFiles, project: FaberProject, entry: TrackedWorktree): Result<void> {
  return change(files, project, (entries) => [
    ...entries.filter((other) => trackedOf(project, other)?.path !== entry.path),
    {
      work_id: entry.workId,
      run_id: entry.runId,
      // Relative, so that it is right on every machine.
      path: relative(project.root, entry.path),
      branch: entry.branch,
      created_at: entry.createdAt,
    },
  ]);
}

/** Takes the entry of this folder away. Fails as trackWorktree does. */
export function untrackWorktree(files: ContextFiles, project: FaberProject, path: string): Result<void> {
  return change(files, project, (entries) => entries.filter((entry) => trackedOf(project, entry)?.path !== path));
}

export interface SessionWorktree {
  /** The project of the session; absent = the top of the repository's first work tree. */
  readonly projectPath?: string | undefined;
  /** Absolute path of the git directory that all work trees share. */
  readonly repository: string;
  /** Absolute path of the work tree. */
  readonly path: string;
}

/**
 * For whoever makes a work tree for a session that works on the project's run: the run is listed with it. Nothing
 * happens when no run is in progress. Fails as trackWorktree does.
 */
export function noteSessionWorktree(
  files: ContextFiles,
  worktree: SessionWorktree & { readonly projectPath: string; readonly branch: string },
  nowMs: number,
): Result<void> {
  const run = runInProgress(files, findProject(files, worktree.projectPath));
  if (!run.ok) return ok(undefined);
  const entry: TrackedWorktree = {
    workId: textOf(run.state.work_id) ?? '',
    runId: run.runId,
    path: worktree.path,
    branch: worktree.branch,
    createdAt: new Date(nowMs).toISOString(),
  };
  return trackWorktree(files, firstProject(files, worktree), entry);
}

/** For whoever removes it. Nothing is written where it is not listed. Fails as untrackWorktree does. */
export function forgetSessionWorktree(files: ContextFiles, worktree: SessionWorktree): Result<void> {
  const project = firstProject(files, worktree);
  // A list that cannot be read is mended by its owner; it is no reason to keep the work tree.
  const listed = loadWorktrees(files, project);
  if (!listed.ok || !listed.value.some(({ path }) => path === worktree.path)) return ok(undefined);
  return untrackWorktree(files, project, worktree.path);
}

/** The same project in the repository's first work tree, which keeps the list. */
function firstProject(files: ContextFiles, { projectPath, repository }: SessionWorktree): FaberProject {
  const top = basename(repository) === '.git' ? dirname(repository) : null;
  if (projectPath === undefined) return findProject(files, top ?? repository);
  const project = findProject(files, projectPath);
  if (top === null) return project;
  return { top, root: join(top, relative(project.top, project.root)) };
}

/** So many are looked at; more are left to the command. */
const looksMax = 32;

/**
 * The project in the first work tree (its folder, absolute) when a run is completed in another work tree than the one
 * of `project`: that one can go once its branch is merged, which only git can tell. Null when there is none.
 */
export function projectToTidy(files: ContextFiles, project: FaberProject): string | null {
  const top = firstWorktree(files, project.top);
  if (top === null) return null;
  const within = relative(project.top, project.root);
  const main = { top, root: join(top, within) };
  const listed = loadWorktrees(files, main);
  const isOver = ({ path, runId }: TrackedWorktree): boolean => {
    if (path === project.top) return false;
    const state = loadState(files, { top: path, root: join(path, within) }, runId);
    return state.ok && state.value.status === 'completed';
  };
  return listed.ok && listed.value.slice(0, looksMax).some(isOver) ? main.root : null;
}

function trackedOf(project: FaberProject, entry: unknown): TrackedWorktree | null {
  if (!isObject(entry)) return null;
  const path = textOf(entry.path);
  const runId = textOf(entry.run_id);
  if (path === undefined || path.includes('\0') || runId === undefined || !isRunId(runId)) return null;
  return {
    workId: textOf(entry.work_id) ?? '',
    runId,
    path: resolve(project.root, path),
    branch: textOf(entry.branch) ?? '',
    createdAt: textOf(entry.created_at) ?? '',
  };
}

function parse(text: string): Result<JsonObject> {
  const json = readExactJson(text);
  const next = 'Mend the file; nothing in it was changed.';
  if (!json.ok) {
    const { line, column } = json.place;
    return fail('corrupt-file', `${worktreesPath}:${line}:${column}: ${json.message}.`, next);
  }
  if (isObject(json.value) && (json.value.worktrees === undefined || Array.isArray(json.value.worktrees))) {
    return ok(json.value);
  }
  return fail('corrupt-file', `${worktreesPath}:1:1: is no object with a list "worktrees".`, next);
}

function change(
  files: ContextFiles,
  project: FaberProject,
  edit: (entries: readonly unknown[]) => readonly unknown[],
): Result<void> {
  // Refuses links that lead out of the project, and everything that is no regular file.
  const before = loadWorktrees(files, project);
  if (!before.ok) return before;
  const made = makeFolderInProject(files, project, dirname(worktreesPath));
  if (!made.ok) return made;
  const path = join(project.root, worktreesPath);
  const written = updateExclusively(files, {
    path: files.realPath(path) ?? path,
    bytesMax,
    change: (bytes) => {
      const parsed = bytes === null ? ok<JsonObject>({}) : parse(new TextDecoder().decode(bytes));
      if (!parsed.ok) return parsed;
      const text = JSON.stringify({ ...parsed.value, worktrees: edit(listOf(parsed.value.worktrees)) }, null, 2);
      return ok(new TextEncoder().encode(`${text}\n`));
    },
  });
  return written.ok ? ok(undefined) : written;
}
