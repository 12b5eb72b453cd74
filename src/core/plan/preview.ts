/**
 * A preview of a group's run before it costs anything: waves, the critical path, whether the caps suffice and the
 * likely cost. Pure; nothing starts or is written.
 */
import { defined } from '../defined.ts';
import { roundUsd, type SessionDefinition, type SessionId } from '../group.ts';
import { ownBudgetLeft, type SessionRecord } from '../session-state.ts';
import type { GroupState } from '../state.ts';
import { formatMoney } from '../text.ts';
import { planOf } from './plan.ts';
import { cacheKind, sendsRequests, similarMin } from './warm-cache.ts';

export interface Preview {
  /** Incomplete sessions, by the wave in which they could start with unlimited slots. */
  readonly waves: readonly (readonly SessionId[])[];
  /** The longest chain of incomplete sessions: by forecast time if all have one, otherwise by number. */
  readonly criticalPath: readonly SessionId[];
  readonly forecasts: ReadonlyMap<SessionId, Forecast>;
  readonly withoutHistory: readonly SessionId[];
  /** Sum over sessions with a forecast; null without any. */
  readonly costUsd: Spread | null;
  /** Time of the critical path, milliseconds; null when a session on it has no forecast. */
  readonly criticalMs: Spread | null;
  /** Sessions for whose first request others of their wave wait (warm-cache.ts). */
  readonly warmUps: readonly WarmUp[];
  readonly budgetWarnings: readonly string[];
  /** Waves of a matrix, each with a decision before the next one. */
  readonly canaryWaves: readonly CanaryWave[];
}

export interface CanaryWave {
  readonly sessions: readonly SessionId[];
  /** Their usual maximum cost, US dollars; null when one has no history. */
  readonly quoteUsd: number | null;
}

export interface WarmUp {
  readonly wave: number;
  readonly first: SessionId;
  readonly others: number;
}

const leastUsd = 0.05;

export function previewOf(
  state: GroupState,
  history: History,
  liveUsd: ReadonlyMap<SessionId, number> = new Map(),
): Preview {
  const { graph } = planOf(state);
  const open = graph.order.filter((id) => state.sessions.get(id)?.state.status !== 'completed');
  const respects = state.group.config.respectDependencies;
  const forecasts = new Map<SessionId, Forecast>();
  for (const id of open) {
    const { definition } = state.sessions.get(id) as SessionRecord;
    const forecast = history.forecast(kindOf(definition, state));
    if (forecast !== null) forecasts.set(id, forecast);
  }
  const waves = respects ? wavesOf(state, open) : open.length === 0 ? [] : [open];
  const criticalPath = respects ? longestPath(state, open, forecasts) : [];
  const known = open.flatMap((id) => forecasts.get(id) ?? []);
  const onPath = criticalPath.flatMap((id) => forecasts.get(id) ?? []);
  return {
    waves,
    criticalPath,
    forecasts,
    withoutHistory: open.filter((id) => !forecasts.has(id)),
    costUsd: known.length === 0 ? null : sum(known.map(({ costUsd }) => costUsd)),
    criticalMs:
      onPath.length === 0 || onPath.length < criticalPath.length ? null : sum(onPath.map((one) => one.durationMs)),
    warmUps: warmUpsOf(state, waves),
    budgetWarnings: budgetWarnings(state, open, known, liveUsd),
    canaryWaves: canaryWaves(state, history),
  };
}

export function canaryWaves(state: GroupState, history: History): CanaryWave[] {
  const waves = Map.groupBy(planOf(state).waves.keys(), (id) => planOf(state).waves.get(id) ?? 0);
  return [...waves]
    .toSorted(([one], [other]) => one - other)
    .map(([, sessions]) => {
      const forecasts = sessions.map((id) =>
        history.forecast(kindOf((state.sessions.get(id) as SessionRecord).definition, state)),
      );
      const known = forecasts.flatMap((forecast) => forecast ?? []);
      const isKnown = known.length === sessions.length;
      return { sessions, quoteUsd: isKnown ? roundUsd(sum(known.map(({ costUsd }) => costUsd)).p90) : null };
    });
}

/** The key of comparable sessions: the prompt template and the requested model. */
export function kindOf({ template, model }: SessionDefinition, state: GroupState): Kind {
  const asked = model ?? state.group.config.model;
  return defined({ template, model: asked });
}

