/** Commits everything uncommitted in a worktree, except what is not the session's work. */
import { join } from 'node:path';
import { ok, type Result } from '../core/failure.ts';
import { parseOwn } from '../store/json.ts';
import { type Git, gitDirOf } from './git.ts';
import { askOwn, commitOf, gitFailure, identityOptions, longTimeoutMs, runOwn } from './run-git.ts';

/** Arguments of one command are limited by the system. */
const pathsAtOnce = 200;

export interface Unmerged {
  readonly path: string;
  readonly hasBoth: boolean;
}

export interface Uncommitted {
  readonly head: string | null;
  readonly branch: string | null;
  /** Changed, staged or new, by paths from the top; without our own files and the entries below. */
  readonly files: readonly string[];
  /** Nested repositories and changed submodules, of which git would keep only ids. */
  readonly repositories: readonly string[];
  /** Those not completely covered by a commit, because not everything in them is staged. */
  readonly repositoriesLeft: readonly string[];
  readonly unmerged: readonly Unmerged[];
  readonly oursStaged: readonly string[];
  /** As the set-up command left them: part of no commit, and not among `files`. */
  readonly ofSetUp: readonly string[];
}

const statusArgs = [
  ...['status', '--porcelain=v2', '--branch', '--no-ahead-behind', '-z', '--untracked-files=all', '--no-renames'],
  '--ignore-submodules=none',
];

export async function uncommittedIn(git: Git, path: string): Promise<Result<Uncommitted>> {
  const status = await runOwn(git, path, statusArgs, { timeoutMs: longTimeoutMs });
  if (!status.ok) return status;
  const lines = status.value.split('\0');
  const entries = lines.flatMap((line) => parseLine(line) ?? []);
  const ours = entries.filter((entry) => !entry.isRepository && isOurFile(entry.path));
  const repositories = entries.filter(({ isRepository }) => isRepository);
  const nameOf = ({ path: name }: Entry): string => name.replace(/\/$/, '');
  const after = (start: string): string | undefined =>
    lines.find((line) => line.startsWith(start))?.slice(start.length);
  const files = entries.flatMap((entry) => (entry.isRepository || ours.includes(entry) ? [] : [entry.path]));
  const own = new Set(withoutSetUp(git, path, files));
  const head = after('# branch.oid ') ?? '';
  const branch = after('# branch.head ') ?? '';
  return ok({
    head: /^[0-9a-f]+$/.test(head) ? head : null,
    branch: branch === '' || branch === '(detached)' ? null : branch,
    files: [...own],
    ofSetUp: files.filter((name) => !own.has(name)),
    repositories: repositories.map(nameOf),
    repositoriesLeft: repositories.filter(({ isLeft }) => isLeft).map(nameOf),
    unmerged: entries.flatMap(({ path, hasBoth }) => (hasBoth === undefined ? [] : [{ path, hasBoth }])),
    oursStaged: ours.flatMap(({ path, isStaged }) => (isStaged ? [path] : [])),
  });
}

// Files that the set-up command created or changed, such as a lock file, count as the session's work only once the
// session changes them. They are recorded in the worktree's own git directory.

const setUpList = 'cca-set-up';
/** More would make every check of the worktree slow. */
const setUpFilesMax = 1_000;

export async function recordSetUpFiles(git: Git, path: string): Promise<Result<void>> {
  const { files } = git.world;
  const gitDir = gitDirOf(files, path);
  const found = await uncommittedIn(git, path);
  if (!found.ok || gitDir === null) return found.ok ? ok(undefined) : found;
  const names = [...found.value.files, ...found.value.ofSetUp].slice(0, setUpFilesMax);
  const left = Object.fromEntries(names.map((name) => [name, digestOf(git, join(path, name))]));
  if (names.length > 0) files.writeAtomic(join(gitDir, setUpList), JSON.stringify(left));
  return ok(undefined);
}

