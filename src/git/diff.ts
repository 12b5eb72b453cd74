/** The difference between two commits, or between a commit and a worktree, as numbers and as text. */
import { join } from 'node:path';
import { defined } from '../core/defined.ts';
import { ok, type Result } from '../core/failure.ts';
import { parseOwn } from '../store/json.ts';
import { systemFailure } from '../store/system-failure.ts';
import { findRepository, type Git, gitDirOf } from './git.ts';
import { askOwn, commitOf, longTimeoutMs, runOwn } from './run-git.ts';
import { exceptOurs, type Unmerged, uncommittedIn } from './stage.ts';

export interface DiffStat {
  readonly files: number;
  readonly insertions: number;
  readonly deletions: number;
}

export interface DiffOptions {
  readonly from: string;
  /** Full commit id; absent = the files of the worktree `folder`, including new ones, without our own. */
  readonly to?: string;
  /** One line per file and a summary line, at most this many columns wide; absent = the full diff. */
  readonly stat?: number;
  /** Modes, blobs and names as `changedFiles` reads them, instead of the lines. */
  readonly raw?: true;
  /** Excluded paths from the top. */
  readonly without?: readonly string[];
}

/** Runs no program of the user's and ignores the user's settings for the output format. */
const plain = [
  ...['--no-color', '--no-ext-diff', '--no-textconv', '--no-relative', '--submodule=short', '--find-renames'],
  ...['--ignore-submodules=none', '--src-prefix=a/', '--dst-prefix=b/'],
];

/** By default git prints non-ASCII letters as octal numbers. */
const readableNames = ['-c', 'core.quotePath=false'];

const long = { timeoutMs: longTimeoutMs };

/** Counts files, and lines of text files. `folder` is in the repository. Fails with `worktree-failed`. */
export async function diffStat(git: Git, folder: string, options: DiffOptions): Promise<Result<DiffStat>> {
  const printed = await printDiff(git, folder, options, ['--shortstat']);
  return printed.ok ? ok(parseStat(printed.value)) : printed;
}

/** The same with `links`: paths from the top that are commits of nested repositories. */
export async function differenceOf(
  git: Git,
  folder: string,
  options: DiffOptions,
): Promise<Result<DiffStat & { readonly links: readonly string[] }>> {
  const printed = await printDiff(git, folder, options, ['--raw', '--shortstat', '-z']);
  if (!printed.ok) return printed;
  const fields = printed.value.split('\0');
  const links = fields.flatMap((field, index) => {
    const isRenamed = / [RC]\d*$/.test(field);
    return /^:\d{6} 160000 /.test(field) ? [fields[index + (isRenamed ? 2 : 1)] ?? ''] : [];
  });
  return ok({ ...parseStat(fields.at(-1) ?? ''), links });
}

function parseStat(text: string): DiffStat {
  const count = (word: RegExp): number => Number.parseInt(word.exec(text)?.[1] ?? '0', 10);
  return {
    files: count(/(\d+) files? changed/),
    insertions: count(/(\d+) insertions?\(\+\)/),
    deletions: count(/(\d+) deletions?\(-\)/),
  };
}

/** As git prints it, with control characters; empty without a difference. */
export function diffText(git: Git, folder: string, options: DiffOptions): Promise<Result<string>> {
  const { stat, raw } = options;
  const lines = stat === undefined ? ['--patch', '--unified=3', '--inter-hunk-context=0'] : [`--stat=${stat}`];
  return printDiff(git, folder, options, raw ? rawForm : lines);
}

const rawForm = ['--raw', '--numstat', '--no-abbrev', '-z'];

/** A commit as `changedFiles` reads it. */
export interface CommitDiff {
  readonly id: string;
  readonly title: string;
  readonly raw: string;
  readonly patch: string;
}

