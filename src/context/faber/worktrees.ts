/** `.fractary/faber/worktrees.json` of the first work tree: which run lives in which other work tree. */
import { dirname, join, relative, resolve } from 'node:path';
import { fail, ok, type Result } from '../../core/failure.ts';
import { isObject } from '../../store/json.ts';
import { updateExclusively } from '../exclusive-update.ts';
import { type ContextFiles, readProjectText } from '../hook-call.ts';
import { type JsonObject, listOf, readJson, textOf } from './json-text.ts';
import { type FaberProject, isRunId, makeFolderInProject, worktreesPath } from './project.ts';

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
  const json = readJson(text);
  const value = json.ok ? json.value : undefined;
  if (isObject(value) && (value.worktrees === undefined || Array.isArray(value.worktrees))) return ok(value);
  const trouble = json.ok ? '1:1: is no object with a list "worktrees"' : json.trouble;
  return fail('corrupt-file', `${worktreesPath}:${trouble}.`, 'Mend the file; nothing in it was changed.');
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
