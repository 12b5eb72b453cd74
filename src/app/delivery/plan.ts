/** Plans a merge: which work goes into which branch of which repository, in which order. */
import { advise, shellWord } from '../../core/advice.ts';
import { defined } from '../../core/defined.ts';
import { fail, ok, type Result } from '../../core/failure.ts';
import type { Changes, SessionId, Workspace } from '../../core/group.ts';
import { quoted } from '../../core/id.ts';
import { groupAdvice, runCommand } from '../../core/plan/advice.ts';
import { planOf } from '../../core/plan/plan.ts';
import type { SessionRecord } from '../../core/session-state.ts';
import type { GroupState } from '../../core/state.ts';
import { nextGroupStatus } from '../../core/status.ts';
import { listNames } from '../../core/text.ts';
import { changedPrograms } from '../../git/diff.ts';
import { type Git, isWorktreeOf } from '../../git/git.ts';
import { isAncestor, nameFiles, runOwn } from '../../git/run-git.ts';
import { uncommittedIn } from '../../git/stage.ts';
import { tipOf } from '../../git/target.ts';
import { quotedNames, repositoryDir } from '../../git/worktrees/worktree.ts';
import { safeLine } from '../../view/terminal-text.ts';
import { sessionTitle, titleOf } from '../../view/wording.ts';
import type { AppContext } from '../app-context.ts';

export interface RepositoryPlan {
  readonly repository: string;
  readonly into: string;
  /** In graph order. */
  readonly items: readonly MergeItem[];
}

export interface MergePlan {
  readonly repositories: readonly RepositoryPlan[];
  readonly leftOut: readonly LeftOut[];
  readonly merged: readonly SessionId[];
  readonly mergedInto: readonly string[];
  readonly titles: ReadonlyMap<SessionId, string>;
}

export interface MergeSelection {
  /** The target branch in every repository; absent = the branch that was checked out when the work started. */
  readonly into?: string;
  /** Leave out sessions that are not completed. */
  readonly partial: boolean;
  /** Only these sessions, and what their work was built on; implies `partial`. Absent = all. */
  readonly only?: readonly SessionId[];
}

export function warnOnce({ notes }: Pick<AppContext, 'notes'>, text: string): void {
  notes.line(safeLine(text, 1000));
}

/** Fails with `illegal-transition` (the group is running or archived), `usage` and `worktree-failed`. */
export async function planMerge(git: Git, state: GroupState, options: MergeSelection): Promise<Result<MergePlan>> {
  const allowed = checkStatus(state);
  if (!allowed.ok) return allowed;
  const { only } = options;
  const order = planOf(state).graph.order.filter((id) => only?.includes(id) ?? true);
  const records = order.flatMap((id) => state.sessions.get(id) ?? []);
  const unfinished = records.filter((record) => record.mergedInto === undefined && record.state.status !== 'completed');
  if (unfinished.length > 0 && !options.partial && only === undefined) return notComplete(state, unfinished);
  const merged: SessionRecord[] = [];
  const elsewhere: SessionRecord[] = [];
  const leftOut: LeftOut[] = [];
  const items = new Map<string, MergeItem[]>();
  for (const record of records) {
    const { workspace, mergedInto } = record;
    if (mergedInto === undefined && workspace !== undefined && isRepositoryGone(git, workspace.repository)) {
      const message = `The repository ${repositoryDir(workspace.repository)} is gone.`;
      return fail('usage', message, 'Restore it, then merge again.');
    }
    const found =
      mergedInto === undefined
        ? await mergeItemOf(git, record)
        : await mergeItemSince(git, record, options.into ?? mergedInto);
    if (!found.ok) return found;
    if (found.value === null) merged.push(record);
    else if (found.value === 'elsewhere') elsewhere.push(record);
    else if ('why' in found.value) leftOut.push(found.value);
    else {
      const { repository, base } = found.value.workspace;
      const programs = await changedPrograms(git, repositoryDir(repository), { from: base, to: found.value.source });
      if (!programs.ok) return programs;
      items.set(repository, [...(items.get(repository) ?? []), { ...found.value, programs: programs.value }]);
    }
  }
  if (elsewhere.length > 0 && options.into !== undefined) return mergedElsewhere(elsewhere, options.into);
  const repositories: RepositoryPlan[] = [];
  for (const [repository, work] of items) {
    const into = branchFor(repository, work, options.into);
    if (!into.ok) return into;
    repositories.push({ repository, into: into.value, items: work });
  }
  return ok({
    repositories,
    leftOut,
    merged: merged.map(({ definition }) => definition.id),
    mergedInto: [...new Set(merged.flatMap(({ mergedInto }) => options.into ?? mergedInto ?? []))],
    titles: new Map([...state.sessions.keys()].map((id) => [id, titleOf(state, id)])),
  });
}

