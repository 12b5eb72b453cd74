/** `group merge`: merges and accepts all work in scratch worktrees, then moves the branches. */

import { dirname } from 'node:path';
import type { MergedRepository } from '../../core/event.ts';
import { type Failure, fail, ok, type Result } from '../../core/failure.ts';
import type { SessionId } from '../../core/group.ts';
import type { Git } from '../../git/git.ts';
import { ignoredSentence } from '../../git/leftover-files.ts';
import {
  checkRoom,
  checkRoomBefore,
  checkTarget,
  type MergeTarget,
  readTarget,
  type Settlement,
  settleMoves,
} from '../../git/target.ts';
import { repositoryDir } from '../../git/worktrees/worktree.ts';
import { readLog } from '../../store/event-log.ts';
import type { GroupWriter } from '../../store/group-writer.ts';
import {
  hasMergeJournal,
  type MergeJournal,
  type Move,
  readMergeJournal,
  removeMergeJournal,
  writeMergeJournal,
} from '../../store/merge-journal.ts';
import { type GroupPaths, worktreesFolder } from '../../store/paths.ts';
import { systemFailure } from '../../store/system-failure.ts';
import { plural } from '../../view/format.ts';
import type { AppContext } from '../app-context.ts';
import { readUserConfig } from '../config/user-config.ts';
import { changeGroup } from '../group-commands.ts';
import { liveRunner } from '../live-runner.ts';
import type { GroupReference } from '../resolve.ts';
import { clearScratches, MergeSandbox, markedGit, type SandboxMerge, waitForGitExit } from './merge-sandbox.ts';
import {
  type MergeItem,
  type MergePlan,
  type MergeSelection,
  planMerge,
  type RepositoryPlan,
  titleOfItem,
  warnOnce,
} from './plan.ts';
import { type CleanUpReport, cleanUpSessions, leftoverOf } from './worktree-cleanup.ts';

export interface MergeOptions extends MergeSelection {
  readonly dryRun: boolean;
  /** Keep worktrees in which sessions wrote ignored files. */
  readonly keepIgnored?: boolean;
}

export interface Prepared {
  readonly plan: RepositoryPlan;
  readonly target: MergeTarget;
}

export interface MergeReport {
  readonly outcome: 'merged' | 'nothing' | 'planned' | 'interrupted';
  readonly mergePlan: MergePlan;
  readonly prepared: readonly Prepared[];
  readonly moves: readonly Move[];
  /** Sessions whose work the branch already contained. */
  readonly contained: ReadonlySet<SessionId>;
  readonly cleanUp: CleanUpReport;
  readonly notes: readonly string[];
}

const noCleanUp: CleanUpReport = { cleaned: [], kept: [], notes: [] };

/**
 * The caller holds the lock. Fails with `usage` (nothing was tried), or with `merge-conflict`, `not-accepted`,
 * `setup-failed`, `worktree-failed` and `write-failed`: no branch moved, or the next command completes the moves.
 */
export async function mergeGroup(
  context: AppContext,
  writer: GroupWriter,
  options: MergeOptions,
): Promise<Result<MergeReport>> {
  const begun = await beginMerge(context, writer, options);
  if (!begun.ok) return begun;
  const { bench, mergePlan } = begun.value;
  const prepared = await prepare(bench, mergePlan, options.dryRun);
  if (!prepared.ok) return prepared;
  const report = {
    outcome: 'nothing' as MergeReport['outcome'],
    mergePlan,
    prepared: prepared.value,
    moves: [],
    contained: new Set<SessionId>(),
    cleanUp: noCleanUp,
    notes: [],
  };
  if (options.dryRun) {
    const notes = options.keepIgnored === true ? [] : await ignoredNotes(context, writer, prepared.value);
    return ok({ ...report, notes, outcome: prepared.value.length === 0 ? 'nothing' : 'planned' });
  }
  if (prepared.value.length === 0) return tidied(context, writer, report, options);
  const merged = await bench.whileListening(() => mergeAll(writer, bench, prepared.value));
  if (bench.isInterrupted && (!merged.ok || merged.value === null)) return ok({ ...report, outcome: 'interrupted' });
  if (!merged.ok) return merged;
  return tidied(context, writer, { ...report, ...merged.value, outcome: 'merged' }, options);
}

/** Names the ignored files that the removal of merged worktrees would delete. */
async function ignoredNotes(
  context: AppContext,
  { paths }: GroupWriter,
  prepared: readonly Prepared[],
): Promise<readonly string[]> {
  const notes: string[] = [];
  for (const { record } of prepared.flatMap(({ plan }) => plan.items)) {
    const leftover = await leftoverOf(context, paths, record.definition.id, record);
    if (leftover === null || leftover.ignored.length === 0) continue;
    notes.push(`${ignoredSentence(`The worktree of ${leftover.title}`, leftover.ignored)} --keep-ignored keeps it.`);
  }
  return notes;
}