/** The last commits before `tip` that changed one of the paths, newest first, without merges and the first commit. */
export async function recentDiffs(
  git: Git,
  folder: string,
  { tip, paths, max }: { readonly tip: string; readonly paths: readonly string[]; readonly max: number },
): Promise<Result<CommitDiff[]>> {
  const log = [...readableNames, '--literal-pathspecs', 'log', ...plain, '--no-renames', '--no-merges'];
  const which = ['--min-parents=1', `--max-count=${max}`, tip, '--', ...paths.slice(0, excludedMax)];
  const raws = await runOwn(git, folder, [...log, ...rawForm, '--format=%x1e%H%x1f%s%x1f', ...which], long);
  if (!raws.ok) return raws;
  const patches = await runOwn(git, folder, [...log, '--patch', '--unified=0', '--format=%x1e%H%x1f', ...which], long);
  if (!patches.ok) return patches;
  const texts = new Map(
    patches.value
      .split('\x1e')
      .map((part) => part.split('\x1f', 2).map((text) => text.trimStart()) as [string, string]),
  );
  return ok(
    raws.value.split('\x1e').flatMap((part): CommitDiff[] => {
      const [id = '', title = '', raw = ''] = part.split('\x1f');
      return id === '' ? [] : [{ id, title, raw: raw.replace(/^[\0\n]+/, ''), patch: texts.get(id) ?? '' }];
    }),
  );
}

function excluding(paths: readonly string[]): string[] {
  return paths.slice(0, excludedMax).map((path) => `:(top,exclude,literal)${path}`);
}

/** Arguments of one command are limited by the system. */
const excludedMax = 200;

interface FolderState {
  /** The tracked files as they were, committed or not. */
  readonly commit: string;
  /** The other files, by paths from the top, with sizes and times. */
  readonly others: Readonly<Record<string, string>>;
}

/** The current state of the folder as text for `sinceState`; null in a repository without a commit. */
export async function stateNow(git: Git, folder: string): Promise<Result<string | null>> {
  const head = await commitOf(git, folder, 'HEAD');
  if (!head.ok || head.value === null) return head;
  // A commit on no branch and no stash. In the middle of a merge it is impossible, and HEAD is used. It refreshes the
  // index, which belongs to the user.
  const stash = await withIndexCopy(git, folder, (call) =>
    askOwn(git, folder, ['stash', 'create'], { ...long, ...call }),
  );
  const commit = (stash.ok && stash.value.exitCode === 0 && stash.value.stdout.trim()) || head.value;
  const args = ['ls-files', '-z', '--others', '--exclude-standard', '--full-name', '--', '.', ...exceptOurs];
  const listed = await runOwn(git, folder, args, long);
  if (!listed.ok) return listed;
  const names = listed.value.split('\0').filter((name) => name !== '');
  const top = topOfFolder(git, folder);
  const others = Object.fromEntries(names.map((name) => [name, stamp(git, join(top, name))]));
  return ok(JSON.stringify({ commit, others } satisfies FolderState));
}

/**
 * The difference between the folder and a text of `stateNow`, for `worktreeStat` and `diffText`; null for another text.
 */
export function sinceState(git: Git, folder: string, text: string): Pick<DiffOptions, 'from' | 'without'> | null {
  const state = parseOwn<FolderState>(text);
  if (state === null) return null;
  const top = topOfFolder(git, folder);
  const same = Object.entries(state.others).filter(([name, before]) => stamp(git, join(top, name)) === before);
  return { from: state.commit, without: same.map(([name]) => name) };
}

function topOfFolder({ world }: Git, folder: string): string {
  return findRepository(world.files, folder)?.top ?? folder;
}

function stamp({ world }: Git, path: string): string {
  const info = world.files.info(path);
  return info === null ? '' : `${info.size} ${info.mtimeMs}`;
}

/** Files from which claude or this program runs commands: settings, hooks, MCP servers, templates, workflows. */
const startsPrograms = [':(top,glob)**/.claude-code-agent/**', ':(top,glob)**/.claude/**', ':(top,glob)**/.mcp.json'];

/** The changed ones, by paths from the top. Fails with `worktree-failed`. */
export async function changedPrograms(
  git: Git,
  folder: string,
  { from, to }: { readonly from: string; readonly to: string | undefined },
): Promise<Result<readonly string[]>> {
  const form = ['--no-renames', '--name-only', '-z'];
  const printed = await printDiff(git, folder, { from, ...defined({ to }) }, form, startsPrograms);
  return printed.ok ? ok(printed.value.split('\0').filter((name) => name !== '')) : printed;
}

