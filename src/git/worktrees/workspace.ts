/**
 * git/worktrees/: worktrees of sessions. This file: creates them step by step on a branch, and finds them after a
 * crash.
 */
import { basename, dirname, join, relative } from 'node:path';
import { defined } from '../../core/defined.ts';
import { fail, ok, type Result } from '../../core/failure.ts';
import type { SessionId, Workspace } from '../../core/group.ts';
import { sessionNumber } from '../../core/id.ts';
import { parseOwn } from '../../store/json.ts';
import { systemFailure } from '../../store/system-failure.ts';
import type { Files } from '../../system/world.ts';
import { findRepository, type Git, isWorktreeOf } from '../git.ts';
import { namedByProject } from '../include.ts';
import { syncDisks } from '../leftover-files.ts';
import { askOwn, commitOf, currentBranch, gitFailure, longTimeoutMs, nameFiles, runOwn } from '../run-git.ts';
import { isOurFile } from '../stage.ts';
import { mergeInto, removeWorktree, repositoryDir, worktreeAt } from './worktree.ts';

export interface WorkspacePlan {
  /** Absolute real path of the project, a folder in a worktree of the repository. */
  readonly projectPath: string;
  readonly repository: string;
  readonly path: string;
  readonly branch: string;
  /** JSON file with the plan of the worktree, written before anything is created. */
  readonly intentFile: string;
  /** The base of a session without parents; absent = the project's HEAD. */
  readonly base?: string;
  /** Base commits: the first is checked out, the others are merged. */
  readonly parents: readonly string[];
  /** The session has worked in a worktree before, so a new one is unknown to it. */
  readonly isKnown?: boolean;
}

export interface MadeWorkspace {
  readonly workspace: Workspace;
  readonly notes: readonly string[];
  /** True when this call created the folder: ignored files and the results of set-up are not in it yet. */
  readonly isNew: boolean;
}

const states = ['making', 'made', 'restoring'] as const;

export interface WorkspaceIntent {
  /** `making`: nothing has run in it. `restoring`: the folder is being filled from its branch again. */
  readonly state: (typeof states)[number];
  readonly repository: string;
  readonly path: string;
  readonly folder: string;
  readonly branch: string;
  readonly base: string;
  readonly target?: string;
  readonly parents: readonly string[];
  /** As in Workspace; also stored here, because a crash may come before it is reported. */
  readonly remadeAt?: string;
}

/** Null when there is none, or an unreadable one. */
export function readIntent(files: Files, path: string): WorkspaceIntent | null {
  return parseOwn<WorkspaceIntent>(files.readText(path));
}

/** Durable when it returns. Fails with `write-failed`. */
function writeIntent(files: Files, path: string, intent: WorkspaceIntent): Result<void> {
  try {
    files.writeAtomic(path, `${JSON.stringify({ version: 1, ...intent }, null, 2)}\n`, { durable: true });
    return ok(undefined);
  } catch (error) {
    return { ok: false, failure: systemFailure(path, error) };
  }
}

function workspaceOf(intent: WorkspaceIntent): Workspace {
  const { path, folder, repository, branch, base, target, remadeAt } = intent;
  return { path, folder, repository, branch, base, ...defined({ target, remadeAt }) };
}

function now({ world }: Git): string {
  return new Date(world.clock.now()).toISOString();
}

/** `cca/<group-slug>/<NNN>-<name>` with safe characters; without a name only the number. */
export function branchName(groupSlug: string, sessionId: SessionId, name: string | undefined): string {
  const number = String(sessionNumber(sessionId)).padStart(3, '0');
  const word = (name ?? '')
    .replace(/[^A-Za-z0-9._-]+/g, '-')
    .replace(/\.{2,}/g, '.')
    .replace(/^[.-]+|(?:\.lock|[.-])+$/gi, '');
  return `cca/${groupSlug}/${number}${word === '' ? '' : `-${word}`}`;
}

/**
 * The session's worktree: the existing one, or a new one on a new branch. Can be called again after a crash at any
 * moment. Fails with `merge-conflict` when the parents conflict, `project-missing` and `worktree-failed`; then nothing
 * new is left behind.
 */
