/**
 * Worktrees of FABER runs: created beside the main worktree, listed in its `.fractary/faber/worktrees.json`, and
 * removed when their run is finished.
 */
import { basename, dirname, join, relative, resolve } from 'node:path';
import { activeRunPath, changeInProject, type FaberProject, isRunId, projectAt } from '../../context/faber/project.ts';
import { inProgress, isSessionOpen, listOf, nonEmptyText, readJson } from '../../context/faber/state.ts';
import { loadState } from '../../context/faber/state-file.ts';
import { readProjectText } from '../../context/hook-call.ts';
import { advise } from '../../core/advice.ts';
import { fail, ok, type Result } from '../../core/failure.ts';
import {
  addWorktree,
  changedFiles,
  ignoredFiles,
  isMerged,
  listWorktrees,
  pruneWorktrees,
  removeWorktree,
  type Worktree,
} from '../../git/worktrees/worktree.ts';
import { isObject, type JsonObject } from '../../store/json.ts';
import { systemFailure } from '../../store/system-failure.ts';
import type { Files } from '../../system/world.ts';
import type { AppContext } from '../app-context.ts';
import { briefPath, lookAt, tryPath } from '../path-argument.ts';

const worktreesPath = '.fractary/faber/worktrees.json';

export interface TrackedWorktree {
  readonly workId: string;
  readonly runId: string;
  readonly path: string;
  readonly branch: string;
  readonly createdAt: string;
}

const bytesMax = 1024 ** 2;

/** Skips incomplete entries. Fails with `corrupt-file`, with line and column. */
function loadWorktrees(files: Files, project: FaberProject): Result<readonly TrackedWorktree[]> {
  const read = readProjectText(files, project.root, join(project.root, worktreesPath), bytesMax);
  if (!read.ok && read.trouble === 'does not exist') return ok([]);
  if (!read.ok)
    return fail('corrupt-file', `${worktreesPath} ${read.trouble}.`, 'Replace it by a regular file, or remove it.');
  const parsed = parse(read.text);
  return parsed.ok ? ok(listOf(parsed.value.worktrees).flatMap((entry) => trackedOf(project, entry) ?? [])) : parsed;
}

/** Adds the entry, or replaces the one of the same folder. */
export function trackWorktree(files: Files, project: FaberProject, entry: TrackedWorktree): Result<void> {
  return change(files, project, (entries) => [
    ...entries.filter((other) => trackedOf(project, other)?.path !== entry.path),
    {
      work_id: entry.workId,
      run_id: entry.runId,
      // Relative, so that the path is valid on every machine.
      path: relative(project.root, entry.path),
      branch: entry.branch,
      created_at: entry.createdAt,
    },
  ]);
}

export function untrackWorktree(files: Files, project: FaberProject, path: string): Result<void> {
  return change(files, project, (entries) => entries.filter((entry) => trackedOf(project, entry)?.path !== path));
}

function trackedOf(project: FaberProject, entry: unknown): TrackedWorktree | null {
  if (!isObject(entry)) return null;
  const path = nonEmptyText(entry.path);
  const runId = nonEmptyText(entry.run_id);
  if (path === undefined || path.includes('\0') || runId === undefined || !isRunId(runId)) return null;
  return {
    workId: nonEmptyText(entry.work_id) ?? '',
    runId,
    path: resolve(project.root, path),
    branch: nonEmptyText(entry.branch) ?? '',
    createdAt: nonEmptyText(entry.created_at) ?? '',
  };
}

function parse(text: string): Result<JsonObject> {
  const json = readJson(text);
  const value = json.ok ? json.value : undefined;
  if (isObject(value) && (value.worktrees === undefined || Array.isArray(value.worktrees))) return ok(value);
  const trouble = json.ok ? '1:1: is not an object with a list "worktrees"' : json.trouble;
  return fail('corrupt-file', `${worktreesPath}:${trouble}.`, 'Correct the file; nothing was changed.');
}

