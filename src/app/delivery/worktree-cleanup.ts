/** Removes worktrees and branches of sessions. Unmerged work is kept, unless the user discards it. */
import { basename, dirname, join } from 'node:path';
import { advise, type CommandLine, commandText, shellWord } from '../../core/advice.ts';
import { defined } from '../../core/defined.ts';
import { describeFailure, fail, ok, type Result } from '../../core/failure.ts';
import type { GroupId, SessionId, Workspace } from '../../core/group.ts';
import { isSessionId } from '../../core/id.ts';
import type { SessionRecord } from '../../core/session-state.ts';
import type { GroupState } from '../../core/state.ts';
import { nextGroupStatus } from '../../core/status.ts';
import type { Git } from '../../git/git.ts';
import { ignoredOutput, ignoredSentence } from '../../git/leftover-files.ts';
import {
  discard,
  inspectWorktree,
  type RemovalCandidate,
  rescue,
  type WorktreeState,
} from '../../git/worktrees/discard.ts';
import { removeLevels, topOf } from '../../git/worktrees/levels.ts';
import { readIntent } from '../../git/worktrees/workspace.ts';
import { repositoryDir } from '../../git/worktrees/worktree.ts';
import { listGroups } from '../../store/group-store.ts';
import type { GroupWriter } from '../../store/group-writer.ts';
import {
  checkFolderName,
  type GroupPaths,
  groupPaths,
  type SessionPaths,
  sessionPaths,
  workspaceName,
} from '../../store/paths.ts';
import { systemFailure } from '../../store/system-failure.ts';
import { plural } from '../../view/format.ts';
import { safeLine } from '../../view/terminal-text.ts';
import { sessionTitle } from '../../view/wording.ts';
import {
  copiesOf,
  copyBack,
  freshFiles,
  type HandoverCopies,
  workNotPlaced,
} from '../../worker/prepare/handover-files.ts';
import { removeUpstreams } from '../../worker/prepare/workspace-links.ts';
import type { AppContext } from '../app-context.ts';
import { whileBusy } from '../live-runner.ts';
import { briefPath, tryPath } from '../path-argument.ts';

const namesShownMax = 3;
const noteColumns = 1000;

export type KeepPolicy =
  /** Keep worktree and branch of unmerged work. */
  | 'keep-unmerged'
  /** Keep worktrees with uncommitted work, and branches with unmerged commits. */
  | 'keep-branches'
  /** Commit uncommitted work to a branch first, and keep branches. */
  | 'keep-commits'
  /** Keep locked worktrees only. */
  | 'none';

export interface Leftover {
  readonly sessionId: SessionId;
  readonly title: string;
  readonly candidate: RemovalCandidate;
  readonly record?: SessionRecord;
  readonly standing: Result<WorktreeState> | null;
  /** Files that the session wrote and git ignores, relative to the worktree. */
  readonly ignored: readonly string[];
}

export interface CleanUpReport {
  readonly cleaned: SessionId[];
  readonly kept: { readonly sessionId: SessionId; readonly why: string }[];
  readonly notes: string[];
}

/**
 * Removes worktrees and branches of the sessions and logs that. `force` discards unmerged work; `keepIgnored` keeps
 * worktrees in which the session wrote ignored files. Can be repeated after an interruption. Fails with `write-failed`
 * if the log cannot be written.
 */
export async function cleanUpSessions(
  context: AppContext,
  writer: GroupWriter,
  sessionIds: readonly SessionId[],
  { force, keepIgnored = false }: CleanUpOptions,
): Promise<Result<CleanUpReport>> {
  const report: CleanUpReport = { cleaned: [], kept: [], notes: [] };
  const care = force ? 'none' : 'keep-unmerged';
  return whileBusy(context, 'Removing worktrees', async (say) => {
    for (const [index, sessionId] of sessionIds.entries()) {
      say(`Removing worktrees: session ${index + 1} of ${sessionIds.length}`);
      const leftover = await leftoverOf(context, writer.paths, sessionId, writer.state.sessions.get(sessionId));
      if (leftover === null) continue;
      const { ignored, candidate } = leftover;
      const holding = `${ignoredSentence('It', ignored)} They are in ${briefPath(candidate.path)}`;
      const kept = keepIgnored && ignored.length > 0 ? holding : whyKept(context, leftover, care);
      if (kept !== null) {
        report.kept.push({ sessionId, why: kept });
        continue;
      }
      const removed = await removeLeftover(context, writer.paths, leftover, care);
      if (!removed.ok) {
        report.kept.push({ sessionId, why: describeFailure(removed.failure) });
        continue;
      }
      const logged = recordCleaned(writer, sessionId);
      if (!logged.ok) return logged;
      report.cleaned.push(sessionId);
      report.notes.push(...removed.value);
    }
    return ok(report);
  });
}

