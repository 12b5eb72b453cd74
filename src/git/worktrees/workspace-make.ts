/** Makes the worktree of a session step by step, and takes back what a step that failed or a crash left of it. */
import { join, relative } from 'node:path';
import { defined } from '../../core/defined.ts';
import { fail, ok, type Result } from '../../core/failure.ts';
import type { Remade, Workspace } from '../../core/group.ts';
import { parseOwn } from '../../store/json.ts';
import { systemFailure } from '../../store/system-failure.ts';
import type { Files, World } from '../../system/world.ts';
import type { Git } from '../git.ts';
import { findRepository } from '../git.ts';
import { syncDisks } from '../leftover-files.ts';
import {
  askOwn,
  commitOf,
  currentBranch,
  identityOptions,
  longTimeoutMs,
  nameFiles,
  refusal,
  runOwn,
} from '../run-git.ts';
import { isOurFile } from '../stage.ts';
import { repositoryDir } from './scratch.ts';

/** Names are taken only by people and by other groups of the same slug; far fewer than this. */
const namesMax = 1000;
const inPlace = 'or work in the checkout itself with --isolate none.';

/** The checkout from which a worktree is made. */
interface Origin {
  /** Root of the worktree that holds the project. */
  readonly top: string;
  /** The project within it; empty = the root itself. */
  readonly inside: string;
  /** The commit that is checked out first. */
  readonly start: string;
  readonly target: string | null;
}

/** Fails with `worktree-failed`, `project-missing` or `merge-conflict`; then nothing is left of it. */
export async function makeNew(git: Git, plan: WorkspacePlan): Promise<Result<MadeWorkspace>> {
  const origin = await lookAtOrigin(git, plan);
  if (!origin.ok) return origin;
  const { top, inside, start, target } = origin.value;
  const begun = await beginBranch(
    git,
    plan,
    {
      state: 'making',
      repository: plan.repository,
      path: plan.path,
      folder: join(plan.path, inside),
      branch: plan.branch,
      base: start,
      ...(target === null ? {} : { target }),
      parents: plan.parents,
      ...(plan.isKnown === true ? { remade: remadeNow(git, 'base') } : {}),
    },
    top,
  );
  if (!begun.ok) return begun;
  const filled = await fill(git, plan, begun.value, top);
  if (!filled.ok) {
    // The failure is what people want to know; what cannot be taken back now is taken back by the next call.
    await takeBack(git, plan.intentFile, begun.value);
    return filled;
  }
  const notes = [...(await originNotes(git, plan, origin.value)), ...worktreeNotes(git, plan.path)];
  return ok({ workspace: workspaceOf(filled.value), notes, isNew: true });
}

async function lookAtOrigin(git: Git, plan: WorkspacePlan): Promise<Result<Origin>> {
  const { files } = git.world;
  const { projectPath, repository } = plan;
  if (files.info(projectPath)?.kind !== 'folder') {
    const next = 'Put it back and retry the session, or remove the session, after those that depend on it.';
    return fail('project-missing', `The project folder ${projectPath} does not exist any more.`, next);
  }
  const found = findRepository(files, projectPath);
  if (found?.repository !== repository) {
    const message =
      found === null
        ? `${projectPath} is in no git repository any more.`
        : `${projectPath} belongs to another repository now: ${found.repository}.`;
    return fail('worktree-failed', message, 'Remove the session and add it again.');
  }
  const { top } = found;
  const start = await startOf(git, plan, top);
  if (!start.ok) return start;
  const target = await currentBranch(git, top);
  if (!target.ok) return target;
  return ok({ top, inside: relative(top, projectPath), start: start.value, target: target.value });
}

