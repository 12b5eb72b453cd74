/**
 * The coverage matrix: every kind of decision times every point at which a runner can die. Some cells cannot exist:
 * a group that is settled has no worker, and a worker that is being stopped has been spawned and prompted before.
 */

/** Decisions about an attempt: how it was begun, or why it is to stop. `probe` starts the first after a limit. */
const startKinds = ['start', 'resume', 'retry', 'probe'] as const;
const stopKinds = ['stop', 'stop-slice', 'stop-disk', 'stop-budget', 'stop-stall', 'stop-timeout'] as const;
/** What is decided about work after claude's part of it: to judge it, to stop that, and the judgement. */
const workKinds = ['accept', 'stop-accept', 'approve', 'reject'] as const;
/** What a group may wait for, as the log tells it. */
const loggedWaits = ['wait-limit', 'wait-backoff', 'freeze'] as const;

/** What the group decided; settling by its ends, notices of the budget by their two kinds. */
const decisionKinds = [
  ...startKinds,
  ...stopKinds,
  ...workKinds,
  'settle-completed',
  'settle-failed',
  'settle-paused',
  'settle-limit',
  'warn-budget',
  'exceed-budget',
  ...loggedWaits,
  'thaw',
  'drain',
] as const;
/** Of a session's own cap. Stories come by them without being aimed at them. */
const ownNotices = ['warn-own-budget', 'exceed-own-budget'] as const;
const waits = [...loggedWaits, 'wait-memory', 'wait-disk'] as const;
export type DecisionKind = (typeof decisionKinds)[number] | (typeof ownNotices)[number] | (typeof waits)[number];

/** Points that concern what is being logged: the decisions of the batch at hand. */
const batchPoints = ['before-append', 'after-append', 'after-fsync', 'before-snapshot', 'after-snapshot'] as const;
/** Points that concern one attempt: the last decision about it. */
const launchPoints = ['after-spawn', 'after-prompt'] as const;
const attemptPoints = ['before-result-read', 'after-result-read', 'during-adopt', 'during-reap'] as const;

/** Points at which a command judges the work, or what it left is ended. */
const workPoints = ['while-accepting', 'during-reap'] as const;

export type CrashPoint =
  | (typeof batchPoints)[number]
  | (typeof launchPoints)[number]
  | (typeof attemptPoints)[number]
  | (typeof workPoints)[number]
  | 'while-waiting';

export interface Cell {
  readonly point: CrashPoint;
  readonly decision: DecisionKind;
}

/** Those at which stories are aimed. A seed tells the same story as long as these stay what they are. */
export const aimedCells: readonly Cell[] = [
  ...batchPoints.flatMap((point) => decisionKinds.map((decision) => ({ point, decision }))),
  ...launchPoints.flatMap((point) => startKinds.map((decision) => ({ point, decision }))),
  ...attemptPoints.flatMap((point) => [...startKinds, ...stopKinds].map((decision) => ({ point, decision }))),
  { point: 'during-adopt', decision: 'freeze' },
  { point: 'after-spawn', decision: 'accept' },
  ...workPoints.flatMap((point) => (['accept', 'stop-accept'] as const).map((decision) => ({ point, decision }))),
  ...waits.map((decision) => ({ point: 'while-waiting' as const, decision })),
];

export const applicableCells: readonly Cell[] = [
  ...aimedCells,
  ...batchPoints.flatMap((point) => ownNotices.map((decision) => ({ point, decision }))),
];

/** Whether such a decision comes only where work is judged. */
export function isWorkKind(decision: DecisionKind): boolean {
  return (workKinds as readonly DecisionKind[]).includes(decision);
}

/** Counts, by `point × decision` for crashes and by name for everything else worth counting. */
export class Coverage {
  readonly counts = new Map<string, number>();
  readonly #passed = new Map<CrashPoint, Set<DecisionKind>>();

  note(name: string, by = 1): void {
    this.counts.set(name, (this.counts.get(name) ?? 0) + by);
  }

  crash({ point, decision }: Cell): void {
    this.note(cellName({ point, decision }));
  }

  /** A runner came by this cell and lived. */
  pass({ point, decision }: Cell): void {
    const decisions = this.#passed.get(point) ?? new Set();
    this.#passed.set(point, decisions.add(decision));
  }

  /** The cells of the matrix at which a runner came by and lived: had it died there, the story would be the same. */
  get passed(): Cell[] {
    return applicableCells.filter(({ point, decision }) => this.#passed.get(point)?.has(decision) === true);
  }

  /** How often a runner died in this cell. */
  of(cell: Cell): number {
    return this.counts.get(cellName(cell)) ?? 0;
  }

  add(other: Coverage): void {
    for (const [name, count] of other.counts) this.note(name, count);
  }

  /** Cells that were hit less than `least` times. */
  thinCells(least: number): Cell[] {
    return applicableCells.filter((cell) => this.of(cell) < least);
  }
}

export function cellName({ point, decision }: Cell): string {
  return `${point} × ${decision}`;
}