export interface CleanUpOptions {
  readonly force: boolean;
  readonly keepIgnored?: boolean;
}

/** Logs nothing if the status of the group does not allow it: the group is about to be deleted or continued. */
export function recordCleaned(writer: GroupWriter, sessionId: SessionId): Result<void> {
  const { status, sessions } = writer.state;
  if (sessions.get(sessionId)?.workspace === undefined) return ok(undefined);
  if (nextGroupStatus(status, 'session_cleaned') === null) return ok(undefined);
  try {
    writer.record([{ type: 'session_cleaned', sessionId }]);
    return ok(undefined);
  } catch (error) {
    return { ok: false, failure: systemFailure(writer.paths.events, error) };
  }
}

export async function leftoversOf(
  context: AppContext,
  paths: GroupPaths,
  state: GroupState | null,
): Promise<Leftover[]> {
  const onDisk = context.world.files.list(paths.sessions).filter(isSessionId);
  const ids = new Set([...(state?.sessions.keys() ?? []), ...onDisk]);
  return whileBusy(context, 'Looking at worktrees', async (say) => {
    const found: Leftover[] = [];
    for (const [index, sessionId] of [...ids].entries()) {
      say(`Looking at worktrees: session ${index + 1} of ${ids.size}`);
      const leftover = await leftoverOf(context, paths, sessionId, state?.sessions.get(sessionId));
      if (leftover !== null) found.push(leftover);
    }
    return found;
  });
}

export interface Release {
  /** Commit uncommitted work first, instead of refusing. */
  readonly force: boolean;
  readonly command: CommandLine;
  /** Receives a sentence for everything kept or discarded, at once, because a later step may fail. */
  readonly tell: (note: string) => void;
}

/** Fails with `illegal-transition` and the work that would be lost. Changes nothing. */
export function checkReleasable(
  context: AppContext,
  leftovers: readonly Leftover[],
  { force, command }: Omit<Release, 'tell'>,
): Result<void> {
  const obstacle = firstObstacle(context, leftovers, careOf(force));
  if (obstacle === null) return ok(undefined);
  const next = force
    ? 'Nothing was deleted.'
    : advise('Commit or remove it there, or commit it to its branch and delete with', [...command, '--force']);
  const { title, why } = obstacle;
  return fail('illegal-transition', `The worktree of ${title} cannot be removed. ${why}`, next);
}

/** Why not all of the worktrees can be removed; null = they can. */
export function firstObstacle(context: AppContext, leftovers: readonly Leftover[], care: KeepPolicy) {
  const kept = leftovers.map((leftover) => ({ leftover, why: whyKept(context, leftover, care) }));
  const [first, ...others] = kept.filter(({ why }) => why !== null);
  if (first === undefined) return null;
  const rest = others.length === 0 ? '' : ` The same applies to ${plural(others.length, 'more session')}.`;
  return { leftover: first.leftover, title: first.leftover.title, why: `${first.why}${rest}` };
}

const careOf = (force: boolean): KeepPolicy => (force ? 'keep-commits' : 'keep-branches');

/**
 * Removes all worktrees in a folder that is about to be deleted. Uses git, so that no repository keeps a stale entry.
 * Checks everything before it removes anything; fails as checkReleasable does. Keeps branches with unmerged commits.
 */