/** Every commit that is needed must be there before anything is made. */
async function startOf(git: Git, plan: WorkspacePlan, top: string): Promise<Result<string>> {
  const { base, parents } = plan;
  const wanted = parents.length > 0 ? parents : base === undefined ? [] : [base];
  const { starts } = knownOf(git.world, plan);
  // One that is gone since is no branch made of.
  if (wanted.length === 1 && starts.has(wanted[0] as string)) return ok(wanted[0] as string);
  const revisions = wanted.length > 0 ? wanted : ['HEAD'];
  const all = await askOwn(git, top, [...inWorktree, ...revisions.map((revision) => `${revision}^{commit}`)]);
  if (!all.ok) return all;
  const [isInside, start = ''] = all.value.stdout.split('\n');
  if (all.value.exitCode !== 0 || isInside !== 'true') return startByParts(git, wanted, top);
  starts.add(start);
  return ok(start);
}

const inWorktree = ['rev-parse', '--is-inside-work-tree'];

/** The same, to say what is wrong. */
async function startByParts(git: Git, wanted: readonly string[], top: string): Promise<Result<string>> {
  const asked = await askOwn(git, top, inWorktree);
  if (!asked.ok) return asked;
  if (asked.value.exitCode !== 0) return refusal(inWorktree, asked.value);
  if (asked.value.stdout.trim() !== 'true') {
    const message = `${top} is a bare repository: there are no files to work on.`;
    return fail(
      'worktree-failed',
      message,
      'Make a checkout with git worktree add, and add the session with the folder of that.',
    );
  }
  for (const commit of wanted) {
    const there = await commitOf(git, top, commit);
    if (!there.ok) return there;
    if (there.value !== null) continue;
    const message = `The commit ${commit.slice(0, 12)} to begin from is not in the repository of ${top}.`;
    return fail('worktree-failed', message, 'Bring it back (git fetch), or remove the session and add it again.');
  }
  if (wanted[0] !== undefined) return ok(wanted[0]);
  const head = await commitOf(git, top, 'HEAD');
  if (!head.ok) return head;
  if (head.value !== null) return ok(head.value);
  const message = `Nothing is checked out in ${top}: it has no commit yet.`;
  return fail('worktree-failed', message, `Make a first commit (git commit --allow-empty), ${inPlace}`);
}

/** Chooses a name that is free, writes the intent, makes the branch. Nobody else's branch is ever moved. */
async function beginBranch(
  git: Git,
  plan: WorkspacePlan,
  draft: WorkspaceIntent,
  top: string,
): Promise<Result<WorkspaceIntent>> {
  const tried = new Set<string>();
  const prefix = plan.branch.split('/')[0] ?? '';
  const known = knownOf(git.world, plan);
  for (;;) {
    // What is known may be old, which matters only where git refuses.
    const isOld = known.branches !== null && freeName(plan.branch, known.branches) === plan.branch && tried.size === 0;
    const listed = isOld ? ok(known.branches as Set<string>) : await branchesBelow(git, top, prefix);
    if (!listed.ok) return listed;
    known.branches = listed.value;
    const branch = freeName(plan.branch, new Set([...listed.value, ...tried]));
    if (branch === null) {
      const next = `Remove some of them: git branch --list '${plan.branch}*'`;
      return fail('worktree-failed', `All names of branches like ${plan.branch} are taken.`, next);
    }
    tried.add(branch.toLowerCase());
    const intent = { ...draft, branch };
    const written = writeIntent(git.world.files, plan.intentFile, intent);
    if (!written.ok) return written;
    // The empty old value makes it an error when the branch exists.
    const ref = `refs/heads/${branch}`;
    // In a repository of the user's: a power cut must not leave a branch of nothing there.
    const options = ['-c', 'core.fsync=reference'];
    const args = [...options, 'update-ref', '-m', 'branch: created by claude-code-agent', ref, draft.base, ''];
    const made = await askOwn(git, top, args);
    if (made.ok && made.value.exitCode === 0) {
      known.branches.add(branch.toLowerCase());
      return ok(intent);
    }
    git.world.files.remove(plan.intentFile);
    if (!made.ok) return made;
    // Somebody else was faster.
    if (isOld || /reference already exists/.test(made.value.stderr)) continue;
    return refusal(args, made.value);
  }
}

