/** `doctor --worktrees`: worktrees and branches that sessions left behind. --fix never removes a branch. */
import { relative } from 'node:path';
import { type Advice, advise, shellWord } from '../../core/advice.ts';
import { defined } from '../../core/defined.ts';
import { describeFailure, type Failure, ok, type Result } from '../../core/failure.ts';
import type { GroupId, SessionId } from '../../core/group.ts';
import { isSessionId } from '../../core/id.ts';
import type { SessionRecord } from '../../core/session-state.ts';
import type { GroupState } from '../../core/state.ts';
import { nextGroupStatus } from '../../core/status.ts';
import { listNames } from '../../core/text.ts';
import { findRepository } from '../../git/git.ts';
import { ignoredOutput, ignoredSentence } from '../../git/leftover-files.ts';
import {
  discard,
  inspectWorktree,
  listBranches,
  partlyRemoved,
  type RemovalCandidate,
} from '../../git/worktrees/discard.ts';
import { checkoutsBelow } from '../../git/worktrees/levels.ts';
import { listWorktrees, repositoryDir, type Worktree } from '../../git/worktrees/worktree.ts';
import { groupIds, loadGroup } from '../../store/group-store.ts';
import { readMergeJournal } from '../../store/merge-journal.ts';
import {
  type GroupPaths,
  groupPaths,
  groupsFolder,
  mergeFolderName,
  workspaceName,
  worktreesFolder,
} from '../../store/paths.ts';
import type { World } from '../../system/world.ts';
import { titleOf } from '../../view/wording.ts';
import type { AppContext } from '../app-context.ts';
import { type Finding, finding, fine } from '../check/machine.ts';
import { readUserConfig } from '../config/user-config.ts';
import { changeGroup } from '../group-commands.ts';
import { lookAt, tryPath } from '../path-argument.ts';
import { catchWriteErrors } from '../removal.ts';
import type { GroupReference } from '../resolve.ts';
import { finishMerge } from './merge.ts';
import {
  cleanUpSessions,
  leftoverOf,
  leftoversOf,
  ownBranches,
  recoveryHint,
  removeAround,
  removeLeftover,
  whyKept,
} from './worktree-cleanup.ts';

const check = 'worktree';
const branchesShownMax = 20;

interface KnownGroup {
  readonly id: GroupId;
  readonly paths: GroupPaths;
  readonly state: GroupState | null;
  /** A process is working on the group, so unfinished files are not leftovers. */
  readonly isBusy: boolean;
}

interface Survey {
  readonly context: AppContext;
  readonly root: string;
  readonly fix: boolean;
  /** Folders for worktrees of sessions. */
  readonly worktrees: readonly string[];
  readonly groups: readonly KnownGroup[];
}

export async function checkWorktrees(context: AppContext, root: string, fix: boolean): Promise<Finding[]> {
  const { world } = context;
  const isThere = (id: GroupId): boolean => lookAt(world.files, groupPaths(root, id).folder).ok;
  const ids = groupIds(world, root).filter(isThere);
  const merges: Finding[] = [];
  // Merges first, because a finished merge changes what counts as merged.
  for (const groupId of ids) {
    const group = { root, groupId, paths: groupPaths(root, groupId) };
    merges.push(...(await lookedAt(group, () => checkMerge(context, group, fix))));
  }
  const groups = ids.map((id): KnownGroup => {
    const paths = groupPaths(root, id);
    const state = loadGroup(world, root, id);
    return { id, paths, state: state.ok ? state.value : null, isBusy: isBusy(world, paths) };
  });
  const ofUser = await readUserConfig(context);
  const chosen = ofUser.ok ? (ofUser.value.worktrees ?? []) : [];
  const survey: Survey = { context, root, fix, worktrees: [worktreesFolder(root), chosen].flat(), groups };
  const findings: Finding[] = [...merges];
  for (const group of groups.filter(({ isBusy }) => !isBusy))
    findings.push(...(await lookedAt(group, () => checkGroup(survey, group))));
  const repositories = repositoriesOf(survey);
  for (const repository of repositories) findings.push(...(await checkRepository(survey, repository)));
  const count = repositories.length === 1 ? '1 repository' : `${repositories.length} repositories`;
  return findings.length > 0 ? findings : [fine(check, `${count}, nothing left behind`)];
}