export async function releaseWorktrees(
  context: AppContext,
  paths: GroupPaths,
  leftovers: readonly Leftover[],
  release: Release,
): Promise<Result<void>> {
  const possible = checkReleasable(context, leftovers, release);
  if (!possible.ok) return possible;
  return whileBusy(context, 'Removing worktrees', async (say) => {
    for (const [index, leftover] of leftovers.entries()) {
      say(`Removing worktree ${index + 1} of ${leftovers.length}`);
      const removed = await removeLeftover(context, paths, leftover, careOf(release.force), release.tell);
      if (!removed.ok) return removed;
      for (const note of removed.value) release.tell(note);
    }
    return ok(undefined);
  });
}

export async function leftoverOf(
  context: AppContext,
  paths: GroupPaths,
  sessionId: SessionId,
  record: SessionRecord | undefined,
): Promise<Leftover | null> {
  const candidate = await candidateOf(context, paths, sessionId, record);
  if (candidate === null) return null;
  const isGone = context.world.files.info(candidate.repository)?.kind !== 'folder';
  const standing = isGone ? null : await inspectWorktree(context, candidate);
  const { ignoredBefore } = sessionPaths(paths, sessionId);
  const ignored =
    standing?.ok === true && standing.value.isReadable
      ? await ignoredOutput(context, candidate.path, ignoredBefore)
      : ok([]);
  return {
    sessionId,
    title: sessionTitle(sessionId, record?.definition.name),
    candidate,
    ...defined({ record }),
    standing,
    ignored: ignored.ok ? ignored.value : [],
  };
}

/** Prefix of the branches of sessions. No other branch is ever deleted. */
export const ownBranches = 'cca/';

/** From the log, else from the intent file, which is written before the worktree is created. */
async function candidateOf(
  context: AppContext,
  paths: GroupPaths,
  sessionId: SessionId,
  record: SessionRecord | undefined,
): Promise<RemovalCandidate | null> {
  const { files } = context.world;
  // A branch of another group belongs to this group once the other group is deleted.
  const maker = record?.inherited && groupPaths(dirname(dirname(paths.folder)), record.inherited.groupId).folder;
  const own = maker === undefined || files.entryKind(maker) === null ? record?.workspace : undefined;
  const known = own ?? readIntent(files, sessionPaths(paths, sessionId).workspace);
  if (known === null) return null;
  return {
    repository: known.repository,
    path: known.path,
    base: known.base,
    // Keep branches that another group uses, and branches without our prefix.
    ...(known.branch.startsWith(ownBranches) && namedElsewhere(context, paths, known) === null
      ? { branch: known.branch }
      : {}),
    fresh: await freshHandover(context, record, sessionPaths(paths, sessionId)),
    into: [...new Set([record?.mergedInto, known.target].flatMap((name) => name ?? []))],
  };
}

export function whyKept(
  context: AppContext,
  { candidate, record, standing }: Leftover,
  care: KeepPolicy,
): string | null {
  const { path, repository } = candidate;
  if (record?.state.status === 'running') return 'The session is running.';
  const cwd = tryPath(() => context.cwd);
  if (cwd.ok && (cwd.value === path || cwd.value.startsWith(`${path}/`)))
    return 'It is the current folder; leave it first.';
  const isForced = care === 'none' || care === 'keep-commits';
  if (standing === null) {
    if (isForced || context.world.files.entryKind(path) === null) return null;
    const why = repository === '' ? 'It belongs to no repository' : `Its repository ${briefPath(repository)} is gone`;
    return `${why}, so its unsaved work cannot be checked.`;
  }
  if (!standing.ok) return describeFailure(standing.failure);
  const { registered, exists, isReadable, uncommitted, loose, looseTips, submodules } = standing.value;
  if (registered?.lock !== undefined) {
    const reason = registered.lock === '' ? '' : ` (${registered.lock})`;
    return `It is locked${reason}; unlock it with: git worktree unlock ${shellWord(registered.path)}`;
  }
  if (isForced) return null;
  if (exists && !isReadable) return 'Git no longer knows its folder, so its unsaved work cannot be checked.';
  if (uncommitted.length > 0) {
    const shown = uncommitted.slice(0, namesShownMax).join(', ');
    return `It holds ${plural(uncommitted.length, 'file')} with uncommitted changes: ${shown}.`;
  }
  if (loose > 0) return `${countOf(loose, 'commit')} only in it, on no branch: ${looseTips.map(short).join(', ')}.`;
  if (submodules) return 'It holds submodules with commits that were not pushed from there.';
  return care === 'keep-unmerged' ? whyUnmerged(candidate, standing.value) : null;
}