/** What was seen of a repository while worktrees were made there: thousands of them ask the same. */
interface Known {
  /** Commits that were there, in a repository that has files. */
  readonly starts: Set<string>;
  /** Names as they were listed last, and what was made since; null = never. In lower case. */
  branches: Set<string> | null;
}

/** Of each process by its world. */
const knownIn = new WeakMap<World, Map<string, Known>>();

function knownOf(world: World, { repository, projectPath, branch }: WorkspacePlan): Known {
  const all = knownIn.get(world) ?? new Map<string, Known>();
  knownIn.set(world, all);
  const key = [repository, projectPath, branch.split('/')[0]].join('\0');
  const known = all.get(key) ?? { starts: new Set<string>(), branches: null };
  all.set(key, known);
  return known;
}

/** In lower case: some disks make no difference. */
async function branchesBelow(git: Git, top: string, prefix: string): Promise<Result<Set<string>>> {
  const listed = await runOwn(git, top, ['for-each-ref', '--format=%(refname)', `refs/heads/${prefix}`]);
  if (!listed.ok) return listed;
  const names = listed.value.split('\n').map((ref) => ref.slice('refs/heads/'.length).toLowerCase());
  return ok(new Set(names.filter((name) => name !== '')));
}

/** Also a name below which there are others is taken: branches are files and folders. */
export function freeName(wanted: string, taken: ReadonlySet<string>): string | null {
  for (let count = 1; count <= namesMax; count += 1) {
    const name = count === 1 ? wanted : `${wanted}-${count}`;
    const lower = name.toLowerCase();
    if (!taken.has(lower) && ![...taken].some((other) => other.startsWith(`${lower}/`))) return name;
  }
  return null;
}

/** Checks the branch out, merges the further parents and says in the intent that all is there. */
async function fill(
  git: Git,
  plan: WorkspacePlan,
  intent: WorkspaceIntent,
  top: string,
): Promise<Result<WorkspaceIntent>> {
  const added = await addFolder(git, top, intent.path, intent.branch);
  if (!added.ok) return added;
  const base = await mergeParents(git, intent);
  if (!base.ok) return base;
  const checked = checkFolder(git, intent);
  if (!checked.ok) return checked;
  return sayMade(git, plan, { ...intent, base: base.value });
}

/** Once that is written nobody makes it again, and git waits for no disk: after a power cut its files are empty. */
export async function sayMade(
  git: Git,
  plan: WorkspacePlan,
  intent: WorkspaceIntent,
): Promise<Result<WorkspaceIntent>> {
  await syncDisks(git, intent.repository, intent.path);
  const made: WorkspaceIntent = { ...intent, state: 'made' };
  const written = writeIntent(git.world.files, plan.intentFile, made);
  return written.ok ? ok(made) : written;
}

/** The project must be a folder of the worktree, and not reached by a link that leads somewhere else. */
export function checkFolder(git: Git, { path, folder }: WorkspaceIntent): Result<void> {
  const { files } = git.world;
  if (files.entryKind(folder) === 'folder' && files.realPath(folder) === folder) return ok(undefined);
  const name = relative(path, folder);
  const message = `The folder ${nameFiles([name])} of the project is in no commit, so a worktree would not have it.`;
  return fail('worktree-failed', message, `Commit it first, ${inPlace}`);
}

/** The commit from which the session's own work begins. */
async function mergeParents(git: Git, { path, branch, base, parents }: WorkspaceIntent): Promise<Result<string>> {
  const [, ...others] = parents;
  if (others.length === 0) return ok(base);
  const identity = await identityOptions(git, path);
  if (!identity.ok) return identity;
  for (const commit of others) {
    const message = `Merge ${commit.slice(0, 12)} into ${branch}`;
    const merged = await mergeCommit(git, path, identity.value, commit, message);
    if (!merged.ok) return merged;
    if (merged.value.length === 0) continue;
    const files = nameFiles(merged.value);
    return fail(
      'merge-conflict',
      `The work of the sessions before this one does not go together in ${files}.`,
      'Let one of them begin from the other (--depends-on), or let this session depend on only one of them.',
    );
  }
  const head = await runOwn(git, path, ['rev-parse', '--verify', 'HEAD']);
  return head.ok ? ok(head.value.trim()) : head;
}