export async function makeWorkspace(git: Git, wanted: WorkspacePlan): Promise<Result<MadeWorkspace>> {
  const { files } = git.world;
  try {
    files.makeFolder(dirname(wanted.path));
    const parent = files.realPath(dirname(wanted.path)) ?? dirname(wanted.path);
    const plan = { ...wanted, path: join(parent, basename(wanted.path)) };
    const intent = readIntent(files, plan.intentFile);
    let isKnown = wanted.isKnown === true;
    if (intent !== null && (intent.path !== plan.path || intent.repository !== plan.repository)) {
      const message = `${plan.intentFile} describes another worktree: ${intent.path}.`;
      return fail('worktree-failed', message, 'Move that file away if that worktree is no longer needed.');
    }
    if (intent?.state === 'making') {
      const gone = await rollBack(git, plan.intentFile, intent);
      if (!gone.ok) return gone;
    } else if (intent !== null) {
      const found = await findExisting(git, plan, intent);
      if (!found.ok) return found;
      if (found.value !== null) return { ok: true, value: found.value };
      isKnown = true;
    }
    if (files.entryKind(plan.path) !== null) {
      const message = `${plan.path} already exists and is not a worktree of the session.`;
      return fail('worktree-failed', message, 'Move it away, then retry the session.');
    }
    return await makeNew(git, { ...plan, isKnown });
  } catch (error) {
    return { ok: false, failure: { ...systemFailure(wanted.path, error), reason: 'worktree-failed' } };
  }
}

/** Null when nothing is left of it, so that a new one is needed. */
async function findExisting(
  git: Git,
  plan: WorkspacePlan,
  intent: WorkspaceIntent,
): Promise<Result<MadeWorkspace | null>> {
  const { files } = git.world;
  const { path, repository } = intent;
  if (intent.state === 'made' && files.entryKind(path) !== null) {
    if (isWorktreeOf(files, repository, path)) {
      return ok({ workspace: workspaceOf(intent), notes: [], isNew: false });
    }
    const message = `${path} is no longer a worktree of ${repository}.`;
    return fail('worktree-failed', message, 'Run git worktree repair, or save its files and remove it, then retry.');
  }
  return restore(git, plan, intent);
}

/** Fills the missing folder again from its branch. Null when the branch is gone too. */
async function restore(git: Git, plan: WorkspacePlan, intent: WorkspaceIntent): Promise<Result<MadeWorkspace | null>> {
  const { files } = git.world;
  const { path, branch } = intent;
  const repository = repositoryDir(intent.repository);
  const entry = await worktreeAt(git, repository, path);
  if (!entry.ok) return entry;
  if (entry.value?.lock !== undefined) {
    const message = `The worktree ${path} is missing, but it is locked: ${entry.value.lock || 'no reason given'}.`;
    return fail('worktree-failed', message, `Restore its folder, or give it up with: git worktree unlock '${path}'`);
  }
  // The remaining folder is empty, or this program was filling it from the branch.
  files.remove(path);
  const tip = await commitOf(git, repository, `refs/heads/${branch}`);
  if (!tip.ok) return tip;
  // A restore that began before a crash is the same one.
  const remadeAt = (intent.state === 'restoring' && intent.remadeAt) || now(git);
  const again: WorkspaceIntent = { ...intent, state: 'restoring', remadeAt };
  const written = tip.value === null ? ok(undefined) : writeIntent(files, plan.intentFile, again);
  if (!written.ok) return written;
  const gone = entry.value === null ? ok(undefined) : await removeWorktree(git, repository, path);
  if (!gone.ok) return gone;
  if (tip.value === null) {
    files.remove(plan.intentFile);
    return ok(null);
  }
  const added = await addFolder(git, repository, path, branch);
  if (!added.ok) return added;
  const checked = checkFolder(git, again);
  if (!checked.ok) return checked;
  const made = await recordComplete(git, plan, again);
  return made.ok ? ok({ workspace: workspaceOf(made.value), notes: [], isNew: true }) : made;
}

/** Names can be taken only by people and by other groups with the same slug; far fewer than this. */
const namesMax = 1000;
const inPlace = 'or work in the checkout itself with --isolate none.';

interface Origin {
  readonly top: string;
  /** The project's path within it; empty = the root itself. */
  readonly inside: string;
  readonly start: string;
  readonly target: string | null;
}