function wavesOf(state: GroupState, open: readonly SessionId[]): SessionId[][] {
  const { waves: canary } = planOf(state);
  const depth = new Map<SessionId, number>();
  const waves: SessionId[][] = [];
  /** The first wave in which a session of the present canary wave can start. */
  let begin = 0;
  const add = (id: SessionId) => {
    const { dependsOn } = (state.sessions.get(id) as SessionRecord).definition;
    const first = canary.has(id) ? begin : 0;
    const wave = dependsOn.reduce((deepest, other) => Math.max(deepest, (depth.get(other) ?? -1) + 1), first);
    depth.set(id, wave);
    const known = waves[wave];
    if (known === undefined) waves[wave] = [id];
    else known.push(id);
  };
  const later = new Set(open);
  for (let wave = 1; later.size > 0; wave += 1) {
    const isLater = (id: SessionId) => (canary.get(id) ?? 0) > wave;
    for (const id of open) {
      const { dependsOn } = (state.sessions.get(id) as SessionRecord).definition;
      if (!later.has(id) || isLater(id) || dependsOn.some((other) => later.has(other))) continue;
      later.delete(id);
      add(id);
    }
    begin = waves.length;
  }
  return waves;
}

/**
 * With one slot no session waits for another, and sessions without a slot do not wait either. Later waves find the
 * cache that an earlier wave has filled: they start right after it.
 */
function warmUpsOf(state: GroupState, waves: readonly (readonly SessionId[])[]): WarmUp[] {
  const { warmCache, maxConcurrentSessions } = state.group.config;
  if (warmCache === false || maxConcurrentSessions < 2) return [];
  const { chain } = planOf(state).graph;
  const filled = new Set<string>();
  return waves.flatMap((wave, index) => {
    const kinds = new Map<string, SessionId[]>();
    for (const id of wave) {
      const record = state.sessions.get(id) as SessionRecord;
      if (!sendsRequests(record)) continue;
      const kind = cacheKind(state.group, record.definition);
      const alike = kinds.get(kind) ?? [];
      alike.push(id);
      kinds.set(kind, alike);
    }
    return [...kinds].flatMap(([kind, ids]): WarmUp[] => {
      if (filled.has(kind)) return [];
      filled.add(kind);
      if (ids.length < similarMin) return [];
      const first = ids.reduce((best, id) => ((chain.get(id) ?? 0) > (chain.get(best) ?? 0) ? id : best));
      return [{ wave: index + 1, first, others: Math.min(ids.length, maxConcurrentSessions) - 1 }];
    });
  });
}

function longestPath(
  state: GroupState,
  open: readonly SessionId[],
  forecasts: ReadonlyMap<SessionId, Forecast>,
): SessionId[] {
  const isTimed = open.every((id) => forecasts.has(id));
  const length = new Map<SessionId, number>();
  const before = new Map<SessionId, SessionId>();
  let last: SessionId | undefined;
  for (const id of open) {
    const { dependsOn } = (state.sessions.get(id) as SessionRecord).definition;
    let longest = 0;
    for (const dependency of dependsOn) {
      const until = length.get(dependency) ?? 0;
      if (until <= longest) continue;
      longest = until;
      before.set(id, dependency);
    }
    // Without times every session counts the same.
    const own = isTimed ? Math.max(1, forecasts.get(id)?.durationMs.p50 ?? 1) : 1;
    length.set(id, longest + own);
    if (last === undefined || longest + own > (length.get(last) ?? 0)) last = id;
  }
  const path: SessionId[] = [];
  for (let id = last; id !== undefined; id = before.get(id)) path.unshift(id);
  return path;
}

function budgetWarnings(
  state: GroupState,
  open: readonly SessionId[],
  known: readonly Forecast[],
  liveUsd: ReadonlyMap<SessionId, number>,
): string[] {
  const { maxBudgetUsd: cap, onBudgetExceeded, maxConcurrentSessions } = state.group.config;
  if (cap === undefined || open.length === 0) return [];
  const live = [...liveUsd.values()].reduce((total, usd) => total + usd, 0);
  const left = roundUsd(cap - state.usage.costUsd - live);
  if (left <= 0) return ['The budget is exhausted.'];
  const warnings: string[] = [];
  const own = roundUsd(open.reduce((total, id) => total + ownLeft(state, id, liveUsd.get(id)), 0));
  if (own > left) {
    warnings.push(`The sessions’ caps add up to ${formatMoney(own)}, more than the ${formatMoney(left)} left.`);
  }
  const atOnce = Math.min(maxConcurrentSessions, open.length);
  if (onBudgetExceeded !== 'warn' && left < atOnce * leastUsd) {
    warnings.push(`The remaining ${formatMoney(left)} is not enough for ${atOnce} sessions at once.`);
  }
  const expected = sum(known.map(({ costUsd }) => costUsd));
  if (expected.p50 > left) {
    warnings.push(`Similar sessions usually cost ${formatMoney(expected.p50)}, more than is left.`);
  } else if (expected.p90 > left) {
    warnings.push(`Similar sessions may cost up to ${formatMoney(expected.p90)}, more than is left.`);
  }
  return warnings;
}

function ownLeft({ sessions }: GroupState, id: SessionId, liveUsd = 0): number {
  const record = sessions.get(id) as SessionRecord;
  return record.definition.maxBudgetUsd === undefined ? 0 : Math.max(0, ownBudgetLeft(record) - liveUsd);
}

