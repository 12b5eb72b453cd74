/** FABER's paths in a project, its active run, and valid names of runs. */
import { dirname, join, resolve } from 'node:path';
import { fail, ok, type Result } from '../../core/failure.ts';
import { systemFailure } from '../../store/system-failure.ts';
import { updateExclusively } from '../exclusive-update.ts';
import { type ContextFiles, quietly, readProjectText } from '../hook-call.ts';

export interface FaberProject {
  /** Absolute path of the folder that contains, or would contain, `.fractary`. */
  readonly root: string;
  /** The top of the git worktree, otherwise `root`: the value of `{project_root}`. */
  readonly top: string;
  /** The folder of the runs, relative to `root`. */
  readonly runs: (typeof layouts)[number];
}

const runIdPattern = /^[A-Za-z0-9][A-Za-z0-9._-]{0,199}$/;
const levelsMax = 64;

export const isRunId = (text: string): boolean => runIdPattern.test(text);

const specifiedRuns = '.fractary/runs';
/** FABER's own folder since February 2026. */
const newerRuns = '.fractary/faber/runs';
export const layouts = [specifiedRuns, newerRuns] as const;

export function activeRunPath({ runs }: Pick<FaberProject, 'runs'>): string {
  return `${runs === newerRuns ? newerRuns : '.fractary/faber'}/.active-run-id`;
}

export function statePath({ runs }: Pick<FaberProject, 'runs'>, runId: string): string {
  return `${runs}/${runId}/state.json`;
}

export function projectAt(files: ContextFiles, top: string, root: string): FaberProject {
  return { top, root, runs: runsOf(files, root) };
}

/** FABER's own folder where a newer FABER is in use, otherwise that of the specification. */
function runsOf(files: ContextFiles, root: string): FaberProject['runs'] {
  const has = (path: string) => quietly(() => files.info(join(root, path))) !== null;
  return has(newerRuns) || (has('.fractary/config.yaml') && !has(specifiedRuns)) ? newerRuns : specifiedRuns;
}

/**
 * The nearest folder with `.fractary`, from `folder` up to the top of its git worktree; otherwise that top, otherwise
 * `folder`. Folders above a worktree belong to other projects.
 */
export function findProject(files: ContextFiles, folder: string): FaberProject {
  const start = resolve(folder);
  const upwards: string[] = [];
  let path = start;
  for (let level = 0; level < levelsMax; level += 1) {
    upwards.push(path);
    if (quietly(() => files.entryKind(join(path, '.git'))) !== null) {
      const isFolder = (each: string) => quietly(() => files.info(join(each, '.fractary'))?.kind) === 'folder';
      const withState = upwards.find(isFolder);
      return projectAt(files, path, withState ?? path);
    }
    if (dirname(path) === path) break;
    path = dirname(path);
  }
  // Without git only the folder itself counts.
  return projectAt(files, start, start);
}

export type ActiveRun =
  | { readonly kind: 'none' }
  | { readonly kind: 'run'; readonly runId: string }
  | { readonly kind: 'unusable'; readonly trouble: string };

/** The content of `.active-run-id`. It outlives its run, so the run's state decides whether it is active. */
export function readActiveRun(files: ContextFiles, project: FaberProject): ActiveRun {
  const { root } = project;
  const read = readProjectText(files, root, join(root, activeRunPath(project)), 4096);
  if (!read.ok)
    return read.trouble === 'does not exist' ? { kind: 'none' } : { kind: 'unusable', trouble: read.trouble };
  const runId = read.text.replace(/^\ufeff/, '').trim();
  if (runId === '') return { kind: 'none' };
  return isRunId(runId) ? { kind: 'run', runId } : { kind: 'unusable', trouble: 'contains no run id' };
}

export function listRuns(files: ContextFiles, { root, runs }: FaberProject): string[] {
  return (quietly(() => files.list(join(root, runs))) ?? []).filter(isRunId);
}

/**
 * Creates the folder and its parents below the project. Fails with `write-failed`, including when a symlink leads out
 * of the project, which could redirect our writes.
 */