/** Those of the paths, from the top, that changed since the set-up command. */
export function withoutSetUp(git: Git, path: string, names: readonly string[]): readonly string[] {
  const gitDir = names.length === 0 ? null : gitDirOf(git.world.files, path);
  const text = gitDir === null ? null : git.world.files.readText(join(gitDir, setUpList));
  const left = new Map(Object.entries(parseOwn<Record<string, string>>(text) ?? {}));
  return names.filter((name) => !left.has(name) || left.get(name) !== digestOf(git, join(path, name)));
}

function digestOf({ world: { files } }: Git, path: string): string {
  const kind = files.entryKind(path);
  if (kind !== 'file') return kind ?? 'none';
  const bytes = files.readBytes(path, 0, files.info(path)?.size ?? 0);
  return new Bun.CryptoHasher('sha256').update(bytes).digest('hex');
}

/** Files with a name of ours that are the session's work: tracked before, or resume files not in `placed`. */
export async function workUnderOurNames(
  git: Git,
  path: string,
  placed: ReadonlySet<string>,
): Promise<Result<readonly string[]>> {
  const status = await runOwn(git, path, statusArgs, { timeoutMs: longTimeoutMs });
  if (!status.ok) return status;
  const entries = status.value.split('\0').flatMap((line) => parseLine(line) ?? []);
  const work = entries.filter(
    (entry) =>
      !entry.isRepository &&
      isOurFile(entry.path) &&
      (entry.isTracked || !isRunState(entry.path)) &&
      !placed.has(entry.path),
  );
  return ok(work.map((entry) => entry.path));
}

interface Entry {
  readonly path: string;
  readonly isTracked: boolean;
  readonly isRepository: boolean;
  readonly isStaged: boolean;
  readonly isLeft: boolean;
  readonly hasBoth?: boolean;
}

function parseLine(line: string): Entry | null {
  if (line.startsWith('? '))
    return { path: line.slice(2), isTracked: false, isRepository: line.endsWith('/'), isStaged: false, isLeft: true };
  // Kind, state, submodule, then modes and ids, then the path, which may contain spaces.
  const fields = line.startsWith('1 ') ? 8 : line.startsWith('u ') ? 10 : 0;
  if (fields === 0) return null;
  const words = line.split(' ');
  const isUnmerged = fields === 10;
  return {
    path: words.slice(fields).join(' '),
    isTracked: isUnmerged || words[3] !== '000000',
    isRepository: words[2]?.startsWith('S') === true,
    isStaged: isUnmerged || !words[1]?.startsWith('.'),
    isLeft: isUnmerged || !words[1]?.endsWith('.'),
    ...(isUnmerged ? { hasBoth: [words[4], words[5]].every((mode) => mode !== '000000') } : {}),
  };
}

export interface CommitScope extends SeparateOutput {
  /** Our own files that are the session's work in this case, by paths from the top. */
  readonly fresh?: readonly string[];
}

/** False when there was nothing to commit. `found`: the current changes, without an open conflict. */
export async function commitAll(
  git: Git,
  path: string,
  message: string,
  scope: CommitScope,
  found: Uncommitted,
): Promise<Result<boolean>> {
  const { base, fresh = [], apart: kept = [] } = scope;
  const staged = await stageAll(git, path, found, fresh);
  if (!staged.ok) return staged;
  const apart = await keepApart(git, path, scope);
  if (!apart.ok) return apart;
  const dropped = base === found.head ? ok(0) : await dropRunState(git, path, base);
  if (!dropped.ok) return dropped;
  const { files, repositories, oursStaged } = found;
  const touched = [files, repositories, oursStaged, fresh, kept].reduce((sum, { length }) => sum + length, 0);
  return touched + dropped.value > 0 || isMerging(git, path) ? commitIndex(git, path, message) : ok(false);
}