function checkStatus(state: GroupState): Result<void> {
  const { status, group } = state;
  if (nextGroupStatus(status, 'group_merged') !== null) return ok(undefined);
  return fail(
    'illegal-transition',
    `Group ${group.id} is ${status}, so its work cannot be merged.`,
    status === 'running'
      ? advise('Its runner is gone. Finish it with', runCommand(state))
      : 'Its remaining work is on branches that begin with cca/. Merge them with git merge.',
  );
}

function notComplete(state: GroupState, unfinished: readonly SessionRecord[]): Result<never> {
  const { group, sessions } = state;
  const titles = unfinished.map(({ definition, state: { status } }) => {
    return `${sessionTitle(definition.id, definition.name)} (${status})`;
  });
  const more = titles.length > 10 ? ` and ${titles.length - 10} more` : '';
  const which =
    sessions.size === 1
      ? `The only session of ${group.id} is`
      : `${titles.length} of ${sessions.size} sessions of ${group.id} ${titles.length === 1 ? 'is' : 'are'}`;
  const next = groupAdvice(state);
  return fail('usage', `${which} not completed: ${titles.slice(0, 10).join(', ')}${more}.`, {
    ...next,
    sentence: `Give --partial to merge the completed sessions. ${next.sentence}`,
  });
}

function branchFor(repository: string, items: readonly MergeItem[], into: string | undefined): Result<string> {
  if (into !== undefined && !sessionBranch.test(into)) return ok(into);
  if (into !== undefined) {
    const message = `${quoted(into)} has the name of a session's own branch.`;
    return fail('usage', message, 'Name a branch of your own with --into.');
  }
  const [first, ...others] = new Set(items.flatMap(({ target }) => target ?? []));
  const repositoryName = repositoryDir(repository);
  if (first === undefined) {
    const message = `No branch was checked out in ${repositoryName} when the work began, so there is no target.`;
    return fail('usage', message, 'Name the branch with --into.');
  }
  if (others.length === 0) return ok(first);
  const message = `The work in ${repositoryName} has several target branches: ${quotedNames([first, ...others])}.`;
  return fail('usage', message, `Name one of them with --into, such as --into ${quoted(first)}.`);
}

/** The pattern of session branches, which are no targets: merged work would count as the work of that session. */
const sessionBranch = /^cca\/[^/]+\/\d{3,}(?:-|$)/;

/** True if work was left out that the user did not ask to leave out. */
export function isIncomplete({ leftOut, merged, repositories }: MergePlan, isAnyDone: boolean): boolean {
  if (leftOut.some(({ work }) => work === 'uncommitted')) return true;
  if (repositories.some(({ items }) => items.some(({ uncommitted }) => uncommitted.length > 0))) return true;
  return !isAnyDone && merged.length === 0 && leftOut.some(({ work }) => work === 'elsewhere');
}

export function leftOutLines({ leftOut, repositories }: MergePlan): string[] {
  const rests = repositories.flatMap(({ items }) => items.filter(({ uncommitted }) => uncommitted.length > 0));
  return [
    ...leftOut.map(({ title, why }) => `Left out: ${title} ${why}.`),
    ...rests.map((item) => `Only its commits: ${titleOfItem(item)} ${holding(item.uncommitted)}.`),
    ...repositories.flatMap(({ items }) =>
      items.flatMap((item) => {
        const sentence = programsSentence(item.programs ?? []);
        return sentence === null ? [] : [`${titleOfItem(item)}: ${sentence}`];
      }),
    ),
  ];
}

const titlesShown = 5;

