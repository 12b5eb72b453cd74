/** The scenario of a seed: random, aimed at one cell of the coverage matrix after another. */
import { defaultGroupConfig, type GroupConfig } from '../../../src/core/group.ts';
import { commandSlotsOf, stopsOfCommands, withAcceptance } from './acceptance-of-seed.ts';
import { aimOf, isLate, related } from './aims.ts';
import { aimedCells, applicableCells, type Cell, type CrashPoint, type DecisionKind, isWorkKind } from './coverage.ts';
import {
  type Act,
  type Behaviour,
  type PlannedCrash,
  type Scenario,
  type SimulatedSession,
  type TimedAct,
  type VirtualEnding,
  virtualEndings,
} from './scenario.ts';
import { Seeded, seededFor } from './seeded.ts';

/** The same seed always gives the same scenario. `cuts`: cells at which a runner also dies, once at each. */
export function scenarioOf(seed: number, cuts: readonly number[] = []): Scenario {
  const scenario = isEndless(seed) ? endlessScenario(seed) : aimedScenario(seed);
  if (cuts.length === 0) return scenario;
  const luck = seededFor(seed, `cuts ${cuts}`);
  const crashes = cuts.map((cell) => ({ ...(applicableCells[cell] as Cell), nth: 1, how: howFor(luck) }));
  return { ...scenario, cuts, crashes: [...crashes, ...scenario.crashes] };
}

/** The seed's scenario with power cuts at up to four instants on which nothing else depends. */
export function withPowerCuts(seed: number): Scenario {
  const scenario = scenarioOf(seed);
  const luck = seededFor(seed, 'power cuts');
  const cuts = Array.from(
    { length: luck.int(1, 4) },
    (): TimedAct => ({ atMs: luck.int(300, 20_000), do: 'power-cut' }),
  );
  return { ...scenario, acts: inTime([...scenario.acts, ...cuts]) };
}

/** The seed's scenario with a user who attaches to sessions; processes die during that time. */
export function withTakeOvers(seed: number): Scenario {
  const scenario = scenarioOf(seed);
  const luck = seededFor(seed, 'take-overs');
  const acts = Array.from({ length: luck.int(1, 3) }, (): TimedAct[] => {
    const atMs = luck.int(500, 12_000);
    const attach: TimedAct = { atMs, do: 'attach', index: luck.int(0, 2), messages: luck.int(0, 6) };
    const dies = luck.pick([null, null, 'kill', 'kill-attached', 'kill-attached', 'power-cut'] as const);
    return [attach, ...(dies === null ? [] : [{ atMs: atMs + luck.int(500, 9_000), do: dies }])];
  });
  return { ...scenario, acts: inTime([...scenario.acts, ...acts.flat()]) };
}

/** The seed's scenario with permission requests, which a user answers at some time. */
export function withQuestions(seed: number): Scenario {
  const scenario = scenarioOf(seed);
  const luck = seededFor(seed, 'questions');
  const isCalm = luck.chance(0.5);
  const acts = Array.from({ length: luck.int(2, 6) }, (): TimedAct[] => {
    const atMs = luck.int(1_500, 25_000);
    const answer: TimedAct = { atMs, do: 'answer', words: luck.pick(['allow', 'allow', 'deny']) };
    const dies = luck.pick([null, null, 'kill', 'kill', isCalm ? 'kill' : 'power-cut'] as const);
    return [answer, ...(dies === null ? [] : [{ atMs: atMs + luck.int(-300, 300), do: dies }])];
  });
  const sessions = scenario.sessions.map((session) => ({
    ...session,
    behaviours: session.behaviours.map((one) => ({
      ...one,
      ...(luck.chance(0.7) && one.ending !== 'denied'
        ? { asks: true, tools: true, messages: Math.max(2, one.messages) }
        : {}),
      ...(isCalm ? { forgets: false } : {}),
    })),
  }));
  const config = { ...scenario.config, ask: 'wait', askTimeoutMs: luck.int(1_000, 15_000) } as const;
  const others = isCalm ? scenario.acts.filter((act) => !losesWords.has(act.do)) : scenario.acts;
  const crashes = isCalm ? scenario.crashes.map((crash) => ({ ...crash, how: 'kill' as const })) : scenario.crashes;
  return { ...scenario, config, sessions, crashes, acts: inTime([...others, ...acts.flat()]) };
}