function sum(spreads: readonly Spread[]): Spread {
  return spreads.reduce((total, { p50, p90 }) => ({ p50: total.p50 + p50, p90: total.p90 + p90 }), { p50: 0, p90: 0 });
}

// The likely cost of sessions, from earlier ones of the same kind. Without history there is no estimate: users
// would rely on an invented figure.

export interface Sample {
  /** Name of the prompt template; absent for a free prompt. */
  readonly template?: string;
  /** The requested model, or the one that claude chose. */
  readonly model?: string;
  readonly costUsd: number;
  /** Milliseconds over all attempts. */
  readonly durationMs: number;
}

/** Half of the earlier sessions were below `p50`, nine of ten below `p90`. */
export interface Spread {
  readonly p50: number;
  readonly p90: number;
}

export interface Forecast {
  /** Number of earlier sessions. */
  readonly samples: number;
  readonly costUsd: Spread;
  readonly durationMs: Spread;
}

export type Kind = Pick<Sample, 'template' | 'model'>;

export interface History {
  forecast(kind: Kind): Forecast | null;
}

export function costHistory(samples: readonly Sample[]): History {
  const byKind = new Map<string, Sample[]>();
  for (const sample of samples) {
    const key = keyOf(sample);
    const known = byKind.get(key);
    if (known === undefined) byKind.set(key, [sample]);
    else known.push(sample);
  }
  return {
    forecast(kind) {
      const found = byKind.get(keyOf(kind));
      if (found === undefined) return null;
      return {
        samples: found.length,
        costUsd: spreadOf(found.map(({ costUsd }) => costUsd)),
        durationMs: spreadOf(found.map(({ durationMs }) => durationMs)),
      };
    },
  };
}

function keyOf({ template, model }: Kind): string {
  return JSON.stringify([template ?? null, model ?? null]);
}

function spreadOf(values: readonly number[]): Spread {
  const sorted = values.toSorted((a, b) => a - b);
  return { p50: nearestRank(sorted, 0.5), p90: nearestRank(sorted, 0.9) };
}

/** The nearest-rank percentile: always a value that really occurred. */
function nearestRank(sorted: readonly number[], share: number): number {
  return sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)] as number;
}

// The remaining time of a run, from the times of earlier sessions of the same kind. Without history there is no
// estimate.

/** Share of its usual time that an overdue session is assumed to need. */
const overdueShare = 0.1;

/**
 * Milliseconds until all sessions of this run are over, each with its usual time and the present slots and
 * dependencies; null when a session has no history, or nothing is left to run.
 */
export function remainingMs(state: GroupState, history: History, nowMs: number): number | null {
  const open = openSessions(state);
  if (open.size === 0) return null;
  const lengths = new Map<SessionId, number>();
  for (const id of open) {
    const length = lengthOf(state, state.sessions.get(id) as SessionRecord, history, nowMs);
    if (length === null) return null;
    lengths.set(id, length);
  }
  return lengthWithSlots(state, lengths);
}

function openSessions(state: GroupState): ReadonlySet<SessionId> {
  const open = new Set<SessionId>();
  const respects = state.group.config.respectDependencies;
  for (const id of planOf(state).graph.order) {
    const record = state.sessions.get(id);
    if (record === undefined || !(record.state.status === 'running' || record.queued)) continue;
    const isReady = record.definition.dependsOn.every(
      (other) => open.has(other) || state.sessions.get(other)?.state.status === 'completed',
    );
    if (isReady || !respects) open.add(id);
  }
  return open;
}

function lengthOf(state: GroupState, { definition, state: session }: SessionRecord, history: History, nowMs: number) {
  const usual = history.forecast(kindOf(definition, state))?.durationMs.p50;
  if (usual === undefined) return null;
  if (session.status !== 'running') return usual;
  const taken = Math.max(0, nowMs - Date.parse(session.attempt.startedAt));
  return Math.max(usual - taken, usual * overdueShare);
}

function lengthWithSlots(state: GroupState, lengths: ReadonlyMap<SessionId, number>): number {
  const { maxConcurrentSessions, respectDependencies } = state.group.config;
  const ends = new Map<SessionId, number>();
  const waiting = new Set(lengths.keys());
  let now = 0;
  const start = (id: SessionId): void => {
    waiting.delete(id);
    ends.set(id, now + (lengths.get(id) ?? 0));
  };
  const isOver = (id: SessionId): boolean => !waiting.has(id) && !ends.has(id);
  for (const id of state.running) if (waiting.has(id)) start(id);
  while (waiting.size > 0 || ends.size > 0) {
    for (const id of waiting) {
      if (ends.size >= maxConcurrentSessions) break;
      const { dependsOn } = (state.sessions.get(id) as SessionRecord).definition;
      if (!respectDependencies || dependsOn.every(isOver)) start(id);
    }
    if (ends.size === 0) return now;
    now = Math.min(...ends.values());
    for (const [id, end] of ends) if (end <= now) ends.delete(id);
  }
  return now;
}
