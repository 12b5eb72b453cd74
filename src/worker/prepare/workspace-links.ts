/** The folders around a session's worktree: links to the user's folders, and the work of its dependencies. */
import { createHash } from 'node:crypto';
import { basename, join, relative } from 'node:path';
import type { Warning } from '../../core/event.ts';
import { fail, ok, type Result } from '../../core/failure.ts';
import { defaultCommandTimeoutMs, type SessionDefinition, type Workspace } from '../../core/group.ts';
import { baseSessionsOf, repositoriesBefore } from '../../core/plan/isolation.ts';
import type { SessionRecord } from '../../core/session-state.ts';
import type { GroupState } from '../../core/state.ts';
import { findRepository, type Git } from '../../git/git.ts';
import { copyIncluded } from '../../git/include.ts';
import { askOwn, commitOf, isAncestor, nameFiles } from '../../git/run-git.ts';
import { aroundOf, checkoutOf, type LinkedEntry, layOutLevels, placeInLevels } from '../../git/worktrees/levels.ts';
import { makeScratch, mergeInto, removeScratch } from '../../git/worktrees/worktree.ts';
import { parseOwn } from '../../store/json.ts';
import { groupPathsIn, type SessionPaths, sessionPaths } from '../../store/paths.ts';
import type { Files } from '../../system/world.ts';
import type { WorkspaceInput } from '../host.ts';

type LayoutInput = Pick<WorkspaceInput, 'state' | 'record' | 'paths'>;

export interface Upstream {
  readonly repository: string;
  /** The user's checkout, real path. */
  readonly checkout: string;
  /** None of them is based on another. */
  readonly sessions: readonly SessionRecord[];
}

/** Work in worktrees of other repositories on which the session builds. */
export function upstreamsOf(files: Files, state: GroupState, record: SessionRecord): Upstream[] {
  const { id } = record.definition;
  return repositoriesBefore(state, id).flatMap((repository) => {
    const checkouts = new Map<string, SessionRecord[]>();
    for (const one of baseSessionsOf(state, id, repository)) {
      if (one.isolated !== true || one.workspace === undefined) continue;
      const checkout = checkoutOf(files, one);
      checkouts.set(checkout, [...(checkouts.get(checkout) ?? []), one]);
    }
    return [...checkouts].map(([checkout, sessions]) => ({ repository, checkout, sessions }));
  });
}

export interface SetupCommand {
  readonly command: string;
  readonly cwd: string;
  readonly timeoutMs: number;
}

export interface LayoutActions {
  /** Runs checkouts of a repository one after another; null when the session was stopped. */
  inTurn<T>(repository: string, work: () => Promise<T>): Promise<T | null>;
  setUp(command: SetupCommand): Promise<Result<void>>;
}

/** The session's own checkouts of upstream work, by path. Recorded before they are created. */
type CheckoutNotes = Readonly<
  Record<string, { readonly repository: string; readonly commits: string; readonly isReady: boolean }>
>;

function readCheckoutNotes(files: Files, { upstream }: Pick<SessionPaths, 'upstream'>): CheckoutNotes {
  return parseOwn<CheckoutNotes>(files.readText(upstream)) ?? {};
}

/**
 * Creates or updates the workspace around the worktree. Returns its links. Fails with `merge-conflict`, `setup-failed`,
 * `worktree-failed`, or `busy` when the session was stopped.
 */
export async function layOutAround(
  git: Git,
  input: LayoutInput,
  workspace: Workspace,
  actions: LayoutActions,
): Promise<Result<readonly LinkedEntry[]>> {
  const { files } = git.world;
  const { state, record } = input;
  const around = aroundOf(git, [state.group.id, record.definition.id], workspace);
  if (around === null) return ok([]);
  const places = new Map<string, string>();
  const wanted: { readonly upstream: Upstream; readonly path: string }[] = [];
  for (const upstream of upstreamsOf(files, state, record)) {
    const path = placeInLevels(around, upstream.checkout);
    if (path === null) continue;
    const one = upstream.sessions.length === 1 ? readyWorktree(files, input.paths, upstream.sessions[0]) : null;
    if (one === null) wanted.push({ upstream, path });
    places.set(upstream.checkout, one ?? path);
  }
  const dropped = await removeUpstreams(git, input.paths, new Set(wanted.map(({ path }) => path)));
  if (!dropped.ok) return dropped;
  const linked = layOutLevels(files, { ...around, places });
  for (const { upstream, path } of wanted) {
    const made = await checkOutUpstream(git, input, upstream, path, actions);
    if (!made.ok) return made;
  }
  return ok(linked);
}

