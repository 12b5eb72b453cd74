/** What a merge did, or would do, for people and as JSON. */
import type { MergeReport } from '../app/delivery/merge.ts';
import { type MergeItem, titleOfItem } from '../app/delivery/merge-items.ts';
import { leftOutLines, placeName } from '../app/delivery/plan.ts';
import { type GroupReference, loadWithRunner } from '../app/resolve.ts';
import { defined } from '../core/defined.ts';
import { ok, type Result } from '../core/failure.ts';
import { shortCommit } from '../git/worktrees/scratch.ts';
import { plural } from '../view/format.ts';
import { safeJson, safeLine } from '../view/terminal-text.ts';
import { confirmed } from './confirm.ts';
import type { Context } from './context.ts';

const lineColumns = 1000;

export function showMerge(context: Context, groupId: string, report: MergeReport, json: boolean): void {
  const { stdout } = context;
  if (json) stdout.line(safeJson(mergeDocument(groupId, report), 2));
  else for (const line of mergeLines(groupId, report)) stdout.line(safeLine(line, lineColumns));
}

function mergeDocument(
  groupId: string,
  { outcome, mergePlan, prepared, moves, contained, cleanUp, notes }: MergeReport,
) {
  return {
    groupId,
    outcome,
    repositories: prepared.map(({ plan, target }) => {
      const move = moves.find(({ repository }) => repository === plan.repository);
      return {
        repository: plan.repository,
        into: plan.into,
        from: target.commit,
        ...(move === undefined ? {} : { to: move.to }),
        checkouts: move?.checkouts ?? target.checkouts,
        sessions: plan.items.map((item) => ({
          id: item.record.definition.id,
          ...defined({ name: item.record.definition.name }),
          branch: item.workspace.branch,
          commit: item.source,
          ...(move === undefined ? {} : { contained: contained.has(item.record.definition.id) }),
        })),
      };
    }),
    mergedBefore: mergePlan.merged,
    leftOut: mergePlan.leftOut.map(({ sessionId, why }) => ({ sessionId, why })),
    cleaned: cleanUp.cleaned,
    kept: cleanUp.kept,
    notes: [...notes, ...cleanUp.notes],
  };
}

function mergeLines(groupId: string, report: MergeReport): string[] {
  const { outcome, mergePlan, prepared, moves, contained, cleanUp, notes } = report;
  const left = leftOutLines(mergePlan);
  switch (outcome) {
    case 'interrupted':
      return ['Interrupted: no branch was moved.'];
    case 'nothing':
      return [nothingToMerge(groupId, report), ...left, ...keptLines(report)];
    case 'planned':
      return [
        ...prepared.flatMap(({ plan, target }) => [
          `Into ${plan.into} of ${placeName(plan.repository)} (${shortCommit(target.commit)}):`,
          ...plan.items.map(pieceLine),
        ]),
        ...left,
        'Nothing was done.',
      ];
    case 'merged':
      return [
        ...moves.map(({ repository, into, from, to, sessionIds }) => {
          const there = sessionIds.filter((id) => contained.has(id)).length;
          const known = there === 0 ? '' : `, ${there} of them there already`;
          const step = from === to ? '' : ` (${shortCommit(from)} -> ${shortCommit(to)})`;
          const where = `${into} of ${placeName(repository)}`;
          return `Merged ${plural(sessionIds.length, 'session')} into ${where}${known}${step}.`;
        }),
        ...left,
        ...keptLines(report),
        ...[...notes, ...cleanUp.notes],
      ];
  }
}

function nothingToMerge(groupId: string, { mergePlan }: MergeReport): string {
  const { leftOut, merged, mergedInto } = mergePlan;
  if (leftOut.some(({ work }) => work === 'uncommitted')) {
    return `Nothing of ${groupId} was merged: what is left of it is in no commit.`;
  }
  if (merged.length > 0) return `Everything of ${groupId} is merged already, into ${mergedInto.join(' and ')}.`;
  if (leftOut.some(({ work }) => work === 'elsewhere')) {
    return `Nothing of ${groupId} was merged: no work of a completed session is on a branch of its own.`;
  }
  return `${groupId} has nothing to merge: no session left work in a worktree of its own.`;
}

function pieceLine(item: MergeItem): string {
  const { accept } = item.record.definition;
  const then = accept === undefined ? '' : `, then: ${accept}`;
  return `  ${titleOfItem(item)}: merge ${item.workspace.branch} (${shortCommit(item.source)})${then}`;
}

function keptLines({ cleanUp, mergePlan: { titles } }: MergeReport): string[] {
  return cleanUp.kept.map(({ sessionId, why }) => `Kept the worktree of ${titles.get(sessionId) ?? sessionId}: ${why}`);
}

// Work that no model has done is handed over only by somebody who knows it.

interface HandOver {
  /** As in the question: Merge. */
  readonly what: string;
  readonly dryRun: boolean;
  readonly partial: boolean;
  /** Nobody is to be asked. */
  readonly yes: boolean;
}

/** Asks on a terminal; a script, which is not asked, is told. False = the user said no. */
export async function mayHandOver(
  context: Context,
  group: GroupReference,
  { what, yes, ...options }: HandOver,
): Promise<Result<boolean>> {
  if (yes || !isRehearsedWork(context, group, options)) return ok(true);
  const fact = `Group ${group.groupId} is a rehearsal: a script said what to do, no model.`;
  const canAsk = context.stdinIsTerminal && context.stdout.isTerminal;
  if (!canAsk) context.stderr.line(fact);
  return confirmed(context, `${fact} ${what} it all the same?`, !canAsk);
}

/** Nobody is asked about what will be refused anyway. */
function isRehearsedWork(
  { world }: Context,
  group: GroupReference,
  { dryRun, partial }: Pick<HandOver, 'dryRun' | 'partial'>,
): boolean {
  const loaded = loadWithRunner(world, group);
  if (dryRun || !loaded.ok || loaded.value.state.run?.rehearsal === undefined) return false;
  const records = [...loaded.value.state.sessions.values()];
  return partial || records.every(({ state }) => state.status === 'completed');
}