/** Fails with `worktree-failed`, `project-missing` or `merge-conflict`; then nothing is left of it. */
async function makeNew(git: Git, plan: WorkspacePlan): Promise<Result<MadeWorkspace>> {
  const origin = await inspectOrigin(git, plan);
  if (!origin.ok) return origin;
  const { top, inside, start, target } = origin.value;
  const { repository, path, branch, parents } = plan;
  const draft: WorkspaceIntent = {
    ...{ state: 'making', repository, path, folder: join(path, inside), branch, base: start, parents },
    ...(target === null ? {} : { target }),
    ...(plan.isKnown === true ? { remadeAt: now(git) } : {}),
  };
  const begun = await beginBranch(git, plan, draft, top);
  if (!begun.ok) return begun;
  const filled = await fill(git, plan, begun.value, top);
  if (!filled.ok) {
    // The original failure is reported; the next call finishes an incomplete rollback.
    await rollBack(git, plan.intentFile, begun.value);
    return filled;
  }
  const notes = [...(await originNotes(git, plan, origin.value)), ...worktreeNotes(git, plan.path)];
  return ok({ workspace: workspaceOf(filled.value), notes, isNew: true });
}

type OriginPlan = Pick<WorkspacePlan, 'projectPath' | 'repository' | 'base' | 'parents'>;

/** Whether a worktree of the project could be created now; read only. Fails as `makeWorkspace` would. */
export async function checkOrigin(git: Git, project: Omit<OriginPlan, 'parents'>): Promise<Result<void>> {
  const origin = await inspectOrigin(git, { ...project, parents: [] });
  if (!origin.ok) return origin;
  const taken = await commitOf(git, origin.value.top, 'refs/heads/cca');
  if (!taken.ok || taken.value === null) return taken.ok ? ok(undefined) : taken;
  const message = `${origin.value.top} has a branch "cca", so git cannot create branches such as cca/GROUP/SESSION.`;
  return fail('worktree-failed', message, `Rename it (git branch -m cca NAME), ${inPlace}`);
}

/** What a new worktree of the project would lack; empty where none can be created. */
export async function foreseenNotes(git: Git, project: Omit<OriginPlan, 'parents'>): Promise<string[]> {
  const plan = { ...project, parents: [] };
  const origin = await inspectOrigin(git, plan);
  if (!origin.ok) return [];
  const { top } = origin.value;
  const notes = await originNotes(git, plan, origin.value);
  // Ignored folders, such as node_modules, are one entry each.
  const ignored = await runOwn(git, top, ['ls-files', '-z', '-o', '-i', '--exclude-standard', '--directory']);
  const copied = await namedByProject(git, top);
  if (!ignored.ok || !copied.ok) return notes;
  const local = ignored.value.split('\0').filter((name) => localFile.test(name) && !copied.value.includes(name));
  if (local.length === 0) return notes;
  const cure = 'list them in .worktreeinclude or create them with --setup.';
  return [...notes, `${top}: worktrees lack these files, which git ignores: ${nameFiles(local)}. Add them: ${cure}`];
}

/** Local settings files of one checkout; those of claude apply in a worktree anyway. */
const localFile = /^(?!CLAUDE\.|\.claude\/)(?:.*\/)?(?:\.env[^/]*|[^/]+\.local\.[^/]+|local\.properties)$/;

async function inspectOrigin(git: Git, plan: OriginPlan): Promise<Result<Origin>> {
  const { files } = git.world;
  const { projectPath, repository } = plan;
  if (files.info(projectPath)?.kind !== 'folder') {
    const next = 'Restore it and retry the session, or remove the session and its dependents.';
    return fail('project-missing', `The project folder ${projectPath} no longer exists.`, next);
  }
  const found = findRepository(files, projectPath);
  if (found?.repository !== repository) {
    const message =
      found === null
        ? `${projectPath} is no longer in a git repository.`
        : `${projectPath} now belongs to another repository: ${found.repository}.`;
    return fail('worktree-failed', message, 'Remove the session and add it again.');
  }
  const { top } = found;
  const start = await startOf(git, plan, top);
  if (!start.ok) return start;
  const target = await currentBranch(git, top);
  if (!target.ok) return target;
  return ok({ top, inside: relative(top, projectPath), start: start.value, target: target.value });
}

