/**
 * The remaining time of a run, from the times of earlier sessions of the same kind. Without history there is no
 * estimate.
 */
import type { SessionId } from '../group.ts';
import type { SessionRecord } from '../session-state.ts';
import type { GroupState } from '../state.ts';
import type { History } from './forecast.ts';
import { planOf } from './plan.ts';
import { kindOf } from './preview.ts';

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
