/**
 * The coverage matrix: every kind of decision times every point at which a runner can die. Some cells cannot exist: a
 * settled group has no worker, and a worker that is being stopped was spawned and prompted before.
 */

/** Decisions about an attempt: how it started, or why it must stop. `probe` starts the first one after a limit. */
const startKinds = ['start', 'resume', 'retry', 'probe'] as const;
const stopKinds = ['stop', 'stop-top-up', 'stop-disk', 'stop-budget', 'stop-stall', 'stop-timeout'] as const;
/** Decisions about work after claude's part: acceptance, its stop, and the verdict. */
const workKinds = ['accept', 'stop-accept', 'approve', 'reject'] as const;
/** What a group may wait for, by the log. */
const loggedWaits = ['wait-limit', 'wait-backoff', 'freeze'] as const;

/** The group's decisions; settling by its outcomes, budget notices by their two kinds. */
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
/** About a session's own cap. Scenarios reach these without being aimed at them. */
const ownNotices = ['warn-own-budget', 'exceed-own-budget'] as const;
const waits = [...loggedWaits, 'wait-memory', 'wait-disk'] as const;
export type DecisionKind = (typeof decisionKinds)[number] | (typeof ownNotices)[number] | (typeof waits)[number];

/** Points that concern what is being logged: the decisions of the current batch. */
const batchPoints = ['before-append', 'after-append', 'after-fsync', 'before-snapshot', 'after-snapshot'] as const;
/** Points that concern one attempt: the last decision about it. */
const launchPoints = ['after-spawn', 'after-prompt'] as const;
const attemptPoints = ['before-result-read', 'after-result-read', 'during-adopt', 'during-reap'] as const;

/** Points at which an acceptance command runs, or its leftovers are ended. */
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

/** Points at which scenarios are aimed. A seed gives the same scenario as long as these do not change. */
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

/** Whether such a decision occurs only with acceptance. */
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

  /** A runner passed this cell and survived. */
  pass({ point, decision }: Cell): void {
    const decisions = this.#passed.get(point) ?? new Set();
    this.#passed.set(point, decisions.add(decision));
  }

  /** The cells that a runner passed and survived: had it died there, the scenario up to it would be the same. */
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