/** Null when the worktree is missing or not set up on this machine. */
function readyWorktree(files: Files, own: SessionPaths, record: SessionRecord | undefined): string | null {
  const { workspace, definition } = record ?? {};
  if (workspace === undefined || definition === undefined) return null;
  const found = findRepository(files, workspace.path);
  if (found?.repository !== workspace.repository || found.top !== workspace.path) return null;
  const group = groupPathsIn(join(own.folder, '..', '..'));
  const isSetUp = files.info(sessionPaths(group, definition.id).setupDone) !== null;
  return isSetUp || definition.setup === undefined ? workspace.path : null;
}

/** Removes the session's own checkouts of upstream work, except the `wanted` paths. */
export async function removeUpstreams(
  git: Git,
  paths: Pick<SessionPaths, 'upstream'>,
  wanted: ReadonlySet<string> = new Set(),
): Promise<Result<void>> {
  const { files } = git.world;
  const noted = Object.entries(readCheckoutNotes(files, paths));
  const kept = noted.filter(([path]) => wanted.has(path));
  for (const [path, { repository }] of noted) {
    // git would follow a link to the user's own checkout.
    if (wanted.has(path) || files.entryKind(path) !== 'folder') continue;
    const removed = await removeScratch(git, repository, path);
    if (!removed.ok) return removed;
  }
  if (kept.length < noted.length) note(files, paths, Object.fromEntries(kept));
  return ok(undefined);
}

/** Notes a checkout that is about to be made for the session alone, so that every later clean-up removes it. */
export function noteCheckout(files: Files, paths: SessionPaths, path: string, repository: string): void {
  note(files, paths, { ...readCheckoutNotes(files, paths), [path]: { repository, commits: '', isReady: false } });
}

export async function removeCheckout(git: Git, paths: SessionPaths, path: string): Promise<Result<void>> {
  const others = Object.keys(readCheckoutNotes(git.world.files, paths)).filter((one) => one !== path);
  return removeUpstreams(git, paths, new Set(others));
}

function note(files: Files, { upstream }: Pick<SessionPaths, 'upstream'>, noted: CheckoutNotes): void {
  files.writeAtomic(upstream, `${JSON.stringify(noted, null, 2)}\n`, { durable: true });
}

/** Checks out the merged commits of the sessions on a detached HEAD and sets them up. */
async function checkOutUpstream(
  git: Git,
  { paths }: LayoutInput,
  { repository, sessions }: Upstream,
  path: string,
  actions: LayoutActions,
): Promise<Result<void>> {
  const { files } = git.world;
  const tips: string[] = [];
  for (const { definition, state, workspace } of sessions) {
    const recorded = state.status === 'completed' ? state.work?.commit : undefined;
    const tip = recorded === undefined ? null : await newestOf(git, definition, recorded, workspace);
    if (tip?.ok === false) return tip;
    if (tip !== null) tips.push(tip.value);
  }
  const commits = tips.join(' ');
  const known = readCheckoutNotes(files, paths)[path];
  const exists = known?.commits === commits && files.entryKind(path) === 'folder';
  if (exists && known.isReady) return ok(undefined);
  if (files.entryKind(path) === 'link') files.remove(path);
  note(files, paths, { ...readCheckoutNotes(files, paths), [path]: { repository, commits, isReady: false } });
  const made = await actions.inTurn(repository, () => checkOutMerged(git, repository, path, tips));
  if (made === null) return fail('busy', 'The session was stopped.', 'Resume it.');
  if (!made.ok) return made;
  const commands = new Map<string, SetupCommand>();
  for (const { definition, workspace } of sessions) {
    if (workspace === undefined) continue;
    const { projectPath, setup, setupTimeoutMs: timeoutMs = defaultCommandTimeoutMs } = definition;
    const cwd = join(path, relative(workspace.path, workspace.folder));
    const copied = await copyIncluded(git, { ...workspace, path, folder: cwd }, projectPath);
    if (!copied.ok) return copied;
    if (setup !== undefined) commands.set(`${setup}\0${cwd}`, { command: setup, cwd, timeoutMs });
  }
  for (const command of commands.values()) {
    const done = await actions.setUp(command);
    if (!done.ok) return done;
  }
  note(files, paths, { ...readCheckoutNotes(files, paths), [path]: { repository, commits, isReady: true } });
  return ok(undefined);
}

