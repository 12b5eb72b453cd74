/** Which cell of the coverage matrix a seed is aimed at: the harder one is to hit, the more seeds try. */
import { applicableCells, type Cell, type CrashPoint, type DecisionKind, isWorkKind } from './coverage.ts';

/** Points that few stories live long enough to reach; measured over ten thousand seeds. */
const pointWeights: Readonly<Record<CrashPoint, number>> = {
  'before-append': 1.1,
  'after-append': 1.2,
  'after-fsync': 1.4,
  'before-snapshot': 2.2,
  'after-snapshot': 1.7,
  'after-spawn': 1.4,
  'after-prompt': 1.1,
  'before-result-read': 1.5,
  'after-result-read': 1.6,
  'during-adopt': 1.5,
  'during-reap': 1.35,
  'while-accepting': 1,
  'while-waiting': 2.6,
};

/** Decisions that come late, seldom or only once in a story; the others are hit by the way. */
const decisionWeights: Readonly<Record<DecisionKind, number>> = {
  start: 1.1,
  resume: 0.4,
  retry: 2.3,
  probe: 1.4,
  stop: 2,
  'stop-slice': 4.6,
  'stop-budget': 4.8,
  'stop-stall': 2.1,
  'stop-timeout': 1.5,
  accept: 0.8,
  'stop-accept': 1.5,
  approve: 0.8,
  reject: 0.8,
  'settle-completed': 2.8,
  'settle-failed': 2.1,
  'settle-paused': 0.3,
  'settle-limit': 1.5,
  'warn-budget': 3.4,
  'exceed-budget': 0.4,
  'wait-limit': 1.4,
  'wait-backoff': 1.5,
  'wait-memory': 0.8,
  'wait-disk': 0.75,
  freeze: 2.4,
  thaw: 2.9,
  drain: 2.2,
};

/** Both at once is harder than either. */
const seldom = 2.5;
const finenessOfWeights = 3;

function weightOf({ point, decision }: Cell): number {
  const decided = decisionWeights[decision];
  const bonus = point.endsWith('snapshot') && decided > seldom ? 1.7 : 1;
  return Math.max(1, Math.round(finenessOfWeights * pointWeights[point] * decided * bonus));
}

/** Each cell as often as it is to be aimed at. */
export const aims: readonly Cell[] = applicableCells.flatMap((cell) =>
  Array.from({ length: weightOf(cell) }, () => cell),
);

/** Cells with the same decision as this one, at which a story aimed at it may be cut short as well. */
export function related({ point, decision }: Cell): readonly Cell[] {
  // What is aimed at the last point must not die before.
  const isLast = point === 'after-snapshot';
  // Work that is to be accepted is approved or rejected a little later.
  const isSame = (other: Cell) => other.decision === decision || (isWorkKind(decision) && isWorkKind(other.decision));
  return aims.filter((cell) => isSame(cell) && (!isLast || cell.point === point));
}
