/**
 * The coverage matrix: every kind of decision times every point at which a runner can die. Some cells cannot exist:
 * a group that is settled has no worker, and a worker that is being stopped has been spawned and prompted before.
 */

/** What the group decided; settling by its three ends, notices of the budget by their two kinds. */
export const decisionKinds = [
  'start',
  'resume',
  'retry',
  'stop',
  'settle-completed',
  'settle-failed',
  'settle-paused',
  'warn-budget',
  'exceed-budget',
] as const;
export type DecisionKind = (typeof decisionKinds)[number];

/** Points that concern what is being logged: the decisions of the batch at hand. */
const batchPoints = ['before-append', 'after-append', 'after-fsync', 'before-snapshot', 'after-snapshot'] as const;
/** Points that concern one attempt: the last decision about it. */
const launchPoints = ['after-spawn', 'after-prompt'] as const;
const attemptPoints = ['before-result-read', 'after-result-read', 'during-adopt', 'during-reap'] as const;

export type CrashPoint = (typeof batchPoints)[number] | (typeof launchPoints)[number] | (typeof attemptPoints)[number];

export interface Cell {
  readonly point: CrashPoint;
  readonly decision: DecisionKind;
}

export const applicableCells: readonly Cell[] = [
  ...batchPoints.flatMap((point) => decisionKinds.map((decision) => ({ point, decision }))),
  ...launchPoints.flatMap((point) => (['start', 'resume', 'retry'] as const).map((decision) => ({ point, decision }))),
  ...attemptPoints.flatMap((point) =>
    (['start', 'resume', 'retry', 'stop'] as const).map((decision) => ({ point, decision })),
  ),
];

/** Counts, by `point × decision` for crashes and by name for everything else worth counting. */
export class Coverage {
  readonly counts = new Map<string, number>();

  note(name: string, by = 1): void {
    this.counts.set(name, (this.counts.get(name) ?? 0) + by);
  }

  crash({ point, decision }: Cell): void {
    this.note(cellName({ point, decision }));
  }

  add(other: Coverage): void {
    for (const [name, count] of other.counts) this.note(name, count);
  }

  /** Cells that were hit less than `least` times, as `name: count`. */
  thinCells(least: number): string[] {
    return applicableCells
      .map((cell) => [cellName(cell), this.counts.get(cellName(cell)) ?? 0] as const)
      .filter(([, count]) => count < least)
      .map(([name, count]) => `${name}: ${count}`);
  }
}

export function cellName({ point, decision }: Cell): string {
  return `${point} × ${decision}`;
}