/** The paths that conflict, none when it is merged; after a conflict the merge stands half done. */
export async function mergeCommit(
  git: Git,
  path: string,
  identity: readonly string[],
  commit: string,
  message: string,
): Promise<Result<readonly string[]>> {
  const flags = [
    '--quiet',
    '--ff',
    '--commit',
    '--no-edit',
    '--no-stat',
    '--no-squash',
    '--no-autostash',
    '--no-signoff',
  ];
  const args = [...identity, 'merge', ...flags, '--cleanup=whitespace', '-m', message, commit];
  const merged = await askOwn(git, path, args, { timeoutMs: longTimeoutMs });
  if (!merged.ok) return merged;
  if (merged.value.exitCode === 0) return ok([]);
  const listed = await runOwn(git, path, ['diff', '--name-only', '--no-relative', '--diff-filter=U', '-z']);
  if (!listed.ok) return listed;
  const conflicts = listed.value.split('\0').filter((name) => name !== '');
  return conflicts.length > 0 ? ok(conflicts) : refusal(['merge'], merged.value);
}

/**
 * Removes a worktree in which nobody has worked, its branch and the intent; running it again finishes. Fails with
 * `worktree-failed` when git cannot be asked; throws the system's error.
 */
export async function takeBack(git: Git, intentFile: string, intent: WorkspaceIntent): Promise<Result<void>> {
  const { files } = git.world;
  const { path, branch, base } = intent;
  const asked = repositoryDir(intent.repository);
  dropBlankBranch(git, intent);
  const entry = await registrationOf(git, asked, path);
  if (!entry.ok) return entry;
  const tip = await commitOf(git, asked, `refs/heads/${branch}`);
  if (!tip.ok) return tip;
  files.remove(path);
  // Between the intent and its branch somebody else may have made one of that name.
  const isOurs = tip.value === base || entry.value?.branch === branch;
  if (tip.value !== null && isOurs) {
    const gone = await runOwn(git, asked, ['update-ref', '-d', `refs/heads/${branch}`, tip.value]);
    if (!gone.ok) return gone;
  }
  const forgotten = await forgetFolder(git, asked, path, branch, entry.value === null ? null : {});
  if (!forgotten.ok) return forgotten;
  files.remove(intentFile);
  return ok(undefined);
}

/** What people may expect in the worktree and will not find there. Said once, by whoever fixes the base. */
async function originNotes(git: Git, plan: WorkspacePlan, { top, start, target }: Origin): Promise<string[]> {
  if (plan.base !== undefined || plan.parents.length > 0) return [];
  const notes: string[] = [];
  const args = ['status', '--porcelain', '-z', '--untracked-files=normal', '--no-renames', '--ignore-submodules=dirty'];
  const status = await askOwn(git, top, args, { timeoutMs: longTimeoutMs });
  const changed = status.ok && status.value.exitCode === 0 ? status.value.stdout.split('\0') : [];
  const names = changed.map((line) => line.slice(3)).filter((name) => name !== '' && !isOurFile(name));
  if (names.length > 0) {
    notes.push(
      `${top} has changes that are in no commit (${nameFiles(names)}); the work begins from the commit ` +
        `${start.slice(0, 12)}, without them.`,
    );
  }
  if (target === null) {
    notes.push(`No branch is checked out in ${top}, so the hand-over has to be told one with --into BRANCH.`);
  }
  if ((git.world.files.info(join(plan.repository, 'shallow'))?.size ?? 0) > 0) {
    notes.push(`${top} is a shallow clone: work may be impossible to merge before git fetch --unshallow.`);
  }
  return notes;
}

