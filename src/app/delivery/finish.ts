/**
 * Brings a merge to its end: after its branches have begun to move, by the command that moves them or, when that was
 * killed, by the next one on the group.
 */
import type { MergedRepository } from '../../core/event.ts';
import { ok, type Result } from '../../core/failure.ts';
import type { GroupId } from '../../core/group.ts';
import { quoted } from '../../core/id.ts';
import { nextGroupStatus } from '../../core/status.ts';
import type { Git } from '../../git/git.ts';
import { type Settlement, settleMoves } from '../../git/move-refs.ts';
import { readLog } from '../../store/event-log.ts';
import type { GroupWriter } from '../../store/group-writer.ts';
import {
  type MergeJournal,
  type Move,
  readMergeJournal,
  removeMergeJournal,
  writeMergeJournal,
} from '../../store/merge-journal.ts';
import type { GroupPaths } from '../../store/paths.ts';
import { systemFailure } from '../../store/system-failure.ts';
import { plural } from '../../view/format.ts';
import { liveRunner } from '../live-runner.ts';
import type { Place } from '../place.ts';
import type { GroupReference } from '../resolve.ts';
import { changeGroup } from '../submit.ts';
import { clearScratches, MergeSandbox, markedGit, waitForGitExit } from './merge-sandbox.ts';
import { type MergePlan, type MergeSelection, placeName, planMerge, say } from './plan.ts';

/** Whoever has the lock: a writer, or somebody who holds a group whose log cannot be read. */
export type Holder = GroupWriter | { readonly paths: GroupPaths; readonly groupId: GroupId };

export type Finished =
  /** There was none, or no branch had moved and only scratch worktrees were left. */
  'nothing' | 'finished' | 'undone';

/**
 * To be called with the lock held, before a command does anything else with worktrees or branches of the group: an
 * interrupted merge is finished or, when that cannot be, undone, and people are told. Costs nothing when there was
 * none. Fails with `corrupt-file` (the journal), `busy` (a git of it still runs), `worktree-failed` and
 * `write-failed`; called again, it goes on.
 */
export async function finishMerge(place: Place, holder: Holder): Promise<Result<Finished>> {
  const { world } = place;
  const read = readMergeJournal(world, holder.paths);
  if (!read.ok) return read;
  const journal = read.value;
  if (journal === null || (journal.step === 'moved' && !canLog(holder))) return ok('nothing');
  const git = markedGit(place, journal.mark);
  // A git that moves a branch is let finish; one that only fills a scratch worktree is not waited for.
  const alone = await waitForGitExit(world, journal.mark, { end: journal.step === 'checking' });
  if (!alone.ok) return alone;
  if (journal.step === 'checking') {
    const cleared = await endMerge(git, holder, journal);
    return cleared.ok ? ok('nothing') : cleared;
  }
  const settled = await settleMerge(git, holder, journal);
  if (!settled.ok) return settled;
  const { outcome, notes } = settled.value;
  const id = idOf(holder);
  if (outcome === 'moved') {
    for (const move of journal.moves) say(place, `Finished the interrupted merge of ${id}: ${describeMove(move)}.`);
  } else {
    say(place, `The interrupted merge of ${id} was undone. ${settled.value.cause}`);
    for (const move of settled.value.kept) say(place, keptSentence(move));
  }
  for (const note of notes) say(place, note);
  return ok(outcome === 'moved' ? 'finished' : 'undone');
}

/** As finishMerge, for commands that do not hold the group. Fails with `busy` as well while a merge is at work. */
export async function finishInterruptedMerge(place: Place, group: GroupReference): Promise<Result<Finished>> {
  const journal = readMergeJournal(place.world, group.paths);
  if (journal.ok && journal.value === null) return ok('nothing');
  if (liveRunner(place.world, group) !== null) return ok('nothing');
  return changeGroup(place, group, { direct: (writer) => finishMerge(place, writer) });
}

export function describeMove({ repository, into, sessionIds }: MergedRepository): string {
  return `${plural(sessionIds.length, 'session')} in ${into} of ${placeName(repository)}`;
}

export function keptSentence({ repository, into }: Move): string {
  return `The branch ${quoted(into)} of ${placeName(repository)} keeps what was merged: others have built on it.`;
}

/** Moves all branches of a journal in step `moving`, or none, and logs what was merged. Fails as settleMoves. */
export async function settleMerge(git: Git, holder: Holder, journal: MergeJournal): Promise<Result<Settlement>> {
  const { world } = git;
  const id = idOf(holder);
  let settlement: Settlement = { outcome: 'moved', notes: [] };
  let { moves } = journal;
  if (journal.step !== 'moved') {
    const wording = { forwards: `claude-code-agent: merge ${id}`, backwards: `claude-code-agent: undo merge ${id}` };
    const settled = await settleMoves(git, journal, wording, () =>
      writeMergeJournal(world, holder.paths, { ...journal, step: 'undoing' }),
    );
    if (!settled.ok) return settled;
    settlement = settled.value;
    if (settlement.outcome === 'undone') moves = settlement.kept;
    const noted = writeMergeJournal(world, holder.paths, { ...journal, step: 'moved', moves });
    if (!noted.ok) return noted;
  }
  // While the group counts as running nothing of that kind can be logged; the journal keeps it until then.
  if (!canLog(holder)) return ok(settlement);
  const logged = 'record' in holder ? logMerged(git, holder, moves) : ok(undefined);
  if (!logged.ok) return logged;
  const ended = await endMerge(git, holder, journal);
  return ended.ok ? ok(settlement) : ended;
}

function idOf(holder: Holder): GroupId {
  return 'record' in holder ? holder.state.group.id : holder.groupId;
}

function canLog(holder: Holder): boolean {
  return !('record' in holder) || nextGroupStatus(holder.state.status, 'group_merged') !== null;
}

/** A crash may have come after it was logged; what was merged again since has another commit. */
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

/** Scratch worktrees go first, the journal last: it is what tells of them. */
export async function endMerge(
  git: Git,
  { paths }: { readonly paths: GroupPaths },
  { scratches }: Pick<MergeJournal, 'scratches'>,
): Promise<Result<void>> {
  const cleared = await clearScratches(git, paths, scratches);
  if (!cleared.ok) return cleared;
  try {
    removeMergeJournal(git.world, paths);
    return ok(undefined);
  } catch (error) {
    return { ok: false, failure: systemFailure(paths.folder, error) };
  }
}

// How every hand-over begins, whether its work is merged here or proposed elsewhere.

export interface Beginning {
  readonly bench: MergeSandbox;
  readonly mergePlan: MergePlan;
  readonly mark: string;
}

/** Ends what an earlier hand-over left, unless this one only looks, and plans. Fails as both of them do. */
export async function beginMerge(
  place: Place,
  writer: GroupWriter,
  options: MergeSelection & { readonly dryRun: boolean },
): Promise<Result<Beginning>> {
  if (!options.dryRun) {
    const finished = await finishMerge(place, writer);
    if (!finished.ok) return finished;
  }
  const mark = place.world.random.uuid();
  const bench = new MergeSandbox(place, writer.paths, writer.state, mark);
  const mergePlan = await planMerge(bench.git, writer.state, options);
  return mergePlan.ok ? ok({ bench, mergePlan: mergePlan.value, mark }) : mergePlan;
}