/** The tip of the session's branch, including commits that the user has added, for example to resolve a conflict. */
export async function newestOf(
  git: Git,
  { projectPath }: SessionDefinition,
  recorded: string,
  workspace: Workspace | undefined,
): Promise<Result<string>> {
  if (workspace === undefined) return ok(recorded);
  const tip = await commitOf(git, projectPath, `refs/heads/${workspace.branch}`);
  if (!tip.ok) return tip;
  if (tip.value === null) return ok(recorded);
  const goesOn = await isAncestor(git, projectPath, recorded, tip.value);
  return goesOn.ok ? ok(goesOn.value ? tip.value : recorded) : goesOn;
}

async function checkOutMerged(
  git: Git,
  repository: string,
  path: string,
  [first = '', ...others]: readonly string[],
): Promise<Result<void>> {
  const made = await makeScratch(git, repository, path, first);
  if (!made.ok) return made;
  for (const commit of others) {
    const merged = await mergeInto(git, path, commit, `Merge ${commit.slice(0, 12)}`);
    if (!merged.ok) return merged;
    if ('commit' in merged.value) continue;
    return fail(
      'merge-conflict',
      `The dependencies' work in ${basename(path)} has merge conflicts in ` + `${nameFiles(merged.value.conflicts)}.`,
      'Let one dependency depend on the other (--depends-on), or let this session depend on only one of them.',
    );
  }
  return ok(undefined);
}

// Detects changes in the user's repositories that the workspace links to: commands can write there.

/** git runs once in each of them. */
const repositoriesMax = 20;
const namesMax = 10;
const statusTimeoutMs = 20_000;

type Statuses = Readonly<Record<string, { readonly digest: string; readonly names: readonly string[] }>>;

/** Records their status, before each attempt and again after the set-up. */
export async function noteLinked(git: Git, { linked }: Pick<SessionPaths, 'linked'>, paths: readonly string[]) {
  git.world.files.writeAtomic(linked, JSON.stringify(await statusesOf(git, paths)));
}

/** Warns once of each repository that changed since it was recorded. `who`: what ran meanwhile. */
export async function changedLinked(
  git: Git,
  { linked }: Pick<SessionPaths, 'linked'>,
  who: string,
): Promise<Warning[]> {
  const before = parseOwn<Statuses>(git.world.files.readText(linked));
  if (before === null) return [];
  const now = await statusesOf(git, Object.keys(before));
  git.world.files.writeAtomic(linked, JSON.stringify(now));
  return Object.entries(now).flatMap(([path, { digest, names }]): Warning[] => {
    const known = before[path];
    if (known === undefined || known.digest === digest) return [];
    const fresh = names.filter((name) => !known.names.includes(name));
    const what = fresh.length === 0 ? '' : ` (${nameFiles(fresh.slice(0, namesMax))})`;
    const message = `Your checkout ${path} changed while ${who} ran${what}. The workspace has a link to it.`;
    return [{ code: 'workspace', message }];
  });
}

/** Link targets that are repositories in which no session works. */
export function watchedRepositories(files: Files, state: GroupState, linked: readonly LinkedEntry[]): string[] {
  const used = new Set<string>();
  for (const one of state.sessions.values()) used.add(one.workspace?.path ?? checkoutOf(files, one));
  const targets = linked.map(({ target }) => target).filter((path) => files.entryKind(join(path, '.git')) !== null);
  return targets.filter((path) => !used.has(path)).slice(0, repositoriesMax);
}

const changedName = /^(?:1 (?:\S+ ){7}|2 (?:\S+ ){8}|u (?:\S+ ){9}|\? )(.+)$/s;

async function statusesOf(git: Git, paths: readonly string[]): Promise<Statuses> {
  const args = ['status', '--porcelain=v2', '--branch', '-z', '--untracked-files=normal', '--ignore-submodules=dirty'];
  const status = paths.map(
    async (path) => [path, await askOwn(git, path, args, { timeoutMs: statusTimeoutMs })] as const,
  );
  const entries = (await Promise.all(status)).flatMap(([path, asked]) => {
    if (!asked.ok || asked.value.exitCode !== 0) return [];
    const { stdout } = asked.value;
    // Ignore the effects of a fetch.
    const lines = stdout.split('\0').filter((line) => !/^# branch\.(?:upstream|ab) /.test(line));
    const names = lines.flatMap((line) => changedName.exec(line)?.[1] ?? []);
    return [[path, { digest: createHash('sha256').update(lines.join('\0')).digest('hex'), names }] as const];
  });
  return Object.fromEntries(entries);
}