/** A system error in one group becomes its finding. */
async function lookedAt(group: Pick<GroupReference, 'paths'>, look: () => Promise<Finding[]>): Promise<Finding[]> {
  const looked = await catchWriteErrors(group, async () => ok(await look()));
  return looked.ok ? looked.value : [trouble('broken', looked.failure.message, looked.failure.next)];
}

/** A group whose lock cannot be read counts as busy. */
function isBusy({ locks }: World, { lock }: GroupPaths): boolean {
  const holder = tryPath(() => locks.holder(lock));
  return !holder.ok || holder.value !== null;
}

/** Repositories of all sessions and worktrees, and the current one, whose groups may be deleted. */
function repositoriesOf({ context, worktrees, groups }: Survey): string[] {
  const { files } = context.world;
  const named = groups.flatMap(({ state }) =>
    [...(state?.sessions.values() ?? [])].flatMap(({ definition, workspace }) => [
      definition.repository,
      workspace?.repository,
    ]),
  );
  const made = worktrees.flatMap((folder) => checkoutsBelow(files, folder));
  const found = made.map((path) => findRepository(files, path)?.repository);
  const cwd = tryPath(() => context.cwd);
  const here = cwd.ok ? findRepository(files, cwd.value)?.repository : undefined;
  const all = new Set([...named, ...found, here].flatMap((path) => path ?? []));
  return [...all].filter((path) => files.info(path)?.kind === 'folder').sort();
}

/** Reports an interrupted merge, or finishes it. */
async function checkMerge(context: AppContext, group: GroupReference, fix: boolean): Promise<Finding[]> {
  const journal = readMergeJournal(context.world, group.paths);
  if (!journal.ok) return [trouble('broken', journal.failure.message, journal.failure.next)];
  if (journal.value === null || isBusy(context.world, group.paths)) return [];
  const places = journal.value.scratches.map(({ path }) => path);
  const what = `A merge of ${group.groupId} was interrupted. Its scratch worktrees: ${places.join(', ')}.`;
  if (!fix) return [trouble('broken', what, advise('Finish or undo it with', ['doctor', '--worktrees', '--fix']))];
  const done = await changeGroup(context, group, { direct: (writer) => finishMerge(context, writer) });
  return [outcome(what, done)];
}

async function checkGroup(survey: Survey, group: KnownGroup): Promise<Finding[]> {
  const { context, fix } = survey;
  const { paths, state } = group;
  const findings: Finding[] = [];
  for (const record of state?.sessions.values() ?? []) {
    const found = record.workspace === undefined ? null : await checkWorkspace(survey, group, record);
    if (found !== null) findings.push(found);
  }
  // A session that will continue cleans up its own worktree; the others do not.
  const strays = (await leftoversOf(context, paths, state)).filter(
    ({ record }) => record === undefined || (record.workspace === undefined && state?.status === 'archived'),
  );
  for (const stray of state === null ? [] : strays) {
    const kept = whyKept(context, stray, 'keep-unmerged');
    const what = `The session of the worktree ${stray.candidate.path} is gone.`;
    if (kept !== null) findings.push(trouble('broken', `${what} ${kept}`, dropIt(stray.candidate)));
    else if (!fix) findings.push(trouble('broken', `${what} It holds nothing that is not merged.`, fixIt));
    else findings.push(outcome(what, await removeLeftover(context, paths, stray, 'keep-unmerged')));
  }
  return findings;
}

