/** What a simulation is made of, as plain data: the group, its claudes, and what user and machine do to them. */
import type { AttemptKind } from '../../src/core/event.ts';
import { defaultGroupConfig, type GroupConfig } from '../../src/core/group.ts';
import { applicableCells, type Cell, type CrashPoint, type DecisionKind } from './coverage.ts';
import { Seeded } from './seeded.ts';

/** How a claude process ends its task; each is a row of the table in DESIGN §5 and its sources. */
export const endings = [
  'success',
  'denied',
  'not-sent',
  'limit',
  'overloaded',
  'not-logged-in',
  'billing',
  'unknown-model',
  'too-long',
  'max-turns',
  'exit-code',
  'silent',
  'silent-code',
  'killed',
  'hangs',
] as const;
export type Ending = (typeof endings)[number];

/** What one claude process does. */
export interface Behaviour {
  readonly messages: number;
  readonly tools: boolean;
  readonly ending: Ending;
  /** Factor on how long a message takes. */
  readonly slowness: number;
  readonly interrupt: 'obeyed' | 'slow' | 'ignored';
  readonly term: 'obeyed' | 'slow' | 'ignored' | 'success-while-dying';
  /** A tool that outlives its claude: with its mark, or with a wiped environment, or deaf to SIGTERM. */
  readonly tool: 'tame' | 'marked' | 'wiped' | 'stubborn';
  /** Lines come in pieces. */
  readonly pieces: boolean;
  /** The conversation does not survive a SIGKILL. */
  readonly forgets: boolean;
}

export interface SessionSketch {
  readonly dependsOn: readonly number[];
  readonly maxBudgetUsd?: number;
  /** By process that was given a prompt; later ones succeed. */
  readonly behaviours: readonly Behaviour[];
}

export type Act =
  | { readonly do: 'run'; readonly retryFailed: boolean }
  | { readonly do: 'signal'; readonly signal: 'SIGINT' | 'SIGTERM' | 'SIGHUP' }
  | { readonly do: 'kill' }
  | { readonly do: 'power-cut' }
  | { readonly do: 'disk-full'; readonly forMs: number }
  | { readonly do: 'disk-fault'; readonly calls: number; readonly onRead: boolean }
  | { readonly do: 'clock-jump'; readonly byMs: number }
  | { readonly do: 'add-session'; readonly dependsOnLast: boolean }
  | { readonly do: 'remove-session'; readonly index: number }
  | { readonly do: 'pause' }
  | { readonly do: 'delete' };

/** Something done at a time, milliseconds from the start. */
export type TimedAct = { readonly atMs: number } & Act;

/** The runner dies at the n-th time it passes the point with such a decision at hand. */
export interface Crash {
  readonly point: CrashPoint;
  readonly decision: DecisionKind;
  readonly nth: number;
  readonly how: 'kill' | 'power-cut';
}

export interface Scenario {
  readonly seed: number;
  readonly config: GroupConfig;
  readonly sessions: readonly SessionSketch[];
  readonly acts: readonly TimedAct[];
  readonly crashes: readonly Crash[];
  /** Outcomes of `auth status`, in order; later ones are logged in. */
  readonly logins: readonly ('in' | 'out' | 'silent')[];
}

/** The dearest message a virtual claude is ever charged for, US dollars. */
export const dearestMessageUsd = 0.031;

const attemptKinds: ReadonlySet<string> = new Set<AttemptKind>(['start', 'resume', 'retry']);

/** Cells that need a longer story are aimed at more often. */
const aims: readonly Cell[] = [
  ...applicableCells,
  ...applicableCells.filter(
    ({ point, decision }) =>
      point === 'during-adopt' || /^(?:stop|resume|warn-budget|settle-completed)$/.test(decision),
  ),
];

/** The scenario of a seed. Its crashes aim at the cells of the coverage matrix in turn. */
export function scenarioOf(seed: number): Scenario {
  const luck = new Seeded(Math.imul(seed, 0x9e3779b1) ^ 0x51ed27);
  const focus = aims[seed % aims.length] as Cell;
  const config = configFor(luck, focus);
  const count = luck.pick([1, 1, 2, 2, 3, 3, 4, 5]);
  const sessions = Array.from({ length: count }, (_, index) => sessionFor(luck, index, focus));
  return {
    seed,
    config,
    sessions,
    acts: actsFor(luck, focus),
    crashes: crashesFor(luck, focus),
    logins: luck.chance(0.05) ? [luck.pick(['out', 'silent'] as const)] : [],
  };
}

function configFor(luck: Seeded, { decision }: Cell): GroupConfig {
  const isAboutMoney = decision === 'warn-budget' || decision === 'exceed-budget';
  const isLow = isAboutMoney || luck.chance(0.25);
  const maxBudgetUsd = isLow ? luck.pick([0.02, 0.06, 0.1, 0.2]) : luck.pick([undefined, undefined, 1, 5]);
  return {
    ...defaultGroupConfig,
    ...(maxBudgetUsd === undefined ? {} : { maxBudgetUsd }),
    onBudgetExceeded: luck.pick(['pause', 'pause', 'stop', 'warn']),
    maxConcurrentSessions: luck.pick([1, 2, 2, 3]),
    respectDependencies: luck.chance(0.9),
    pauseOnError: decision === 'settle-failed' ? luck.chance(0.3) : luck.chance(0.7),
    errorThreshold: luck.pick([1, 2, 2, 5]),
  };
}