/** After these a conversation may lack claude's last lines. */
const losesWords: ReadonlySet<Act['do']> = new Set(['power-cut', 'disk-full', 'short']);

/** Whether claude's written lines survive. */
export function keepsWords({ acts, crashes, sessions }: Scenario): boolean {
  const isCut = acts.some((act) => losesWords.has(act.do)) || crashes.some(({ how }) => how === 'power-cut');
  return !isCut && !sessions.some(({ behaviours }) => behaviours.some(({ forgets }) => forgets));
}

/** `SIM_SEED` of a scenario: its seed, and its cuts after a colon. */
export function nameOf({ seed, cuts }: Scenario): string {
  return cuts.length === 0 ? String(seed) : `${seed}:${cuts.join('.')}`;
}

/** The scenario with that name. */
export function scenarioNamed(name: string): Scenario {
  const [seed, cuts] = name.split(':');
  return scenarioOf(Number(seed), cuts?.split('.').map(Number));
}

/** Whether the seed's scenario has no aim. */
export function isEndless(seed: number): boolean {
  return seed % endlessEvery === endlessEvery - 1;
}

/** One of this many scenarios has no aim: the API continues to fail after a little work, and nothing else happens. */
const endlessEvery = 251;

function endlessScenario(seed: number): Scenario {
  const luck = seededFor(seed, 'endless');
  const behaviour = { ...behaviourFor(luck, 1, ['overloaded']), messages: 2, tools: true };
  const sessions: SimulatedSession[] = [
    { dependsOn: [], behaviours: Array.from({ length: 40 }, () => behaviour), retries: 1 },
  ];
  const { maxBudgetUsd: _, ...config } = configFor(luck, { point: 'before-append', decision: 'retry' });
  return {
    seed,
    cuts: [],
    config,
    sessions,
    acts: [{ atMs: 0, do: 'run', retryFailed: false }],
    crashes: [],
    logins: [],
  };
}

function aimedScenario(seed: number): Scenario {
  const luck = new Seeded(Math.imul(seed, 0x9e3779b1) ^ 0x51ed27);
  const focus = aimOf(seed);
  const config = configFor(luck, focus);
  const least = needsCompany[focus.decision] ?? 1;
  const most = longStories.has(focus.decision) ? 3 : 5;
  const count = Math.min(most, Math.max(least, luck.pick([1, 1, 2, 2, 3, 3, 4, 5])));
  const sessions = Array.from({ length: count }, (_, index) => sessionFor(luck, index, focus));
  return {
    seed,
    cuts: [],
    config: { ...config, ...commandSlotsOf(seed) },
    sessions: withAcceptance(seed, sessions, focus),
    acts: inTime([...actsFor(luck, focus), ...furtherActs(seed, focus)]),
    crashes: crashesFor(luck, focus),
    logins: luck.chance(0.05) ? [luck.pick(['out', 'silent'] as const)] : [],
  };
}

/** These decisions occur only when this many sessions share something. */
const needsCompany: Partial<Record<DecisionKind, number>> = { 'stop-top-up': 3, 'stop-budget': 3, probe: 2 };

/** Sessions must be stopped for lack of budget at that moment. */
function isMoneyTight(decision: DecisionKind): boolean {
  return decision === 'stop-top-up' || decision === 'stop-budget';
}

/** Scenarios that are long anyway. */
const longStories: ReadonlySet<DecisionKind> = new Set([
  ...(['stop-top-up', 'stop-disk', 'stop-budget', 'stop-stall', 'stop-timeout', 'probe'] as const),
  ...(['wait-limit', 'freeze', 'thaw', 'drain'] as const),
]);
/** These need sessions with many messages. */
const needsTalk: ReadonlySet<DecisionKind> = new Set([
  ...(['stop-top-up', 'stop-disk', 'stop-budget'] as const),
  ...(['freeze', 'thaw', 'drain'] as const),
]);

/** Caps, in US dollars, that cause such a decision. */
const caps: Partial<Record<DecisionKind, readonly number[]>> = {
  'warn-budget': [0.02, 0.06, 0.1, 0.2],
  'exceed-budget': [0.02, 0.06, 0.1, 0.2],
  'stop-budget': [0.1, 0.11, 0.15, 0.16],
  'stop-top-up': [0.18, 0.2, 0.22],
};