function makeFolderInProject(files: ContextFiles, { root }: FaberProject, path: string): Result<void> {
  const full = join(root, path);
  try {
    // The nearest existing folder decides where new ones are created.
    let nearest = full;
    while (files.entryKind(nearest) === null && dirname(nearest) !== nearest) nearest = dirname(nearest);
    const [realRoot, real] = [files.realPath(root), files.realPath(nearest)];
    if (realRoot === null || real === null || (real !== realRoot && !real.startsWith(`${realRoot}/`))) {
      return fail('write-failed', `${full} leads out of the project.`, 'Replace the symlink with a folder.');
    }
    files.makeFolder(full, 'project');
    return ok(undefined);
  } catch (error) {
    return { ok: false, failure: systemFailure(full, error) };
  }
}

const utf8 = new TextDecoder('utf-8', { fatal: true });

/** Changes a text file of the project under a lock. `path` is relative; null leaves the file as it is. */
export function changeInProject(
  files: ContextFiles,
  project: FaberProject,
  path: string,
  bytesMax: number,
  change: (before: string | null) => Result<string | null>,
): Result<void> {
  const made = makeFolderInProject(files, project, dirname(path));
  if (!made.ok) return made;
  const full = join(project.root, path);
  const written = updateExclusively(files, {
    path: files.realPath(full) ?? full,
    bytesMax,
    change: (before) => {
      // Throws: replacement characters in such a file would be written back.
      const after = change(before === null ? null : utf8.decode(before));
      return !after.ok || after.value === null ? (after as Result<null>) : ok(new TextEncoder().encode(after.value));
    },
  });
  return written.ok ? ok(undefined) : written;
}

// Branch and commit of a worktree, read from git's own files: hooks have no PATH, must be quick, and a
// repository may name programs that git would start. Only branch names and commit ids leave this file.

export interface GitHead {
  /** Absent for a detached HEAD. */
  readonly branch?: string;
  /** Full commit id; absent before the first commit, and if refs are not stored as files. */
  readonly commit?: string;
}

const commitId = /^[0-9a-f]{40}(?:[0-9a-f]{24})?$/;
const refName = /^refs\/[\w./+@#%=,-]{1,250}$/;
const headBytesMax = 4096;
const packedBytesMax = 16 * 1024 ** 2;

/** Null when `top` is not a git worktree, or its HEAD is unreadable. */
export function readGitHead(files: ContextFiles, top: string): GitHead | null {
  const folder = gitFolder(files, top);
  const head = folder === null ? null : read(files, join(folder, 'HEAD'), headBytesMax)?.trim();
  if (folder === null || head === undefined || head === null) return null;
  if (commitId.test(head)) return { commit: head };
  const ref = head.replace(/^ref:\s*/, '');
  if (ref === head || !refName.test(ref) || ref.split('/').includes('..')) return null;
  const branch = ref.replace(/^refs\/heads\//, '');
  const commit = commitOf(files, folder, ref);
  return commit === null ? { branch } : { branch, commit };
}

/** `.git` is a folder, or in linked worktrees a file that names one. */
function gitFolder(files: ContextFiles, top: string): string | null {
  const path = join(top, '.git');
  if (quietly(() => files.info(path)?.kind) === 'folder') return path;
  const target = /^gitdir: (.+)$/m.exec(read(files, path, headBytesMax) ?? '')?.[1];
  return target === undefined ? null : resolve(top, target.trim());
}

function commitOf(files: ContextFiles, folder: string, ref: string): string | null {
  // Linked worktrees share their refs with their repository.
  const shared = read(files, join(folder, 'commondir'), headBytesMax)?.trim();
  const common = shared ? resolve(folder, shared) : folder;
  const loose = read(files, join(common, ref), headBytesMax)?.trim() ?? '';
  if (commitId.test(loose)) return loose;
  const packed = read(files, join(common, 'packed-refs'), packedBytesMax) ?? '';
  const line = packed.split('\n').find((text) => text.endsWith(` ${ref}`));
  const found = line?.slice(0, line.indexOf(' ')) ?? '';
  return commitId.test(found) ? found : null;
}

/** Null for anything but a readable regular file. */
function read(files: ContextFiles, path: string, bytesMax: number): string | null {
  const isFile = () => files.info(path)?.kind === 'file';
  return quietly(() => (isFile() ? new TextDecoder().decode(files.readBytes(path, 0, bytesMax)) : null));
}