function whyUnmerged({ branch, into }: RemovalCandidate, { unmerged }: WorktreeState): string | null {
  if (unmerged === 0) return null;
  const where = into.length > 0 ? `in ${into.join(' or ')}` : 'in the branch of the project';
  const verb = unmerged === 1 ? 'is' : 'are';
  return `${plural(unmerged, 'commit')} of ${branch} ${verb} neither ${where} nor in a remote branch.`;
}

const short = (commit: string): string => commit.slice(0, 12);

function countOf(count: number, noun: string): string {
  return `${plural(count, noun)} ${count === 1 ? 'is' : 'are'}`;
}

/**
 * Removes the worktree and branch of a session for which `whyKept` returned null. Returns sentences about what was kept
 * and discarded. `tell` receives at once what was saved, and which uncommitted files will be lost. Can be repeated.
 */
export async function removeLeftover(
  context: AppContext,
  paths: GroupPaths,
  leftover: Leftover,
  care: KeepPolicy,
  tell: (note: string) => void = (note) => context.notes.line(safeLine(note, noteColumns)),
): Promise<Result<readonly string[]>> {
  const { sessionId, record } = leftover;
  const { files } = context.world;
  const { workspace, setupDone, ignoredBefore, upstream, linked } = sessionPaths(paths, sessionId);
  if (care !== 'none' && leftover.standing?.ok && leftover.standing.value.isReadable) {
    const kept = await keepHandover(context, record, sessionPaths(paths, sessionId));
    if (!kept.ok) return kept;
  }
  const { title, ignored } = leftover;
  if (ignored.length > 0) tell(`${ignoredSentence(`The worktree of ${title}`, ignored)} They are removed with it.`);
  const settled = await saveFirst(context, leftover, care, tell);
  if (!settled.ok) return settled;
  const removed = await removeWorktree(context, leftover, settled.value, care);
  if (!removed.ok) return removed;
  const top = topOf(leftover.candidate.path, workspaceName(basename(paths.folder), sessionId));
  const dropped = await removeUpstreams(context, { upstream });
  if (!dropped.ok) return dropped;
  const check = top === null ? '' : join(dirname(top), checkFolderName(basename(paths.folder), sessionId));
  if (check !== '' && files.entryKind(check) !== null) removeAround(context, check);
  const around = top === null ? ok([]) : removeAround(context, top);
  if (!around.ok) return around;
  try {
    // A later attempt creates and sets up a new worktree.
    for (const path of [workspace, setupDone, ignoredBefore, upstream, linked]) files.remove(path);
  } catch (error) {
    return { ok: false, failure: systemFailure(workspace, error) };
  }
  return ok([...removed.value, ...around.value]);
}

/** Removes the folders of the workspace around a removed worktree. Returns sentences about what was kept. */
export function removeAround({ world: { files } }: Pick<AppContext, 'world'>, top: string): Result<string[]> {
  try {
    return ok(removeLevels(files, top).map((path) => `Kept, because it is not part of any work: ${path}`));
  } catch (error) {
    return { ok: false, failure: systemFailure(top, error) };
  }
}

/** With `keep-commits`, commits uncommitted work to a branch. Null if the repository is gone. */
async function saveFirst(
  context: AppContext,
  { candidate, standing, title }: Leftover,
  care: KeepPolicy,
  tell: (note: string) => void,
): Promise<Result<WorktreeState | null>> {
  const known = standing?.ok === true ? standing.value : null;
  if (known === null || care !== 'keep-commits') return ok(known);
  const rescued = await rescue(context, candidate, known, title);
  if (!rescued.ok) {
    const cure = `Save what you need, then remove it with: git worktree remove --force ${shellWord(candidate.path)}`;
    const message = `The worktree of ${title} was kept, because its work cannot be committed.`;
    return fail(rescued.failure.reason, `${message} ${describeFailure(rescued.failure)}`, cure);
  }
  for (const note of rescued.value.notes) tell(note);
  return ok(rescued.value.status);
}