function configFor(luck: Seeded, { decision }: Cell): GroupConfig {
  const low = caps[decision] ?? (luck.chance(0.2) ? [0.02, 0.06, 0.1, 0.2, 0.4] : null);
  const maxBudgetUsd = low === null ? luck.pick([undefined, undefined, 1, 5]) : luck.pick(low);
  const isSharing = isMoneyTight(decision);
  const pausesAtLimit = decision === 'settle-limit' || luck.chance(0.15);
  return {
    ...defaultGroupConfig,
    ...(maxBudgetUsd === undefined ? {} : { maxBudgetUsd }),
    onBudgetExceeded: luck.pick(isSharing ? ['pause', 'stop'] : ['pause', 'pause', 'stop', 'warn']),
    maxConcurrentSessions: isSharing ? 3 : luck.pick([1, 2, 2, 3]),
    respectDependencies: luck.chance(0.9),
    pauseOnError: decision === 'settle-failed' ? luck.chance(0.3) : luck.chance(0.7),
    errorThreshold: luck.pick([1, 2, 2, 5]),
    ...(pausesAtLimit ? { onLimit: 'pause' } : {}),
  };
}

/** Outcomes that cause such a decision. */
const endingsFor: Partial<Record<DecisionKind, readonly VirtualEnding[]>> = {
  'settle-limit': ['limit'],
  'wait-limit': ['limit', 'limit', 'limit-unknown'],
  probe: ['limit', 'limit', 'limit-unknown'],
  'wait-backoff': ['unreachable', 'unreachable', 'overloaded'],
  'stop-stall': ['stalls', 'stalls', 'long-tool'],
  'stop-timeout': ['stalls', 'long-tool'],
};

function sessionFor(luck: Seeded, index: number, { decision }: Cell): SimulatedSession {
  const isSharing = decision in needsCompany;
  const dependsOn = Array.from({ length: index }, (_, other) => other).filter(() =>
    luck.chance(isSharing ? 0.05 : 0.35),
  );
  const wanted = endingsFor[decision];
  const fails = wanted ? 0.8 : decision === 'settle-failed' || decision === 'retry' ? 0.6 : isSharing ? 0.1 : 0.2;
  const behaviours = Array.from({ length: 4 }, () => {
    const some = behaviourFor(luck, fails, wanted ?? virtualEndings);
    // A session's cost is requested whenever a tool has ended.
    const behaviour = isMoneyTight(decision)
      ? { ...some, ...(decision === 'stop-budget' ? { tools: true, slowness: 0.3 } : { tools: false }) }
      : isWorkKind(decision)
        ? { ...some, messages: 1 }
        : some;
    // The first one is short and leaves its share of the budget to the others.
    if (!needsTalk.has(decision) || index === 0) return behaviour;
    return { ...behaviour, messages: luck.int(4, 10) };
  });
  const mayStall = behaviours.some(({ ending }) => ending === 'stalls' || ending === 'long-tool');
  const isTimed = decision === 'stop-timeout' || luck.chance(0.05);
  return {
    dependsOn,
    behaviours,
    ...(!isSharing && luck.chance(0.12) ? { maxBudgetUsd: luck.pick([0.03, 0.1, 0.5]) } : {}),
    ...(luck.chance(0.4) ? { retries: luck.int(0, 1) } : {}),
    ...(isTimed ? { timeoutMs: luck.int(2_000, 12_000) } : {}),
    ...(mayStall ? { stallTimeoutMs: luck.int(6_000, 10_000) } : {}),
  };
}

function behaviourFor(luck: Seeded, fails: number, wanted: readonly VirtualEnding[]): Behaviour {
  return {
    messages: luck.int(1, 4),
    tools: luck.chance(0.6),
    ending: luck.chance(fails) ? luck.pick(wanted) : 'success',
    slowness: luck.pick([0.3, 0.3, 1, 2]),
    interrupt: luck.pick(['obeyed', 'obeyed', 'obeyed', 'slow', 'ignored']),
    term: luck.pick(['obeyed', 'obeyed', 'obeyed', 'slow', 'ignored', 'success-while-dying']),
    tool: luck.pick(['tame', 'marked', 'marked', 'wiped', 'stubborn']),
    pieces: luck.chance(0.3),
    forgets: luck.chance(0.3),
    nearLimit: luck.chance(0.05),
  };
}