/** Every needed commit must exist before anything is created. */
async function startOf(git: Git, plan: OriginPlan, top: string): Promise<Result<string>> {
  const { base, parents } = plan;
  const wanted = parents.length > 0 ? parents : base === undefined ? [] : [base];
  const inWorktree = ['rev-parse', '--is-inside-work-tree'];
  const asked = await askOwn(git, top, inWorktree);
  if (!asked.ok) return asked;
  if (asked.value.exitCode !== 0) return gitFailure(inWorktree, asked.value);
  if (asked.value.stdout.trim() !== 'true') {
    const message = `${top} is a bare repository without files to work on.`;
    const next = 'Create a checkout with git worktree add, and add the session with its folder.';
    return fail('worktree-failed', message, next);
  }
  for (const commit of wanted) {
    const there = await commitOf(git, top, commit);
    if (!there.ok) return there;
    if (there.value !== null) continue;
    const message = `The base commit ${commit.slice(0, 12)} is not in the repository of ${top}.`;
    return fail('worktree-failed', message, 'Fetch it (git fetch), or remove the session and add it again.');
  }
  if (wanted[0] !== undefined) return ok(wanted[0]);
  const head = await commitOf(git, top, 'HEAD');
  if (!head.ok) return head;
  if (head.value !== null) return ok(head.value);
  const message = `${top} has no commit yet.`;
  return fail('worktree-failed', message, `Make a first commit (git commit --allow-empty), ${inPlace}`);
}

/** Chooses a free name, writes the intent, creates the branch. An existing branch is never moved. */
async function beginBranch(
  git: Git,
  plan: WorkspacePlan,
  draft: WorkspaceIntent,
  top: string,
): Promise<Result<WorkspaceIntent>> {
  const tried = new Set<string>();
  const prefix = plan.branch.split('/')[0] ?? '';
  for (;;) {
    const listed = await branchesBelow(git, top, prefix);
    if (!listed.ok) return listed;
    const branch = freeName(plan.branch, new Set([...listed.value, ...tried]));
    if (branch === null) {
      const next = `Remove some of them: git branch --list '${plan.branch}*'`;
      return fail('worktree-failed', `All branch names like ${plan.branch} are taken.`, next);
    }
    tried.add(branch.toLowerCase());
    const intent = { ...draft, branch };
    const written = writeIntent(git.world.files, plan.intentFile, intent);
    if (!written.ok) return written;
    // The empty old value makes an existing branch an error.
    const ref = `refs/heads/${branch}`;
    // In the user's repository: a power cut must not leave an empty ref.
    const options = ['-c', 'core.fsync=reference'];
    const args = [...options, 'update-ref', '-m', 'branch: created by claude-code-agent', ref, draft.base, ''];
    const made = await askOwn(git, top, args);
    if (made.ok && made.value.exitCode === 0) return ok(intent);
    git.world.files.remove(plan.intentFile);
    if (!made.ok) return made;
    // Another process created the branch first.
    if (/reference already exists/.test(made.value.stderr)) continue;
    return gitFailure(args, made.value);
  }
}

/** In lower case, because some file systems are case-insensitive. */
async function branchesBelow(git: Git, top: string, prefix: string): Promise<Result<Set<string>>> {
  const listed = await runOwn(git, top, ['for-each-ref', '--format=%(refname)', `refs/heads/${prefix}`]);
  if (!listed.ok) return listed;
  const names = listed.value.split('\n').map((ref) => ref.slice('refs/heads/'.length).toLowerCase());
  return ok(new Set(names.filter((name) => name !== '')));
}

/** A name with branches below it is taken as well: branches are files and folders. */
function freeName(wanted: string, taken: ReadonlySet<string>): string | null {
  for (let count = 1; count <= namesMax; count += 1) {
    const name = count === 1 ? wanted : `${wanted}-${count}`;
    const lower = name.toLowerCase();
    if (!taken.has(lower) && ![...taken].some((other) => other.startsWith(`${lower}/`))) return name;
  }
  return null;
}

/** Checks the branch out, merges the other parents and records in the intent that it is complete. */
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
  return recordComplete(git, plan, { ...intent, base: base.value });
}

/**
 * A worktree recorded as complete is never created again, and git does not sync: after a power cut its files would be
 * empty.
 */