/** Without nested repositories and our own files; of these only those in `fresh`. */
async function stageAll(
  git: Git,
  path: string,
  { files, repositories, oursStaged, ofSetUp }: Uncommitted,
  fresh: readonly string[] = [],
): Promise<Result<void>> {
  const apart = repositories.map((name) => `:(top,exclude,literal)${name}`);
  const sparse = isSparse(git, path) ? ['--sparse'] : [];
  const args = ['add', '--all', ...sparse, '--', '.', ...exceptOurs, ...apart];
  const added = files.length === 0 ? ok('') : await runOwn(git, path, args, { timeoutMs: longTimeoutMs });
  // Including our files that the session itself had staged.
  const apartNow = [...oursStaged, ...ofSetUp];
  const unstaged = added.ok ? await inParts(git, path, ['reset', '--quiet', '--'], apartNow) : added;
  if (!unstaged.ok) return unstaged;
  for (const name of fresh) {
    // Git refuses ignored files, which stay out like all ignored files.
    const taken = await askOwn(git, path, ['--literal-pathspecs', 'add', ...sparse, '--', name]);
    if (!taken.ok) return taken;
  }
  return ok(undefined);
}

/** New files outside a sparse checkout count as well; git adds them only on demand. */
function isSparse({ world: { files } }: Git, path: string): boolean {
  const gitDir = gitDirOf(files, path);
  return gitDir !== null && files.entryKind(join(gitDir, 'info', 'sparse-checkout')) !== null;
}

/** A merge is committed even when it changes nothing. */
function isMerging({ world: { files } }: Git, path: string): boolean {
  const gitDir = gitDirOf(files, path);
  return gitDir !== null && files.entryKind(join(gitDir, 'MERGE_HEAD')) !== null;
}

/** Removes a run's state files that the session committed since `base`; returns their number. */
async function dropRunState(git: Git, path: string, base: string): Promise<Result<number>> {
  const args = ['diff', '--name-only', '--no-renames', '--no-relative', '--diff-filter=A', '--no-ext-diff', '-z'];
  const added = await runOwn(git, path, [...args, base, 'HEAD'], { timeoutMs: longTimeoutMs });
  if (!added.ok) return added;
  const state = added.value.split('\0').filter((name) => name !== '' && isRunState(name));
  const sparse = isSparse(git, path) ? ['--sparse'] : [];
  const dropped = await inParts(git, path, ['rm', '--cached', ...sparse, '--quiet', '--ignore-unmatch', '--'], state);
  return dropped.ok ? ok(state.length) : dropped;
}

/** Runs git on the paths in batches as large as the system allows. Fails with `worktree-failed`. */
export async function inParts(
  git: Git,
  path: string,
  args: readonly string[],
  names: readonly string[],
): Promise<Result<void>> {
  for (let from = 0; from < names.length; from += pathsAtOnce) {
    const part = names.slice(from, from + pathsAtOnce);
    const call = { timeoutMs: longTimeoutMs };
    const done = await runOwn(git, path, ['--literal-pathspecs', ...args, ...part], call);
    if (!done.ok) return done;
  }
  return ok(undefined);
}

const messageMax = 10_000;

async function commitIndex(git: Git, path: string, message: string): Promise<Result<boolean>> {
  const identity = await identityOptions(git, path);
  if (!identity.ok) return identity;
  const text = message.replaceAll('\0', '').slice(0, messageMax).trim() || 'Uncommitted work of a session';
  const flags = ['--quiet', '--no-verify', '--no-signoff', '--cleanup=whitespace', '--allow-empty-message'];
  const args = [...identity.value, 'commit', ...flags, `--message=${text}`];
  const made = await askOwn(git, path, args, { timeoutMs: longTimeoutMs });
  if (!made.ok) return made;
  if (made.value.exitCode === 0) return ok(true);
  const same = await askOwn(git, path, ['diff', '--cached', '--quiet', '--no-ext-diff'], { timeoutMs: longTimeoutMs });
  if (!same.ok) return same;
  // Git refuses like this when nothing differs from the last commit.
  return made.value.exitCode === 1 && same.value.exitCode === 0 ? ok(false) : gitFailure(args, made.value);
}

// State files of this program, its hooks and their skills in a project. They are not the session's work, so they are
// not committed.

/**
 * By path from the top of the worktree; a project may be any folder of it. While a file changes, its lock and its new
 * version are next to it. These describe only a run, so they are also removed from the session's own commits.
 */