function actsFor(luck: Seeded, { point, decision }: Cell): TimedAct[] {
  const acts: TimedAct[] = [{ atMs: 0, do: 'run', retryFailed: false }];
  const wantsPause = decision === 'stop' || decision === 'settle-paused' || decision === 'resume';
  if (wantsPause || luck.chance(0.15)) {
    const atMs = luck.int(200, 5_000);
    for (const laterMs of wantsPause ? [0, 4_000, 8_000] : [luck.int(0, 4_000)]) {
      acts.push({ atMs: atMs + laterMs, do: 'signal', signal: luck.pick(['SIGINT', 'SIGTERM']) });
    }
    if (luck.chance(0.15)) acts.push({ atMs: atMs + luck.int(1, 1_500), do: 'signal', signal: 'SIGINT' });
  }
  acts.push(...actsTowards(luck, decision));
  if (point === 'during-adopt') acts.push(...killsFor(luck, decision));
  if (luck.chance(0.05)) acts.push(...deleteInTrouble(luck));
  for (let extra = luck.int(0, 3); extra > 0; extra -= 1) acts.push({ atMs: luck.int(0, 15_000), ...extraAct(luck) });
  return acts;
}

/** With separate random numbers, so that the rest of the scenario is unchanged. */
function furtherActs(seed: number, { decision }: Cell): TimedAct[] {
  const acts = decision === 'stop-accept' ? stopsOfCommands(seed) : [];
  const luck = seededFor(seed, 'said and paused');
  if (!luck.chance(0.06)) return acts;
  const atMs = luck.int(300, 8_000);
  const index = luck.int(0, 2);
  // Usually before it can have been read.
  return [...acts, { atMs, do: 'say', index }, { atMs: atMs + luck.delay(300, 3_000), do: 'session-pause', index }];
}

function inTime(acts: readonly TimedAct[]): TimedAct[] {
  return acts.toSorted((a, b) => a.atMs - b.atMs);
}

/** What a user or the machine must do before such a decision. */
function actsTowards(luck: Seeded, decision: DecisionKind): TimedAct[] {
  const atMs = luck.int(600, 5_000);
  switch (decision) {
    case 'freeze':
    case 'thaw':
      return [0, 2_400, 4_800, 7_200, 9_600].flatMap((laterMs): TimedAct[] => [
        { atMs: atMs + laterMs, do: 'pause', mode: 'freeze' },
        ...(luck.chance(0.7) ? [{ atMs: atMs + laterMs + luck.int(100, 1_900), do: 'thaw' } as const] : []),
      ]);
    case 'drain':
      return [atMs, atMs + 4_000, atMs + 8_000].map((beginMs) => ({ atMs: beginMs, do: 'pause', mode: 'drain' }));
    case 'stop-top-up':
      // The budget is raised a little, again and again, for the session that needs it first.
      return [2_000, 3_500, 5_000, 6_500, 8_000].map((raiseMs) => ({ atMs: raiseMs, do: 'raise-budget', byUsd: 0.12 }));
    case 'stop-disk':
      return [1_500, 7_000, 12_500].map((lowMs) => ({
        atMs: lowMs + luck.int(0, 2_000),
        do: 'short',
        of: 'disk',
        forMs: luck.int(1_500, 3_000),
      }));
    case 'wait-memory':
    case 'wait-disk':
      return [
        { atMs: luck.int(0, 1_500), do: 'short', of: decision.slice(5) as 'memory', forMs: luck.int(3_000, 20_000) },
      ];
    default:
      return [];
  }
}