async function recordComplete(
  git: Git,
  plan: WorkspacePlan,
  intent: WorkspaceIntent,
): Promise<Result<WorkspaceIntent>> {
  await syncDisks(git, intent.repository, intent.path);
  const made: WorkspaceIntent = { ...intent, state: 'made' };
  const written = writeIntent(git.world.files, plan.intentFile, made);
  return written.ok ? ok(made) : written;
}

/** The project must be a folder of the worktree, not reached by a symlink that leads out. */
function checkFolder(git: Git, { path, folder }: WorkspaceIntent): Result<void> {
  const { files } = git.world;
  if (files.entryKind(folder) === 'folder' && files.realPath(folder) === folder) return ok(undefined);
  const name = relative(path, folder);
  const message = `The folder ${nameFiles([name])} of the project is not committed, so a worktree would not have it.`;
  return fail('worktree-failed', message, `Commit it first, ${inPlace}`);
}

async function mergeParents(git: Git, { path, branch, base, parents }: WorkspaceIntent): Promise<Result<string>> {
  let head = base;
  for (const commit of parents.slice(1)) {
    const merged = await mergeInto(git, path, commit, `Merge ${commit.slice(0, 12)} into ${branch}`);
    if (!merged.ok) return merged;
    if ('conflicts' in merged.value) {
      const where = nameFiles(merged.value.conflicts);
      const message = `The work of the dependencies has merge conflicts in ${where}.`;
      const next =
        'Let one dependency depend on the other (--depends-on), or let this session depend on only one of them.';
      return fail('merge-conflict', message, next);
    }
    head = merged.value.commit;
  }
  return ok(head);
}

/** Removes a worktree in which nothing has run, its branch and the intent; a second call finishes. */
async function rollBack(git: Git, intentFile: string, intent: WorkspaceIntent): Promise<Result<void>> {
  const { files } = git.world;
  const { path, branch, base } = intent;
  const asked = repositoryDir(intent.repository);
  const entry = await worktreeAt(git, asked, path);
  if (!entry.ok) return entry;
  const tip = await commitOf(git, asked, `refs/heads/${branch}`);
  if (!tip.ok) return tip;
  files.remove(path);
  // Between the intent and its branch another process may have created one with that name.
  const isOurs = tip.value === base || entry.value?.branch === branch;
  if (tip.value !== null && isOurs) {
    const gone = await runOwn(git, asked, ['update-ref', '-d', `refs/heads/${branch}`, tip.value]);
    if (!gone.ok) return gone;
  }
  // Only this entry: `git worktree prune` would also remove those of worktrees on an unmounted disk.
  const forgotten = entry.value === null ? ok(undefined) : await removeWorktree(git, asked, path);
  if (!forgotten.ok) return forgotten;
  files.remove(intentFile);
  return ok(undefined);
}

/** Expected files that the worktree lacks. Reported once, when the base is fixed. */
async function originNotes(git: Git, plan: OriginPlan, { top, start, target }: Origin): Promise<string[]> {
  if (plan.base !== undefined || plan.parents.length > 0) return [];
  const notes: string[] = [];
  const args = ['status', '--porcelain', '-z', '--untracked-files=normal', '--no-renames', '--ignore-submodules=dirty'];
  const status = await askOwn(git, top, args, { timeoutMs: longTimeoutMs });
  const changed = status.ok && status.value.exitCode === 0 ? status.value.stdout.split('\0') : [];
  const names = changed.map((line) => line.slice(3)).filter((name) => name !== '' && !isOurFile(name));
  if (names.length > 0) {
    notes.push(
      `${top} has uncommitted changes (${nameFiles(names)}). The session starts from commit ` +
        `${start.slice(0, 12)}, without them.`,
    );
  }
  if (target === null) {
    notes.push(`No branch is checked out in ${top}, so the merge needs --into BRANCH.`);
  }
  if ((git.world.files.info(join(plan.repository, 'shallow'))?.size ?? 0) > 0) {
    notes.push(`${top} is a shallow clone: merging may fail before git fetch --unshallow.`);
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
  return [`${which} empty in the worktree. Fill with the set-up command: git submodule update --init`];
}

async function addFolder(git: Git, cwd: string, path: string, branch: string): Promise<Result<void>> {
  const args = ['worktree', 'add', '--quiet', '--', path, branch];
  const added = await runOwn(git, cwd, args, { timeoutMs: longTimeoutMs });
  return added.ok ? ok(undefined) : added;
}