async function prepare(
  bench: MergeSandbox,
  { repositories }: MergePlan,
  isDryRun = false,
): Promise<Result<Prepared[]>> {
  const prepared: Prepared[] = [];
  for (const plan of repositories) {
    const target = await readTarget(bench.git, plan.repository, plan.into);
    if (!target.ok) return target;
    const free = await checkTarget(bench.git, target.value);
    if (!free.ok) return free;
    // A merge checks this for the commits that it makes.
    const sources = isDryRun ? plan.items.map(({ source }) => source) : [];
    const room = await checkRoomBefore(bench.git, target.value, sources);
    if (!room.ok) return room;
    prepared.push({ plan, target: target.value });
  }
  return ok(prepared);
}

/** Removes worktrees and branches of all merged sessions, also those that an earlier command could not remove. */
async function tidied(
  context: AppContext,
  writer: GroupWriter,
  report: MergeReport,
  { keepIgnored = false }: MergeOptions,
): Promise<Result<MergeReport>> {
  const ids = [...writer.state.sessions.values()].flatMap(({ definition, mergedInto, workspace }) =>
    mergedInto !== undefined && workspace !== undefined ? [definition.id] : [],
  );
  const cleaned = await cleanUpSessions(context, writer, ids, { force: false, keepIgnored });
  return cleaned.ok ? ok({ ...report, cleanUp: cleaned.value }) : cleaned;
}

type Merged = Pick<MergeReport, 'moves' | 'contained' | 'notes'>;

/** Null if the command was interrupted before a branch moved. */
async function mergeAll(
  writer: GroupWriter,
  bench: MergeSandbox,
  prepared: readonly Prepared[],
): Promise<Result<Merged | null>> {
  const { git } = bench;
  const { paths } = writer;
  const tasks = tasksOf(bench, prepared);
  const begun = beginJournal(bench, writer, tasks);
  if (!begun.ok) return begun;
  const first = await tryOut(bench, tasks);
  const tried = first.ok ? first : await withPair(bench, tasks, first.failure);
  const isReady = tried.ok && !bench.isInterrupted;
  const moving = { ...begun.value, moves: tried.ok ? tried.value.moves : [] };
  const ready = isReady ? writeMergeJournal(git.world, paths, moving) : ok(undefined);
  if (!isReady || !ready.ok) {
    const ended = await endMerge(git, writer, begun.value);
    if (!tried.ok) return tried;
    if (!ready.ok) return ready;
    return ended.ok ? ok(null) : ended;
  }
  const settled = await settleMerge(git, writer, moving);
  return settled.ok ? summed(settled.value, tried.value) : settled;
}

/** Fails with `write-failed`. */
function beginJournal(bench: MergeSandbox, { paths }: GroupWriter, tasks: readonly SandboxMerge[]) {
  const journal: MergeJournal = { mark: bench.mark, scratches: tasks.map(({ scratch }) => scratch), moves: [] };
  const written = writeMergeJournal(bench.git.world, paths, journal);
  return written.ok ? ok(journal) : written;
}

/** Runs the work, which moves no branch, then removes the scratch worktrees of the tasks. */
export async function inScratches<T>(
  bench: MergeSandbox,
  writer: GroupWriter,
  tasks: readonly SandboxMerge[],
  work: () => Promise<Result<T>>,
): Promise<Result<T>> {
  const begun = beginJournal(bench, writer, tasks);
  if (!begun.ok) return begun;
  const done = await bench.whileListening(work);
  const ended = await endMerge(bench.git, writer, begun.value);
  return done.ok && !ended.ok ? ended : done;
}

function tasksOf(bench: MergeSandbox, prepared: readonly Prepared[]): SandboxMerge[] {
  return prepared.map(({ plan, target }, index) => {
    const scratch = bench.scratchFor(plan, index + 1);
    return { plan, start: target.commit, startName: plan.into, scratch };
  });
}

/** Adds to a failed check which two sessions' work fails together, unless one session's work fails on its own. */
async function withPair(bench: MergeSandbox, tasks: readonly SandboxMerge[], failure: Failure): Promise<Result<never>> {
  const isCheck = failure.reason === 'not-accepted' && tasks.flatMap(({ plan }) => plan.items).length > 2;
  const pair = isCheck ? await firstFailingPair(bench, tasks) : null;
  if (pair === null || pair.length < 2) return { ok: false, failure };
  const message = `${failure.message} The first two that fail together are ${pair.map(titleOfItem).join(' and ')}.`;
  return { ok: false, failure: { ...failure, message } };
}