/** Runners must die before anything can be adopted: while a claude works, or while it is being stopped. */
function killsFor(luck: Seeded, decision: DecisionKind): TimedAct[] {
  const kill = (least: number, most: number): TimedAct => ({ atMs: luck.int(least, most), do: 'kill' });
  if (decision === 'freeze') {
    const atMs = luck.int(1_000, 3_000);
    return [{ atMs, do: 'pause', mode: 'freeze' }, kill(atMs + 600, atMs + 5_000), kill(9_000, 12_000)];
  }
  if (decision === 'probe' || decision.startsWith('stop-')) return [];
  if (decision === 'start') return [kill(500, 3_000), kill(3_000, 6_000)];
  if (decision === 'stop') {
    const atMs = luck.int(600, 3_000);
    return [{ atMs, do: 'signal', signal: 'SIGINT' }, kill(atMs + 5, atMs + 400)];
  }
  const stop: TimedAct[] = [{ atMs: luck.int(700, 2_500), do: 'signal', signal: 'SIGINT' }];
  const again: TimedAct[] = [{ atMs: 7_000, do: 'run', retryFailed: true }];
  return [...(decision === 'resume' ? stop : again), kill(4_000, 7_000), kill(7_500, 9_500), kill(9_500, 13_000)];
}

/** A group without a runner is deleted while the disk is full. */
function deleteInTrouble(luck: Seeded): TimedAct[] {
  const atMs = luck.int(500, 4_000);
  return [
    { atMs, do: 'kill' },
    { atMs: atMs + 10, do: 'delete' },
    { atMs: atMs + luck.int(0, 400), do: 'disk-full', forMs: luck.int(100, 4_000) },
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
    () => ({ do: 'clock-jump', byMs: luck.pick([60_000, 3_600_000, 86_400_000]) }),
    () => ({ do: 'add-session', dependsOnLast: luck.chance(0.5) }),
    () => ({ do: 'remove-session', index: luck.int(0, 4) }),
    () => ({ do: 'pause', mode: luck.pick(['now', 'drain', 'freeze']) }),
    () => ({ do: 'pause', mode: luck.pick(['now', 'drain', 'freeze']) }),
    () => ({ do: 'thaw' }),
    () => ({ do: luck.pick(['session-pause', 'session-resume', 'session-retry', 'say']), index: luck.int(0, 4) }),
    () => ({ do: luck.pick(['session-pause', 'session-resume', 'session-retry', 'say']), index: luck.int(0, 4) }),
    () => ({ do: 'run-only', index: luck.int(0, 4) }),
    () => ({ do: 'raise-budget', byUsd: luck.pick([0.01, 0.1, 1]) }),
    () => ({ do: 'short', of: luck.pick(['memory', 'disk']), forMs: luck.int(500, 10_000) }),
    () => ({ do: 'delete' }),
  ];
  return luck.pick(kinds)();
}

function howFor(luck: Seeded): PlannedCrash['how'] {
  return luck.chance(0.25) ? 'power-cut' : 'kill';
}

function crashesFor(luck: Seeded, { point, decision }: Cell): PlannedCrash[] {
  const how = () => howFor(luck);
  if (point === 'during-adopt') {
    const first: PlannedCrash[] = diesFirst(decision).map((before) => ({
      point: before,
      decision,
      nth: 1,
      how: 'kill',
    }));
    return [...first, ...[1, 1].map((nth) => ({ point, decision, nth, how: how() }))];
  }
  const rare = isRare(decision);
  const crashes: PlannedCrash[] = [{ point, decision, nth: rare ? 1 : luck.int(1, 2), how: how() }];
  // The same decision at other points, whenever it occurs again.
  for (const cell of related({ point, decision })) {
    if (luck.chance(rare ? 0.35 : 0.7)) crashes.push({ ...cell, nth: 1, how: how() });
  }
  // Other decisions on the way are interrupted as well, unless that might prevent a late event.
  const share = !rare ? 0.7 : isLate(point) ? 0 : 0.5;
  for (const [other, cells] of cellsByDecision) {
    if (other === decision || !luck.chance(share)) continue;
    crashes.push({ ...luck.pick(cells), nth: luck.chance(0.7) ? 1 : 2, how: how() });
  }
  return crashes;
}

const cellsByDecision = Map.groupBy(aimedCells, (cell) => cell.decision);

/** Where a runner dies so that the next one finds such a decision about a live attempt. */
function diesFirst(decision: DecisionKind): CrashPoint[] {
  if (decision === 'probe') return ['after-prompt', 'after-prompt'];
  return decision.startsWith('stop-') ? ['after-fsync', 'after-fsync'] : [];
}

/** Decisions that most scenarios reach once at best. */
function isRare(decision: DecisionKind): boolean {
  return !/^(?:start|resume|retry|stop|accept|approve)$/.test(decision);
}