/** Always fails, with the branch that has the work and the commands that merge it into `into`. */
function mergedElsewhere(records: readonly SessionRecord[], into: string): Result<never> {
  const places = records.map(({ workspace, definition, mergedInto = '' }) => {
    const repositoryName = repositoryDir(workspace?.repository ?? definition.repository ?? '');
    const git = `git -C ${shellWord(repositoryName)}`;
    const merge = `${git} checkout ${shellWord(into)} && ${git} merge ${shellWord(mergedInto)}`;
    return { where: `${quoted(mergedInto)} of ${repositoryName}`, merge };
  });
  const titles = records.map((record) => titleOfItem({ record }));
  const who = listNames(titles, titlesShown);
  const where = [...new Set(places.map((one) => one.where))].join(' and ');
  const commands = [...new Set(places.map(({ merge }) => merge))].join(' && ');
  const message = `${who}: already merged into ${where}, but not into ${quotedNames([into])}.`;
  return fail('usage', message, `Merge it from there: ${commands}`);
}

export interface MergeItem {
  readonly record: SessionRecord;
  readonly workspace: Workspace;
  readonly work: Changes;
  readonly source: string;
  /** The default target branch; absent = no branch was checked out. */
  readonly target?: string;
  /** Uncommitted files of a session that was not to commit its work. */
  readonly uncommitted: readonly string[];
  /** Changed files from which claude or this program starts commands; set by the plan. */
  readonly programs?: readonly string[];
}

export interface LeftOut {
  readonly sessionId: SessionId;
  readonly title: string;
  readonly why: string;
  /** `none`: no work. `elsewhere`: work that cannot be merged. `uncommitted`: the user has to commit it first. */
  readonly work: 'none' | 'elsewhere' | 'uncommitted';
}

export function programsSentence(files: readonly string[]): string | null {
  if (files.length === 0) return null;
  return `Review before you run anything: it changes ${quotedNames(files)}, which can start programs.`;
}

export function titleOfItem({ record }: Pick<MergeItem, 'record'>): string {
  return sessionTitle(record.definition.id, record.definition.name);
}

/** For a session of which nothing was merged yet. Fails with git's reason, or if its work is gone. */
async function mergeItemOf(git: Git, record: SessionRecord): Promise<Result<MergeItem | LeftOut>> {
  const { state, workspace, isolated } = record;
  const leave = (why: string, waits: LeftOut['work']) => ok(leaveOut(record, why, waits));
  if (state.status !== 'completed') {
    return leave(`is not completed (${state.status})`, state.status === 'pending' ? 'none' : 'elsewhere');
  }
  if (isolated !== true)
    return leave('worked in the project folder itself (use --isolate worktree to get a branch)', 'elsewhere');
  if (workspace === undefined) return leave('no longer has a worktree or branch', 'none');
  const { work } = state;
  if (work === undefined) return leave('left no commit', 'none');
  const source = await sourceOf(git, record, workspace, work);
  if (!source.ok) return source;
  const isEmpty = source.value === workspace.base;
  const uncommitted = isEmpty || record.definition.commit === false ? await uncommittedOf(git, workspace) : ok([]);
  if (!uncommitted.ok) return uncommitted;
  if (isEmpty && uncommitted.value.length > 0) return leave(holding(uncommitted.value), 'uncommitted');
  const goal = defined({ target: workspace.target });
  return ok({ record, workspace, work, source: source.value, uncommitted: uncommitted.value, ...goal });
}

function leaveOut(record: SessionRecord, why: string, work: LeftOut['work']): LeftOut {
  return { sessionId: record.definition.id, title: titleOfItem({ record }), why, work };
}