const runState: readonly string[] = [
  ...['.', '..'].flatMap((dots) => [`**/${dots}cpm-progress.md*`, `**/${dots}cpm-progress-*.md*`]),
  // Compaction summaries and marks of CPM's own plugin.
  '**/docs/plans/.cpm-*',
  ...['runs', 'faber/runs'].map((folder) => `**/.fractary/${folder}/**`),
  ...['', '.'].flatMap((dot) =>
    ['.active-run-id*', 'worktrees.json*'].map((name) => `**/.fractary/faber/${dot}${name}`),
  ),
];
const resumeFiles = ['**/resume-context.md', '**/.resume-context.md.*'];
const matches = (globs: readonly string[], path: string): boolean =>
  globs.some((glob) => new Bun.Glob(glob).match(path));

export function isOurFile(path: string): boolean {
  return isRunState(path) || matches(resumeFiles, path);
}

/** Whether it is a file of ours that must never be committed. */
function isRunState(path: string): boolean {
  return matches(runState, path);
}

/** Whether it belongs to the checkout, where this program and hooks write to it while people work there. */
export function isCheckoutState(path: string): boolean {
  return /(?:^|\/)resume-context\.md$/.test(path);
}

/** The pathspec of the same files. */
export const checkoutStates = ':(top,glob)**/resume-context.md';

/** Pathspecs that exclude exactly the files for which isOurFile is true. */
export const exceptOurs: readonly string[] = [...runState, ...resumeFiles].map((glob) => `:(top,exclude,glob)${glob}`);

// Files that a branch must not change: commits of the session keep them in the history, and the next commit restores
// their original content.

export interface SeparateOutput {
  readonly base: string;
  readonly apart?: readonly string[];
  readonly target?: string;
}

/** Restores them in the index of the worktree at `path`; the files themselves do not change. */
async function keepApart(git: Git, path: string, { base, apart = [], target }: SeparateOutput): Promise<Result<void>> {
  if (apart.length === 0) return ok(undefined);
  const merging = await commitOf(git, path, 'MERGE_HEAD');
  if (!merging.ok) return merging;
  const names = merging.value === null ? await changedSince(git, path, base, apart) : ok(apart);
  if (!names.ok || names.value.length === 0) return names.ok ? ok(undefined) : names;
  const heads = ['HEAD', ...(merging.value === null ? [] : [merging.value])];
  const origin = await originOf(git, path, { base, target, heads });
  if (!origin.ok) return origin;
  // For a path unknown to the origin this removes the entry.
  const reset = await runOwn(git, path, [
    '--literal-pathspecs',
    'reset',
    '--quiet',
    origin.value,
    '--',
    ...names.value,
  ]);
  return reset.ok ? ok(undefined) : reset;
}

async function changedSince(
  git: Git,
  path: string,
  base: string,
  apart: readonly string[],
): Promise<Result<readonly string[]>> {
  const args = ['diff', '--name-only', '--no-renames', '--no-relative', '--no-ext-diff', '-z', base, 'HEAD', '--'];
  const changed = await runOwn(git, path, ['--literal-pathspecs', ...args, ...apart], { timeoutMs: longTimeoutMs });
  return changed.ok ? ok(changed.value.split('\0').filter((name) => name !== '')) : changed;
}

interface Origin {
  readonly base: string;
  readonly target: string | undefined;
  readonly heads: readonly string[];
}

/** The base of a later merge: the session may have merged its target, with changes of other people, meanwhile. */
async function originOf(git: Git, path: string, { base, target, heads }: Origin): Promise<Result<string>> {
  const tip = target === undefined ? ok(null) : await commitOf(git, path, `refs/heads/${target}`);
  if (!tip.ok) return tip;
  if (tip.value === null) return ok(base);
  const parted = await askOwn(git, path, ['merge-base', tip.value, ...heads]);
  if (!parted.ok) return parted;
  return ok(parted.value.exitCode === 0 ? parted.value.stdout.trim() : base);
}