async function checkWorkspace(survey: Survey, group: KnownGroup, record: SessionRecord): Promise<Finding | null> {
  const { context, fix, root } = survey;
  const { files } = context.world;
  const { definition, workspace, mergedInto } = record;
  // An inherited worktree is checked with its own group.
  if (workspace === undefined || record.inherited !== undefined || group.state === null) return null;
  const { path: worktree } = workspace;
  const isLost = files.info(workspace.repository)?.kind !== 'folder';
  const isInterrupted = files.entryKind(partlyRemoved(worktree)) !== null;
  const isGone = files.entryKind(worktree) === null;
  if (!isLost && !isInterrupted && !isGone && mergedInto === undefined) return null;
  const leftover = await leftoverOf(context, group.paths, definition.id, record);
  // checkRegistered reports locked worktrees.
  if (leftover === null || (leftover.standing?.ok && leftover.standing.value.registered?.lock !== undefined))
    return null;
  // `group merge --keep-ignored` leaves this state.
  if (!isInterrupted && !isGone && leftover.ignored.length > 0) return null;
  const where = isGone ? 'is gone' : `is still there, merged into ${mergedInto}`;
  const state = isLost ? 'has lost its repository' : isInterrupted ? 'was half removed' : where;
  const what = `The worktree of ${titleOf(group.state, definition.id)} in ${group.id} ${state}.`;
  const why = whyKept(context, leftover, 'keep-unmerged');
  if (why !== null || nextGroupStatus(group.state.status, 'session_cleaned') === null) {
    const first = why === null || isLost ? '' : `${recoveryHint(group.state, leftover)}. `;
    return trouble('broken', why === null ? what : `${what} ${why}`, archiveIt(group, first));
  }
  if (!fix) return trouble('broken', what, fixIt);
  const reference = { root, groupId: group.id, paths: group.paths };
  const done = await changeGroup(context, reference, {
    direct: (writer) => cleanUpSessions(context, writer, [definition.id], { force: false }),
  });
  const kept = done.ok ? done.value.kept[0]?.why : describeFailure(done.failure);
  return kept === undefined ? fine(check, `${what} Removed.`) : trouble('broken', `${what} ${kept}`, archiveIt(group));
}

async function checkRepository(survey: Survey, repository: string): Promise<Finding[]> {
  const { context, groups } = survey;
  const listed = await listWorktrees(context, repositoryDir(repository));
  const branches = listed.ok ? await listBranches(context, repository, ownBranches) : listed;
  if (!listed.ok || !branches.ok) {
    const failure = listed.ok ? (branches as { failure: Failure }).failure : listed.failure;
    return [trouble('warning', `${repositoryDir(repository)} cannot be checked. ${failure.message}`, failure.next)];
  }
  const findings: Finding[] = [];
  for (const registered of listed.value) {
    const found = await checkRegistered(survey, repository, registered);
    if (found !== null) findings.push(found);
  }
  const records = groups.flatMap(({ state }) => [...(state?.sessions.values() ?? [])]);
  const owned = new Set(records.flatMap(({ workspace }) => workspace?.branch ?? []));
  const inUse = new Set(listed.value.flatMap(({ branch }) => branch ?? []));
  const stray = branches.value.filter((branch) => !owned.has(branch) && !inUse.has(branch));
  if (stray.length > 0) findings.push(strayBranches(repository, stray));
  return findings;
}

async function checkRegistered(survey: Survey, repository: string, registered: Worktree): Promise<Finding | null> {
  const { context, fix } = survey;
  const { files } = context.world;
  const owner = ownerOf(survey, registered.path);
  if (owner === null) return null;
  const { group, sessionId, top } = owner;
  const record = sessionId === undefined ? undefined : group?.state?.sessions.get(sessionId);
  if (registered.lock !== undefined) return lockedBy(registered, repository);
  // A busy group, or one with a damaged log, may still use the files.
  if (group?.isBusy || (group !== undefined && group.state === null)) return null;
  // Worktrees of known sessions were checked with the group.
  if (record !== undefined || (sessionId !== undefined && files.entryKind(registered.path) !== null)) return null;
  const candidate = { repository, path: registered.path, into: [] };
  const standing = await inspectWorktree(context, candidate);
  if (!standing.ok) return trouble('warning', `${registered.path}: ${standing.failure.message}`, standing.failure.next);
  const why = group === undefined ? 'whose group is gone' : 'that is not in use';
  // It is unknown which ignored files the session wrote.
  const ignored = standing.value.isReadable ? await ignoredOutput(context, registered.path) : ok([]);
  const held = ignored.ok && ignored.value.length > 0 ? ` ${ignoredSentence('It', ignored.value)}` : '';
  const what = `${repositoryDir(repository)} has a worktree ${why}: ${registered.path}.${held}`;
  const leftover = { sessionId: sessionId ?? '', title: '', candidate, standing, ignored: [] };
  const kept = whyKept(context, leftover, 'keep-branches');
  if (kept !== null) return trouble('broken', `${what} ${kept}`, dropIt(candidate));
  if (!fix) return trouble('broken', what, fixIt);
  const removed = await discard(context, candidate, standing.value, { withBranch: false });
  return outcome(what, removed.ok && top !== undefined ? removeAround(context, top) : removed);
}