const gitmodulesBytesMax = 1024 * 1024;

function worktreeNotes({ world: { files } }: Git, path: string): string[] {
  const file = join(path, '.gitmodules');
  if (files.entryKind(file) !== 'file') return [];
  const text = new TextDecoder().decode(files.readBytes(file, 0, gitmodulesBytesMax));
  const names = [...text.matchAll(/^\s*path\s*=\s*(.+?)\s*$/gm)].map((match) => match[1] as string);
  if (names.length === 0) return [];
  const which = names.length === 1 ? `The submodule ${nameFiles(names)} is` : `The submodules ${nameFiles(names)} are`;
  return [`${which} empty in the worktree; a set-up command can fill it: git submodule update --init`];
}

// The folder of a worktree and what the repository knows of it: added, found, forgotten without losing a commit.

/** Checks the existing branch out in a new folder at the absolute path. Fails with `worktree-failed`. */
export async function addFolder(git: Git, cwd: string, path: string, branch: string): Promise<Result<void>> {
  const args = ['worktree', 'add', '--quiet', '--', path, branch];
  const added = await askOwn(git, cwd, args, { timeoutMs: longTimeoutMs });
  if (!added.ok) return added;
  if (added.value.exitCode === 0) return ok(undefined);
  if (!/missing but already registered/.test(added.value.stderr)) return refusal(args, added.value);
  // A worktree of that path was there once.
  const entry = await registrationOf(git, cwd, path);
  if (!entry.ok) return entry;
  const gone = await forgetFolder(git, cwd, path, branch, entry.value);
  if (!gone.ok) return gone;
  const again = await runOwn(git, cwd, args, { timeoutMs: longTimeoutMs });
  return again.ok ? ok(undefined) : again;
}

/** A branch that a power cut left as a file of nothing, as git before 2.36 lets it: it is in the way. */
export function dropBlankBranch({ world }: Git, { repository, branch }: { repository: string; branch: string }): void {
  const path = join(repository, 'refs', 'heads', branch);
  const info = world.files.entryKind(path) === 'file' ? world.files.info(path) : null;
  if (info?.size === 0) world.files.remove(path);
}

export interface Registration {
  /** Full id of the commit that is checked out in it. */
  readonly head?: string;
  /** Without `refs/heads/`; absent when a commit is checked out by itself. */
  readonly branch?: string;
  /** Somebody locked it; the reason, which may be empty. */
  readonly lock?: string;
}

/** What the repository knows of a worktree at the real path; null when it knows nothing. */
export async function registrationOf(git: Git, cwd: string, path: string): Promise<Result<Registration | null>> {
  const listed = await runOwn(git, cwd, ['worktree', 'list', '--porcelain', '-z']);
  if (!listed.ok) return listed;
  const entries = listed.value.split('\0\0').map((entry) => entry.split('\0'));
  const fields = entries.find((entry) => entry.includes(`worktree ${path}`));
  if (fields === undefined) return ok(null);
  const after = (start: string): string | undefined =>
    fields.find((field) => field.startsWith(start))?.slice(start.length);
  const head = after('HEAD ');
  const branch = after('branch refs/heads/');
  const lock = fields.includes('locked') ? '' : after('locked ');
  return ok({
    ...(head === undefined || /^0+$/.test(head) ? {} : { head }),
    ...defined({ branch }),
    // So git itself locks what it is making; it stays when that git was killed.
    ...(lock === undefined || lock === 'initializing' ? {} : { lock }),
  });
}

/**
 * Makes the repository forget this one worktree (`git worktree prune` would also forget those of the user's on a disk
 * that is away) and removes its folder. A commit that was checked out in it and is on no branch gets one of a name that
 * begins with `branch`. Fails with `worktree-failed`.
 */