function change(
  files: Files,
  project: FaberProject,
  edit: (entries: readonly unknown[]) => readonly unknown[],
): Result<void> {
  // Refuses symlinks out of the project and everything but regular files.
  const before = loadWorktrees(files, project);
  if (!before.ok) return before;
  return changeInProject(files, project, worktreesPath, bytesMax, (text) => {
    const parsed = text === null ? ok<JsonObject>({}) : parse(text);
    if (!parsed.ok) return parsed;
    const worktrees = edit(listOf(parsed.value.worktrees));
    return ok(`${JSON.stringify({ ...parsed.value, worktrees }, null, 2)}\n`);
  });
}

export interface FaberWorktrees {
  /** The project in the main worktree, which has the list. */
  readonly main: FaberProject;
  /** All worktrees of git, the main one first. */
  readonly worktrees: readonly Worktree[];
}

/** Fails with `not-found` outside of a repository. */
export async function repositoryOf(context: AppContext, project: FaberProject): Promise<Result<FaberWorktrees>> {
  const listed = await listWorktrees(context, project.top);
  if (!listed.ok) return listed;
  const worktrees = listed.value;
  const top = worktrees[0]?.path ?? project.top;
  // The project may be a subfolder, the same one in every worktree.
  return ok({ main: projectAt(context.world.files, top, join(top, relative(project.top, project.root))), worktrees });
}

/** `../<project>-issue-<work-id>` on the branch `feature/<work-id>`. Fails with git's reason, or `duplicate`. */
export async function makeWorktree(
  context: AppContext,
  project: FaberProject,
  { main }: FaberWorktrees,
  workId: string,
): Promise<Result<{ readonly project: FaberProject; readonly branch: string }>> {
  const folder = join(dirname(main.top), `${basename(main.top)}-issue-${workId}`);
  const there = tryPath(() => context.world.files.entryKind(folder));
  if (!there.ok || there.value !== null) {
    const next = advise('Work there, or remove it with', ['faber', 'worktrees', '--prune']);
    return fail('duplicate', `${briefPath(folder)} already exists.`, next);
  }
  const branch = `feature/${workId}`;
  const added = await addWorktree(context, { repository: project.top, folder, branch });
  if (!added.ok) return added;
  return ok({ project: { ...project, top: folder, root: join(folder, relative(project.top, project.root)) }, branch });
}

export type WorktreeStatus = 'in progress' | 'completed' | 'orphaned' | 'missing';

export interface WorktreeView extends TrackedWorktree {
  /** `orphaned`: it has no run that could continue. `missing`: the folder is gone. */
  readonly status: WorktreeStatus;
  /** A session of the run has not recorded its end. */
  readonly hasOpenSession: boolean;
}

export function viewWorktrees(
  context: AppContext,
  { main, worktrees }: FaberWorktrees,
): Result<readonly WorktreeView[]> {
  const { files } = context.world;
  const tracked = loadWorktrees(files, main);
  if (!tracked.ok) return tracked;
  return ok(
    tracked.value.map((entry) => {
      const kind = lookAt(files, entry.path);
      const isThere = kind.ok && kind.value === 'folder' && worktrees.slice(1).some(({ path }) => path === entry.path);
      if (!isThere) return { ...entry, status: 'missing', hasOpenSession: false };
      const state = loadState(files, projectIn(files, main, entry.path), entry.runId);
      if (!state.ok) return { ...entry, status: 'orphaned', hasOpenSession: false };
      const { status } = state.value;
      const word = status === inProgress ? 'in progress' : status === 'completed' ? 'completed' : 'orphaned';
      return { ...entry, status: word, hasOpenSession: isSessionOpen(state.value) };
    }),
  );
}

function projectIn(files: Files, main: FaberProject, path: string): FaberProject {
  return projectAt(files, path, join(path, relative(main.top, main.root)));
}

export interface Removal {
  readonly path: string;
  readonly runId: string;
  readonly removed: boolean;
  /** Why it was kept, or what was done; a sentence. */
  readonly why: string;
}