async function removeWorktree(
  context: AppContext,
  { candidate, title }: Leftover,
  standing: WorktreeState | null,
  care: KeepPolicy,
): Promise<Result<readonly string[]>> {
  if (standing === null) {
    const isThere = context.world.files.entryKind(candidate.path) !== null;
    const removed = await discard(context, candidate, null, { withBranch: false });
    if (!removed.ok) return removed;
    return ok(isThere ? [`Discarded: the folder of ${title}, whose repository is gone.`] : []);
  }
  const { elsewhere, unmerged, tip } = standing;
  const stays = elsewhere !== null || (unmerged > 0 && (care === 'keep-branches' || care === 'keep-commits'));
  const removed = await discard(context, candidate, standing, { withBranch: !stays });
  if (!removed.ok) return removed;
  if (!stays || tip === null) return ok([]);
  const why = elsewhere === null ? `${countOf(unmerged, 'commit')} not merged` : `it is checked out in ${elsewhere}`;
  const where = briefPath(candidate.repository);
  return ok([`The branch ${candidate.branch} stays in ${where} at ${tip.slice(0, 12)}: ${why}.`]);
}

/** Copies handover files into the project. Fails with `illegal-transition` if they would be lost. */
async function keepHandover(git: Git, record: SessionRecord | undefined, paths: SessionPaths): Promise<Result<void>> {
  const copies = copiesIn(git, record, paths);
  const [trouble] = copies === null ? [] : (await copyBack(git, copies)).troubles;
  if (copies === null || trouble === undefined) return ok(undefined);
  const message = `The handover files of the session cannot be saved: ${trouble}`;
  return fail('illegal-transition', message, `See the files in ${copies.top}, and save or remove them.`);
}

/** Handover files that the session wrote, relative to the worktree. */
async function freshHandover(
  git: Git,
  record: SessionRecord | undefined,
  paths: SessionPaths,
): Promise<readonly string[]> {
  const copies = copiesIn(git, record, paths);
  return copies === null ? [] : [...freshFiles(git, copies), ...(await workNotPlaced(git, copies))];
}

function copiesIn(git: Git, record: SessionRecord | undefined, paths: SessionPaths): HandoverCopies | null {
  const { workspace } = record ?? {};
  if (record === undefined || workspace === undefined) return null;
  return git.world.files.info(workspace.folder)?.kind === 'folder' ? copiesOf(record, paths, workspace) : null;
}

/** Another group than `own` that uses the branch, or null. */
export function namedElsewhere(
  { world }: Pick<AppContext, 'world'>,
  own: GroupPaths,
  { repository, branch }: Pick<Workspace, 'repository' | 'branch'>,
): GroupId | null {
  const root = dirname(dirname(own.folder));
  const found = listGroups(world, root).find(({ id, meta }) => {
    if (id === basename(own.folder)) return false;
    // Of a damaged group, use the part of the log that can be read.
    if (meta === undefined) return world.files.readText(groupPaths(root, id).events)?.includes(JSON.stringify(branch));
    return (meta.inheritedBranches ?? []).some((one) => one.branch === branch && one.repository === repository);
  });
  return found?.id ?? null;
}

/** How to merge the unmerged work of a session: the beginning of a sentence. */
export function recoveryHint(
  { group, status, sessions }: GroupState,
  { candidate, record, standing }: Leftover,
): string {
  const { branch, repository } = candidate;
  const isOpen = nextGroupStatus(status, 'group_merged') !== null;
  const isPartial = [...sessions.values()].some(({ state }) => state.status !== 'completed');
  const merge =
    isOpen && record?.state.status === 'completed' && record.isolated === true
      ? commandText(['group', 'merge', group.id, ...(isPartial ? ['--partial'] : [])])
      : `git -C ${shellWord(repositoryDir(repository))} merge ${shellWord(branch ?? '<its branch>')}`;
  const isCommitted = standing?.ok === true && standing.value.uncommitted.length === 0;
  return isCommitted
    ? `Merge it with "${merge}"`
    : `Commit it on its branch in ${briefPath(candidate.path)}, then merge that with "${merge}"`;
}