export async function forgetFolder(
  git: Git,
  cwd: string,
  path: string,
  branch: string,
  entry: Registration | null,
): Promise<Result<void>> {
  if (entry === null) return ok(undefined);
  const kept = entry.head === undefined ? ok(undefined) : await keepAside(git, cwd, branch, entry.head);
  if (!kept.ok) return kept;
  const gone = await runOwn(git, cwd, ['worktree', 'remove', '--force', '--force', '--', path]);
  if (gone.ok) return ok(undefined);
  // A git that was told to end takes back by itself what it was making, maybe just now.
  const left = await registrationOf(git, cwd, path);
  return left.ok && left.value === null ? ok(undefined) : gone;
}

async function keepAside(git: Git, cwd: string, branch: string, head: string): Promise<Result<void>> {
  const there = await commitOf(git, cwd, head);
  if (!there.ok) return there;
  if (there.value === null) return ok(undefined);
  const counted = await runOwn(git, cwd, ['rev-list', '--count', head, '--not', '--branches', '--tags', '--remotes']);
  if (!counted.ok) return counted;
  if (counted.value.trim() === '0') return ok(undefined);
  const name = `refs/heads/${branch}-${head.slice(0, 12)}`;
  const kept = await runOwn(git, cwd, ['update-ref', '-m', 'branch: kept by claude-code-agent', name, head]);
  return kept.ok ? ok(undefined) : kept;
}

// * What a worktree is to be, and the file that says which one a session has or is about to get: by it what a
// crash left is put right.

export interface WorkspacePlan {
  /** Absolute real path of the project, a folder in a worktree of the repository. */
  readonly projectPath: string;
  /** As in SessionDefinition. */
  readonly repository: string;
  /** Where the worktree is to be; its parent folder exists. */
  readonly path: string;
  /** The wanted name, without `refs/heads/`. */
  readonly branch: string;
  /** JSON file that says what is being made, written before anything is. */
  readonly intentFile: string;
  /** Where a session without parents begins; absent = what is checked out in the project. */
  readonly base?: string;
  /** Commits to begin from: the first is checked out, the others are merged. */
  readonly parents: readonly string[];
  /** The session has worked in one before, so a new one is none that it knows. */
  readonly isKnown?: boolean;
}

export interface MadeWorkspace {
  readonly workspace: Workspace;
  /** Sentences for people. */
  readonly notes: readonly string[];
  /** True when this call made the folder: ignored files and what set-up makes are not in it yet. */
  readonly isNew: boolean;
}

const states = ['making', 'made', 'restoring'] as const;

export interface WorkspaceIntent {
  /**
   * `making`: nobody has worked in it yet, so what is there of it can go. `restoring`: the branch holds work, the
   * folder is being filled from it again.
   */
  readonly state: (typeof states)[number];
  readonly repository: string;
  readonly path: string;
  readonly folder: string;
  readonly branch: string;
  /** Full id of the commit the branch begins from. */
  readonly base: string;
  readonly target?: string;
  /** As in the plan. */
  readonly parents: readonly string[];
  /** As in Workspace: kept here as well, because a crash may come before anybody was told. */
  readonly remade?: Remade;
}

/** Null when there is none, or none that can be understood. */
export function readIntent(files: Files, path: string): WorkspaceIntent | null {
  return parseOwn<WorkspaceIntent>(files.readText(path));
}

/** Durable when it returns. Fails with `write-failed`. */
export function writeIntent(files: Files, path: string, intent: WorkspaceIntent): Result<void> {
  try {
    files.writeAtomic(path, `${JSON.stringify({ version: 1, ...intent }, null, 2)}\n`, { durable: true });
    return ok(undefined);
  } catch (error) {
    return { ok: false, failure: systemFailure(path, error) };
  }
}

export function workspaceOf(intent: WorkspaceIntent): Workspace {
  const { path, folder, repository, branch, base, target, remade } = intent;
  const optionalFields = defined({ target, remade });
  return { path, folder, repository, branch, base, ...optionalFields };
}

export function remadeNow({ world }: Git, from: Remade['from']): Remade {
  return { at: new Date(world.clock.now()).toISOString(), from };
}