/** Keeps worktrees with changes or an open session, and the current folder. */
export async function removeFinished(
  context: AppContext,
  repository: FaberWorktrees,
  view: WorktreeView,
  { openSessionsToo }: { readonly openSessionsToo: boolean },
): Promise<Removal> {
  const { files } = context.world;
  const { path, runId } = view;
  const stays = (why: string): Removal => ({ path, runId, removed: false, why });
  if (view.status === 'in progress') return stays('Its run is in progress.');
  const forget = () => untrackWorktree(files, repository.main, path);
  if (view.status === 'missing') {
    const pruned = await pruneWorktrees(context, repository.main.top);
    const forgotten = pruned.ok ? forget() : pruned;
    return forgotten.ok ? { path, runId, removed: true, why: 'Its folder is gone.' } : stays(forgotten.failure.message);
  }
  // The list comes from the repository, so remove only worktrees with the name that this program gives.
  const { main, worktrees } = repository;
  const isOurs = dirname(path) === dirname(main.top) && basename(path).startsWith(`${basename(main.top)}-issue-`);
  const branch = worktrees.find((worktree) => worktree.path === path)?.branch;
  if (!isOurs)
    return stays('It is not a worktree that this program made for a run. Remove it with git worktree remove.');
  if (branch !== view.branch) return stays(`${branch ?? 'No branch'} is checked out in it, not ${view.branch}.`);
  if (isInside(context.cwd, path)) return stays('It is the current folder; leave it first.');
  if (view.hasOpenSession && !openSessionsToo) {
    return stays('A session of its run has not recorded its end; --force removes it anyway.');
  }
  const kept = await keepRun(context, repository.main, view);
  if (!kept.ok) return stays(kept.failure.message);
  const removed = await removeWorktree(context, repository.main.top, path);
  const forgotten = removed.ok ? forget() : removed;
  if (!forgotten.ok) return stays(forgotten.failure.message);
  return { path, runId, removed: true, why: `Its run is ${view.status}; the branch ${view.branch} stays.` };
}

function isInside(folder: string, path: string): boolean {
  return folder === path || folder.startsWith(`${path}/`);
}

/** Moves uncommitted files of the run to the main worktree. Other uncommitted files keep the worktree. */
async function keepRun(context: AppContext, main: FaberProject, { path, runId }: WorktreeView): Promise<Result<void>> {
  const { files } = context.world;
  const changed = await changedFiles(context, path);
  if (!changed.ok) return changed;
  const ignored = await ignoredFiles(context, path);
  if (!ignored.ok) return ignored;
  const project = projectIn(files, main, path);
  const inTree = (name: string) => relative(project.root, join(path, name));
  const all = [...new Set([...changed.value, ...ignored.value])];
  const ofRun = all.filter((name) => inTree(name).startsWith(`${project.runs}/${runId}/`));
  const others = all.filter((name) => !ofRun.includes(name) && inTree(name) !== activeRunPath(project));
  if (others.length > 0) {
    const first = others.slice(0, 3).join(', ');
    const next = 'Commit or move them first.';
    return fail('illegal-transition', `It has uncommitted files: ${first}.`, next);
  }
  for (const name of ofRun) {
    const [from, to] = [join(path, name), join(main.root, inTree(name))];
    try {
      if (files.entryKind(from) !== 'file') continue;
      const bytes = files.readBytes(from, 0, files.info(from)?.size ?? 0);
      if (files.entryKind(to) !== null) {
        const next = 'Commit it here and merge the branch, or keep one of the two by hand.';
        return fail('illegal-transition', `${inTree(name)} is in ${briefPath(main.root)}, too.`, next);
      }
      files.makeFolder(dirname(to), 'project');
      files.writeBytes(to, bytes, { durable: true, access: 'project', like: from });
    } catch (error) {
      return { ok: false, failure: systemFailure(to, error) };
    }
  }
  return ok(undefined);
}

/** Removes worktrees of completed and merged runs that contain nothing to lose, with a note. */
export async function tidyWorktrees(context: AppContext, project: FaberProject): Promise<void> {
  const repository = await repositoryOf(context, project);
  const views = repository.ok ? viewWorktrees(context, repository.value) : repository;
  if (!repository.ok || !views.ok) return;
  for (const view of views.value.filter(({ status }) => status === 'completed')) {
    if (!(await isMerged(context, repository.value.main.top, `refs/heads/${view.branch}`))) continue;
    const { removed, path, why } = await removeFinished(context, repository.value, view, { openSessionsToo: false });
    if (removed) context.notes.line(`Removed the worktree ${briefPath(path)}. ${why}`);
  }
}
