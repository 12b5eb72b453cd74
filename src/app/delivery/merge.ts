/**
 * app/delivery/: hands the work of a group over. This file does it in two phases: everything is merged and accepted in
 * scratch worktrees first; only when all of that went well, in every repository, the branches move.
 */

import { fail, ok, type Result } from '../../core/failure.ts';
import type { SessionId } from '../../core/group.ts';
import type { Settlement } from '../../git/move-refs.ts';
import { checkRoom, checkRoomBefore, checkTarget, readTarget, type Target } from '../../git/target.ts';
import type { GroupWriter } from '../../store/group-writer.ts';
import { type MergeJournal, type Move, writeMergeJournal } from '../../store/merge-journal.ts';
import type { Place } from '../place.ts';
import { beginMerge, endMerge, settleMerge } from './finish.ts';
import { type MergeSandbox, scratchPlace, type Task } from './merge-sandbox.ts';
import { type MergePlan, type MergeSelection, placeName, type RepositoryPlan } from './plan.ts';
import { type CleanUp, cleanUpSessions } from './worktree-cleanup.ts';

export interface MergeOptions extends MergeSelection {
  readonly dryRun: boolean;
}

export interface Prepared {
  readonly plan: RepositoryPlan;
  readonly target: Target;
}

export interface MergeReport {
  readonly outcome: 'merged' | 'nothing' | 'planned' | 'interrupted';
  readonly mergePlan: MergePlan;
  readonly prepared: readonly Prepared[];
  readonly moves: readonly Move[];
  /** Sessions whose work was part of the branch before. */
  readonly contained: ReadonlySet<SessionId>;
  readonly cleanUp: CleanUp;
  readonly notes: readonly string[];
}

const noCleanUp: CleanUp = { cleaned: [], kept: [], notes: [] };

/**
 * To be called with the lock held. Fails with `usage` (nothing was tried), `merge-conflict`, `not-accepted`,
 * `setup-failed`, `worktree-failed` and `write-failed` (nothing was moved, or all moves are settled by the next
 * command).
 */
export async function mergeGroup(
  place: Place,
  writer: GroupWriter,
  options: MergeOptions,
): Promise<Result<MergeReport>> {
  const begun = await beginMerge(place, writer, options);
  if (!begun.ok) return begun;
  const { bench, mergePlan, mark } = begun.value;
  const prepared = await prepare(bench, mergePlan, options);
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
  if (options.dryRun) return ok({ ...report, outcome: prepared.value.length === 0 ? 'nothing' : 'planned' });
  if (prepared.value.length === 0) return tidied(place, writer, report);
  const merged = await bench.whileListening(() => mergeAll(writer, bench, mark, prepared.value));
  if (bench.isInterrupted && (!merged.ok || merged.value === null)) return ok({ ...report, outcome: 'interrupted' });
  if (!merged.ok) return merged;
  return tidied(place, writer, { ...report, ...merged.value, outcome: 'merged' });
}

async function prepare(
  bench: MergeSandbox,
  { repositories }: MergePlan,
  options: MergeOptions,
): Promise<Result<Prepared[]>> {
  const prepared: Prepared[] = [];
  for (const plan of repositories) {
    const target = await readTarget(bench.git, plan.repository, plan.into);
    if (!target.ok) return target;
    const free = await checkTarget(bench.git, target.value);
    if (!free.ok) return free;
    const sources = options.dryRun ? plan.items.map(({ source }) => source) : [];
    const room = await checkRoomBefore(bench.git, target.value, sources);
    if (!room.ok) return room;
    prepared.push({ plan, target: target.value });
  }
  return ok(prepared);
}

/** Worktrees and branches of all sessions that are merged, also of those an earlier command could not remove. */
async function tidied(place: Place, writer: GroupWriter, report: MergeReport): Promise<Result<MergeReport>> {
  const ids = [...writer.state.sessions.values()].flatMap(({ definition, mergedInto, workspace }) =>
    mergedInto !== undefined && workspace !== undefined ? [definition.id] : [],
  );
  const cleaned = await cleanUpSessions(place, writer, ids, { force: false });
  return cleaned.ok ? ok({ ...report, cleanUp: cleaned.value }) : cleaned;
}

type Merged = Pick<MergeReport, 'moves' | 'contained' | 'notes'>;

/** Null when it was interrupted and nothing was moved. */
async function mergeAll(
  writer: GroupWriter,
  bench: MergeSandbox,
  mark: string,
  prepared: readonly Prepared[],
): Promise<Result<Merged | null>> {
  const { git } = bench;
  const { paths, state } = writer;
  const tasks = prepared.map(({ plan, target }, index): Task => {
    return {
      plan,
      start: target.commit,
      startName: plan.into,
      scratch: scratchPlace(paths, state, plan.repository, index + 1),
    };
  });
  const scratches = tasks.map(({ scratch }) => scratch);
  const begun: MergeJournal = { step: 'checking', mark, scratches, moves: [] };
  const noted = writeMergeJournal(git.world, paths, begun);
  if (!noted.ok) return noted;
  const tried = await tryOut(bench, tasks);
  const isReady = tried.ok && !bench.isInterrupted;
  const moving = { ...begun, step: 'moving' as const, moves: tried.ok ? tried.value.moves : [] };
  const ready = isReady ? writeMergeJournal(git.world, paths, moving) : ok(undefined);
  if (!isReady || !ready.ok) {
    const ended = await endMerge(git, writer, begun);
    if (!tried.ok) return tried;
    if (!ready.ok) return ready;
    return ended.ok ? ok(null) : ended;
  }
  const settled = await settleMerge(git, writer, moving);
  return settled.ok ? summed(settled.value, tried.value) : settled;
}

function summed(settlement: Settlement, { moves, contained }: Tried): Result<Merged> {
  if (settlement.outcome === 'moved') return ok({ moves, contained, notes: settlement.notes });
  const stays =
    settlement.kept.length > 0 ? 'Some branches keep what was merged, see git log.' : 'No branch was moved.';
  return fail('worktree-failed', settlement.cause, `${stays} Merge again when that is settled.`);
}

interface Tried {
  readonly moves: readonly Move[];
  readonly contained: ReadonlySet<SessionId>;
}

/** Everything that can fail without a trace; last of all, that nothing has changed since it began. */
async function tryOut(bench: MergeSandbox, tasks: readonly Task[]): Promise<Result<Tried>> {
  const integrated = await bench.integrate(tasks);
  if (!integrated.ok) return integrated;
  const moves: Move[] = [];
  for (const { task, commit } of integrated.value) {
    const { repository, into, items } = task.plan;
    const target = await readTarget(bench.git, repository, into);
    if (!target.ok) return target;
    if (target.value.commit !== task.start) {
      const message = `The branch ${into} of ${placeName(repository)} was moved while the work was tried out.`;
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