/** New work of a merged session. Null = none; `elsewhere` = only another branch than `into` has its work. */
async function mergeItemSince(
  git: Git,
  record: SessionRecord,
  into: string,
): Promise<Result<MergeItem | LeftOut | 'elsewhere' | null>> {
  const { state, workspace, definition, mergedInto } = record;
  const isThere = into === mergedInto;
  const repository = workspace?.repository ?? definition.repository;
  const work = state.status === 'completed' ? state.work : undefined;
  if (work === undefined || repository === undefined) return ok(null);
  if (isRepositoryGone(git, repository)) return ok(isThere ? null : 'elsewhere');
  const target = await tipOf(git, repository, into);
  if (!target.ok) return target;
  // If the branch that contained the work is gone, nothing is missing in it.
  if (target.value === null && isThere) return ok(null);
  const tip = workspace === undefined ? ok(null) : await tipOf(git, repository, workspace.branch);
  if (!tip.ok) return tip;
  if (workspace === undefined || tip.value === null) {
    const known = await holds(git, repository, target.value, work.commit);
    if (!known.ok || known.value) return known.ok ? ok(null) : known;
    if (!isThere) return ok('elsewhere');
    const isKept = await holds(git, repository, work.commit, work.commit);
    if (!isKept.ok) return isKept;
    const isUndone = isKept.value && !(await holdsCopies(git, repository, target.value ?? '', work.commit));
    return ok(isUndone ? undone(record, repository, work.commit) : null);
  }
  const uncommitted = definition.commit === false ? await uncommittedOf(git, workspace) : ok([]);
  if (!uncommitted.ok) return uncommitted;
  const known = await holds(git, repository, target.value, tip.value);
  if (!known.ok) return known;
  if (!known.value)
    return ok({ record, workspace, work, source: tip.value, uncommitted: uncommitted.value, target: into });
  return ok(uncommitted.value.length === 0 ? null : leaveOut(record, holding(uncommitted.value), 'uncommitted'));
}

/** The user rebased the branch: it has the same changes in other commits. */
async function holdsCopies(git: Git, repository: string, tip: string, commit: string): Promise<boolean> {
  const listed = await runOwn(git, repositoryDir(repository), ['cherry', tip, commit]);
  return listed.ok && !/^\+/m.test(listed.value);
}

/** The user reset the branch. */
function undone(record: SessionRecord, repository: string, commit: string): LeftOut {
  const again = `git -C ${shellWord(repositoryDir(repository))} merge ${commit.slice(0, 12)}`;
  const into = quoted(record.mergedInto ?? '');
  return leaveOut(record, `was merged, but ${into} no longer has its commit; merge it again with: ${again}`, 'none');
}

/** False if the repository has lost the commit. */
async function holds(git: Git, repository: string, tip: string | null, commit: string): Promise<Result<boolean>> {
  if (tip === null) return ok(false);
  const known = await isAncestor(git, repositoryDir(repository), commit, commit);
  return known.ok ? isAncestor(git, repositoryDir(repository), commit, tip) : ok(false);
}

export function isRepositoryGone({ world }: Git, repository: string): boolean {
  return world.files.info(repository)?.kind !== 'folder';
}

export function holding(files: readonly string[]): string {
  return `holds uncommitted work: ${nameFiles(files)}; commit it on its branch and merge again`;
}

/** Paths relative to the worktree, without our own files; empty without a worktree. */
export async function uncommittedOf(git: Git, workspace: Workspace): Promise<Result<readonly string[]>> {
  if (!isWorktreeOf(git.world.files, workspace.repository, workspace.path)) return ok([]);
  const uncommitted = await uncommittedIn(git, workspace.path);
  return uncommitted.ok ? ok([...uncommitted.value.files, ...uncommitted.value.repositories]) : uncommitted;
}

/** The branch as it is now, because users resolve conflicts on it; the commit if the branch is gone or behind. */
export async function sourceOf(
  git: Git,
  record: SessionRecord,
  { repository, branch }: Workspace,
  { commit }: Changes,
): Promise<Result<string>> {
  const tip = await tipOf(git, repository, branch);
  if (!tip.ok) return tip;
  if (tip.value === commit) return ok(commit);
  if (tip.value === null) {
    const known = await isAncestor(git, repositoryDir(repository), commit, commit);
    if (known.ok) return ok(commit);
    return fail(
      'worktree-failed',
      `The branch ${branch} of ${titleOfItem({ record })} and its commit ${commit} are gone.`,
      `Look for it with "git -C ${repositoryDir(repository)} fsck --lost-found", or remove the session.`,
    );
  }
  const isBehind = await isAncestor(git, repositoryDir(repository), tip.value, commit);
  if (!isBehind.ok) return isBehind;
  return ok(isBehind.value ? commit : tip.value);
}