interface Owner {
  readonly group?: KnownGroup;
  /** Absent = not the worktree of a session. */
  readonly sessionId?: SessionId;
  /** The folder of the session around the worktree. */
  readonly top?: string;
}

/** Null for a worktree of others. */
function ownerOf({ context, root, worktrees, groups }: Survey, path: string): Owner | null {
  const { files } = context.world;
  const below = (folder: string): string[] | undefined =>
    [folder, files.realPath(folder) ?? folder]
      .map((base) => relative(base, path))
      .find((inside) => inside !== '' && !inside.startsWith('..'))
      ?.split('/');
  const [groupId, , id = ''] = below(groupsFolder(root)) ?? [];
  if (groupId !== undefined) {
    const group = groups.find((one) => one.id === groupId);
    return defined({ group, sessionId: isSessionId(id) ? id : undefined });
  }
  for (const folder of worktrees) {
    const [name, ...rest] = below(folder) ?? [];
    if (name === undefined || rest.length === 0) continue;
    const top = path.slice(0, path.length - rest.join('/').length - 1);
    for (const group of groups) {
      const ids = new Set([...(group.state?.sessions.keys() ?? []), ...files.list(group.paths.sessions)]);
      const sessionId = [...ids].find((id) => isSessionId(id) && workspaceName(group.id, id) === name);
      if (sessionId !== undefined) return { group, sessionId, top };
      if (mergeFolderName(group.id) === name) return { group, top };
    }
    return { top };
  }
  return null;
}

function lockedBy({ path, lock }: Worktree, repository: string): Finding {
  const reason = lock === undefined || lock === '' ? '' : ` (${lock})`;
  const unlock = `${gitIn(repository)} worktree unlock ${shellWord(path)}`;
  return trouble('warning', `The worktree ${path} is locked${reason}, so it is never removed.`, `Unlock it: ${unlock}`);
}

function strayBranches(repository: string, branches: readonly string[]): Finding {
  const shown = branches.slice(0, branchesShownMax);
  const which = branches.length === 1 ? 'a branch' : `${branches.length} branches`;
  const remove = `${gitIn(repository)} branch -d ${shown.map(shellWord).join(' ')}`;
  const next = `Merge what you need; delete what is merged with: ${remove}`;
  return trouble(
    'warning',
    `${repositoryDir(repository)} has ${which} of sessions that are gone: ${listNames(branches, branchesShownMax)}.`,
    next,
  );
}

const gitIn = (repository: string): string => `git -C ${shellWord(repositoryDir(repository))}`;

const fixIt = advise('Remove it with', ['doctor', '--worktrees', '--fix']);

/** How to remove a worktree by hand. */
function dropIt({ repository, path }: Pick<RemovalCandidate, 'repository' | 'path'>): string {
  return `Save what you need, then: ${gitIn(repository)} worktree remove --force ${shellWord(path)}`;
}

function archiveIt({ id, state }: KnownGroup, first = ''): Advice {
  const isDone = state !== null && nextGroupStatus(state.status, 'session_cleaned') !== null;
  return isDone
    ? advise(`${first}Discard the rest with`, ['group', 'archive', id, '--force'])
    : advise(`${first}Finish the group, or delete it`, ['group', 'delete', id, '--force']);
}

function outcome(what: string, done: Result<unknown>): Finding {
  return done.ok
    ? fine(check, `${what} Fixed.`)
    : trouble('broken', `${what} ${done.failure.message}`, done.failure.next);
}

function trouble(level: Finding['level'], message: string, next: string | Advice): Finding {
  return finding(check, level, message, next);
}