/** What git prints in the given form, see DiffOptions. `paths`: absent = all but our own files. */
export async function printDiff(
  git: Git,
  folder: string,
  { from, to, without = [] }: DiffOptions,
  form: readonly string[],
  paths: readonly string[] = [],
): Promise<Result<string>> {
  const args = [...readableNames, 'diff', ...plain, ...form, from];
  if (to !== undefined) return runOwn(git, folder, [...args, to, '--', ...paths], long);
  const which = paths.length > 0 ? paths : ['.', ...exceptOurs];
  return withNewFiles(git, folder, (index, apart) =>
    runOwn(git, folder, [...args, '--', ...which, ...apart, ...excluding(without)], { ...long, ...index }),
  );
}

interface IndexCall {
  readonly variables: Readonly<Record<string, string>>;
}

/** Git compares with its index, so new files are added to a copy of it; the session may be running. */
async function withNewFiles<T>(
  git: Git,
  folder: string,
  work: (index: IndexCall, apart: readonly string[]) => Promise<Result<T>>,
): Promise<Result<T>> {
  const found = await uncommittedIn(git, folder);
  if (!found.ok) return found;
  const [repositories, ofSetUp] = [found.value.repositories, found.value.ofSetUp].map((names) =>
    names.map((name) => `:(top,exclude,literal)${name}`),
  ) as [string[], string[]];
  return withIndexCopy(git, folder, async (call) => {
    const args = ['add', '--intent-to-add', '--', '.', ...exceptOurs, ...repositories, ...ofSetUp];
    const told = await runOwn(git, folder, args, { ...long, ...call });
    return told.ok ? work(call, ofSetUp) : told;
  });
}

/** Runs `work` with a copy of the index of the folder's worktree, which git may change. */
export async function withIndexCopy<T>(
  git: Git,
  folder: string,
  work: (index: IndexCall) => Promise<Result<T>>,
): Promise<Result<T>> {
  const { files, random } = git.world;
  const gitDir = gitDirOf(files, topOfFolder(git, folder));
  if (gitDir === null) return work({ variables: {} });
  const copy = join(gitDir, `claude-code-agent-index-${random.uuid()}`);
  try {
    const index = join(gitDir, 'index');
    files.writeBytes(copy, files.readBytes(index, 0, files.info(index)?.size ?? 0));
    return await work({ variables: { GIT_INDEX_FILE: copy } });
  } catch (error) {
    return { ok: false, failure: { ...systemFailure(copy, error), reason: 'worktree-failed' } };
  } finally {
    files.remove(copy);
    files.remove(`${copy}.lock`);
  }
}

// Unfinished operations in a session's worktree: a rebase, an unresolved conflict.

/** An unfinished rebase or series of commits is on no branch, so only its author can decide how it ends. */
const unfinishedSeries = [
  ['rebase-merge', 'a rebase', 'git rebase --continue or git rebase --abort'],
  ['rebase-apply', 'a rebase or a series of patches', 'git rebase --continue or git am --continue'],
  ['sequencer/todo', 'a series of cherry-picks or reverts', 'git cherry-pick --continue or git revert --continue'],
] as const;

export interface UnfinishedOperation {
  readonly what: string;
  readonly command: string;
}

/** Null without an unfinished series of commits. */
export function unfinishedOperation({ world: { files } }: Git, gitDir: string): UnfinishedOperation | null {
  const found = unfinishedSeries.find(([name]) => files.info(join(gitDir, name)) !== null);
  return found === undefined ? null : { what: found[1], command: found[2] };
}

const bytesMax = 32 * 1024 * 1024;
const marker = /^(?:<{7,}|>{7,})(?: |\r?$)/m;

/** Paths of unresolved conflicts. A session often fixes the files but does not run `git add`. */
export function openConflicts(git: Git, top: string, unmerged: readonly Unmerged[]): readonly string[] {
  return unmerged.flatMap(({ path, hasBoth }) => (isSettled(git, join(top, path), hasBoth) ? [] : [path]));
}

/** After a conflict git leaves one side in the folder unless both sides are text. */
function isSettled({ world: { files } }: Git, path: string, hasBoth: boolean): boolean {
  const kind = files.entryKind(path);
  if (kind === null) return true;
  const size = kind === 'file' ? (files.info(path)?.size ?? 0) : 0;
  if (kind !== 'file' || !hasBoth || size > bytesMax) return false;
  const bytes = files.readBytes(path, 0, size);
  return !bytes.includes(0) && !marker.test(new TextDecoder().decode(bytes));
}