/**
 * The first two pieces of work, in the order in which they are merged, that fail their checks together; only one
 * if it fails on its own; null if the search was interrupted.
 */
async function firstFailingPair(
  bench: MergeSandbox,
  tasks: readonly SandboxMerge[],
): Promise<readonly MergeItem[] | null> {
  const all = tasks.flatMap(({ plan }) => plan.items);
  const fails = async (some: readonly MergeItem[]): Promise<boolean> => {
    if (bench.isInterrupted) return true;
    const part = tasks.map((task) => {
      return { ...task, plan: { ...task.plan, items: task.plan.items.filter((item) => some.includes(item)) } };
    });
    return !(await bench.integrate(part)).ok;
  };
  /** The smallest count for which `doesFail` holds; it is known to hold for `high`. */
  const smallest = async (high: number, doesFail: (count: number) => Promise<boolean>): Promise<number> => {
    let [low, end] = [1, high];
    while (low < end) {
      const middle = (low + end) >>> 1;
      if (await doesFail(middle)) end = middle;
      else low = middle + 1;
    }
    return low;
  };
  const second = await smallest(all.length, (count) => fails(all.slice(0, count)));
  const last = all.slice(second - 1, second);
  if (second === 1 || (await fails(last))) return bench.isInterrupted ? null : last;
  const first = await smallest(second - 1, (count) => fails([...all.slice(0, count), ...last]));
  return bench.isInterrupted ? null : [...all.slice(first - 1, first), ...last];
}

export interface UnionCheck {
  /** Absent = all the work passes together. */
  readonly failure?: Failure;
  /** The sessions that fail together, or the single session whose work fails on the target by itself. */
  readonly culprits: readonly SessionId[];
}

/** Merges the work of the sessions in scratch worktrees and checks it there. No branch moves. Fails like mergeGroup. */
export async function checkUnion(
  context: AppContext,
  writer: GroupWriter,
  only: readonly SessionId[],
): Promise<Result<UnionCheck>> {
  const options = { partial: true, dryRun: false, only };
  const begun = await beginMerge(context, writer, options);
  if (!begun.ok) return begun;
  const { bench, mergePlan } = begun.value;
  const prepared = await prepare(bench, mergePlan);
  if (!prepared.ok) return prepared;
  const tasks = tasksOf(bench, prepared.value);
  return inScratches(bench, writer, tasks, async (): Promise<Result<UnionCheck>> => {
    const integrated = await bench.integrate(tasks);
    if (integrated.ok) return ok({ culprits: [] });
    if (integrated.failure.reason !== 'not-accepted') return integrated;
    const pair = await firstFailingPair(bench, tasks);
    const culprits = pair?.map(({ record }) => record.definition.id) ?? [];
    return pair === null ? integrated : ok({ failure: integrated.failure, culprits });
  });
}

function summed({ undone, notes }: Settlement, { moves, contained }: Tried): Result<Merged> {
  if (undone === undefined) return ok({ moves, contained, notes });
  return fail('worktree-failed', undone, 'No branch was moved. Fix that and merge again.');
}

interface Tried {
  readonly moves: readonly Move[];
  readonly contained: ReadonlySet<SessionId>;
}

/**
 * Runs every step that can fail, before anything is changed. The last ones check that no target branch has moved
 * meanwhile.
 */
async function tryOut(bench: MergeSandbox, tasks: readonly SandboxMerge[]): Promise<Result<Tried>> {
  const integrated = await bench.integrate(tasks);
  if (!integrated.ok) return integrated;
  const moves: Move[] = [];
  for (const { task, commit } of integrated.value) {
    const { repository, into, items } = task.plan;
    const target = await readTarget(bench.git, repository, into);
    if (!target.ok) return target;
    if (target.value.commit !== task.start) {
      const message = `The branch ${into} of ${repositoryDir(repository)} was moved during the merge.`;
      return fail('usage', message, 'This command moved no branch. Merge again.');
    }
    const free = await checkTarget(bench.git, target.value);
    if (!free.ok) return free;
    const room = await checkRoom(bench.git, target.value, commit);
    if (!room.ok) return room;
    const sessionIds = items.map(({ record }) => record.definition.id);
    moves.push({ repository, into, from: task.start, to: commit, sessionIds, checkouts: target.value.checkouts });
  }
  return ok({ moves, contained: new Set(integrated.value.flatMap((one) => [...one.contained])) });
}

/**
 * Finishes an interrupted merge, or undoes it if that is impossible, and prints a note. Commands call this with the
 * lock held before they touch worktrees or branches of the group. Fails with `corrupt-file` (the journal), `busy` (its
 * git still runs), `worktree-failed` and `write-failed`; can be repeated.
 */