function sessionFor(luck: Seeded, index: number, { decision }: Cell): SessionSketch {
  const dependsOn = Array.from({ length: index }, (_, other) => other).filter(() => luck.chance(0.35));
  const fails = decision === 'settle-failed' || decision === 'retry' ? 0.6 : 0.2;
  const behaviours = Array.from({ length: 3 }, () => behaviourFor(luck, fails));
  return { dependsOn, behaviours, ...(luck.chance(0.12) ? { maxBudgetUsd: luck.pick([0.03, 0.1, 0.5]) } : {}) };
}

function behaviourFor(luck: Seeded, fails: number): Behaviour {
  return {
    messages: luck.int(1, 4),
    tools: luck.chance(0.6),
    ending: luck.chance(fails) ? luck.pick(endings) : 'success',
    slowness: luck.pick([0.3, 1, 1, 2]),
    interrupt: luck.pick(['obeyed', 'obeyed', 'obeyed', 'slow', 'ignored']),
    term: luck.pick(['obeyed', 'obeyed', 'obeyed', 'slow', 'ignored', 'success-while-dying']),
    tool: luck.pick(['tame', 'marked', 'marked', 'wiped', 'stubborn']),
    pieces: luck.chance(0.3),
    forgets: luck.chance(0.3),
  };
}

function actsFor(luck: Seeded, { point, decision }: Cell): TimedAct[] {
  const acts: TimedAct[] = [{ atMs: 0, do: 'run', retryFailed: false }];
  const wantsPause = decision === 'stop' || decision === 'settle-paused' || decision === 'resume';
  if (wantsPause || luck.chance(0.2)) {
    const atMs = luck.int(200, 9_000);
    acts.push({ atMs, do: 'signal', signal: luck.pick(['SIGINT', 'SIGTERM']) });
    if (luck.chance(0.15)) acts.push({ atMs: atMs + luck.int(1, 1_500), do: 'signal', signal: 'SIGINT' });
  }
  if (point === 'during-adopt') acts.push(...killsFor(luck, decision));
  if (luck.chance(0.05)) acts.push(...deleteInTrouble(luck));
  for (let extra = luck.int(0, 3); extra > 0; extra -= 1) acts.push({ atMs: luck.int(0, 15_000), ...extraAct(luck) });
  return acts.sort((a, b) => a.atMs - b.atMs);
}

/** Runners have to die before anything can be adopted: while a claude works, or while it is being stopped. */
function killsFor(luck: Seeded, decision: DecisionKind): TimedAct[] {
  const kill = (least: number, most: number): TimedAct => ({ atMs: luck.int(least, most), do: 'kill' });
  if (decision === 'start') return [kill(500, 3_000), kill(3_000, 6_000)];
  if (decision === 'stop') {
    const atMs = luck.int(600, 3_000);
    return [{ atMs, do: 'signal', signal: 'SIGINT' }, kill(atMs + 5, atMs + 400)];
  }
  const stop: TimedAct[] = [{ atMs: luck.int(700, 2_500), do: 'signal', signal: 'SIGINT' }];
  const again: TimedAct[] = [{ atMs: 7_000, do: 'run', retryFailed: true }];
  return [...(decision === 'resume' ? stop : again), kill(4_000, 7_000), kill(7_500, 9_500), kill(9_500, 13_000)];
}

/** A group whose runner is gone is deleted while the disk fails. */
function deleteInTrouble(luck: Seeded): TimedAct[] {
  const atMs = luck.int(500, 4_000);
  const trouble: Act = luck.chance(0.5)
    ? { do: 'disk-full', forMs: luck.int(100, 4_000) }
    : { do: 'disk-fault', calls: luck.int(1, 2), onRead: luck.chance(0.5) };
  return [
    { atMs, do: 'kill' },
    { atMs: atMs + 10, do: 'delete' },
    { atMs: atMs + luck.int(0, 400), ...trouble },
  ];
}

function extraAct(luck: Seeded): Act {
  const kinds: readonly (() => Act)[] = [
    () => ({ do: 'run', retryFailed: luck.chance(0.5) }),
    () => ({ do: 'signal', signal: luck.pick(['SIGINT', 'SIGTERM', 'SIGHUP']) }),
    () => ({ do: 'kill' }),
    () => ({ do: 'kill' }),
    () => ({ do: 'power-cut' }),
    () => ({ do: 'disk-full', forMs: luck.int(1, 4_000) }),
    () => ({ do: 'disk-fault', calls: luck.int(1, 2), onRead: luck.chance(0.5) }),
    () => ({ do: 'clock-jump', byMs: luck.pick([-3_600_000, -1_500, 60_000, 86_400_000]) }),
    () => ({ do: 'add-session', dependsOnLast: luck.chance(0.5) }),
    () => ({ do: 'remove-session', index: luck.int(0, 4) }),
    () => ({ do: 'pause' }),
    () => ({ do: 'delete' }),
  ];
  return luck.pick(kinds)();
}

function crashesFor(luck: Seeded, { point, decision }: Cell): Crash[] {
  const how = () => (luck.chance(0.25) ? 'power-cut' : 'kill');
  const aimed = luck.int(1, attemptKinds.has(decision) || decision === 'stop' ? 3 : 2);
  const crashes: Crash[] = [];
  if (point === 'during-adopt') return [1, 1].map((nth) => ({ point, decision, nth, how: how() }));
  for (let count = 0; count < aimed; count += 1) crashes.push({ point, decision, nth: luck.int(1, 2), how: how() });
  for (let count = luck.int(0, 3); count > 0; count -= 1) {
    const cell = luck.pick(applicableCells);
    crashes.push({ ...cell, nth: luck.int(1, 3), how: how() });
  }
  return crashes;
}