export async function finishMerge(context: AppContext, writer: GroupWriter): Promise<Result<void>> {
  const { world } = context;
  const read = readMergeJournal(world, writer.paths);
  if (!read.ok || read.value === null) return read.ok ? ok(undefined) : read;
  const { mark, moves } = read.value;
  const git = markedGit(context, mark);
  // Wait for a git process that moves a branch, but not for one that only fills a scratch worktree.
  const alone = await waitForGitExit(world, mark, { end: moves.length === 0 });
  if (!alone.ok) return alone;
  if (moves.length === 0) return endMerge(git, writer, read.value);
  const settled = await settleMerge(git, writer, read.value);
  if (!settled.ok) return settled;
  const { undone, notes } = settled.value;
  const { id } = writer.state.group;
  if (undone !== undefined) warnOnce(context, `The interrupted merge of ${id} was undone. ${undone}`);
  else for (const move of moves) warnOnce(context, `Finished the interrupted merge of ${id}: ${describeMove(move)}.`);
  for (const note of notes) warnOnce(context, note);
  return ok(undefined);
}

/** Like finishMerge, without the lock. Also fails with `busy` while a merge is running. */
export async function finishInterruptedMerge(context: AppContext, group: GroupReference): Promise<Result<void>> {
  if (!hasMergeJournal(context.world, group.paths) || liveRunner(context.world, group) !== null) return ok(undefined);
  return changeGroup(context, group, { direct: (writer) => finishMerge(context, writer) });
}

function describeMove({ repository, into, sessionIds }: MergedRepository): string {
  return `${plural(sessionIds.length, 'session')} in ${into} of ${repositoryDir(repository)}`;
}

/** Moves all branches of a journal, or none, and logs the merges. */
async function settleMerge(git: Git, writer: GroupWriter, journal: MergeJournal): Promise<Result<Settlement>> {
  const settled = await settleMoves(git, journal.moves, `merge ${writer.state.group.id}`);
  if (!settled.ok) return settled;
  const logged = settled.value.undone === undefined ? logMerged(git, writer, journal.moves) : ok(undefined);
  if (!logged.ok) return logged;
  const ended = await endMerge(git, writer, journal);
  return ended.ok ? settled : ended;
}

/**
 * Skips merges that were logged before a crash. They are recognised by their commit: a later merge of the same session
 * has a different one.
 */
function logMerged({ world }: Git, writer: GroupWriter, moves: readonly Move[]): Result<void> {
  const { sessions } = writer.state;
  const log = readLog(world, writer.paths.events);
  if (!log.ok) return log;
  const known = log.value.flatMap((event) => (event.type === 'group_merged' ? event.merged : []));
  const merged = moves.flatMap(({ repository, into, from, to, sessionIds }): MergedRepository[] => {
    const isLogged = known.some((one) => one.repository === repository && one.into === into && one.to === to);
    const news = sessionIds.filter((id) => {
      const record = sessions.get(id);
      return record !== undefined && (record.mergedInto !== into || (from !== to && !isLogged));
    });
    return news.length === 0 ? [] : [{ repository, into, from, to, sessionIds: news }];
  });
  try {
    if (merged.length > 0) writer.record([{ type: 'group_merged', merged }]);
    return ok(undefined);
  } catch (error) {
    return { ok: false, failure: systemFailure(writer.paths.events, error) };
  }
}

/** Removes the journal last, because it names the scratch worktrees. */
async function endMerge(
  git: Git,
  { paths }: { readonly paths: GroupPaths },
  { scratches }: Pick<MergeJournal, 'scratches'>,
): Promise<Result<void>> {
  const cleared = await clearScratches(git, scratches);
  if (!cleared.ok) return cleared;
  try {
    removeMergeJournal(git.world, paths);
    return ok(undefined);
  } catch (error) {
    return { ok: false, failure: systemFailure(paths.folder, error) };
  }
}

/** Finishes an interrupted merge, except in a dry run, and plans the new one. */
export async function beginMerge(
  context: AppContext,
  writer: GroupWriter,
  options: MergeSelection & { readonly dryRun: boolean },
): Promise<Result<{ readonly bench: MergeSandbox; readonly mergePlan: MergePlan }>> {
  if (!options.dryRun) {
    const finished = await finishMerge(context, writer);
    if (!finished.ok) return finished;
  }
  const ofUser = await readUserConfig(context);
  if (!ofUser.ok) return ofUser;
  const worktrees = ofUser.value.worktrees ?? worktreesFolder(dirname(dirname(writer.paths.folder)));
  const bench = new MergeSandbox(context, writer, worktrees);
  const mergePlan = await planMerge(bench.git, writer.state, options);
  return mergePlan.ok ? ok({ bench, mergePlan: mergePlan.value }) : mergePlan;
}
