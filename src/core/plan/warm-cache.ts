/**
 * Sessions of one kind begin their requests with the same tools and the same system prompt, and the server keeps such a
 * beginning in its prompt cache for some minutes. A request that is sent before the first one's answer pays for writing
 * it once more; a later request reads it for a fraction. So one session of a kind goes first, and the others start with
 * its first answer.
 *
 * * It blocks no session for good: a session waits only for a running one, and not longer than `warmUpMs` after that
 *   one's start. It needs no memory of its own: what has ended is in the log, what has answered in the transcripts.
 */

import type { GroupDefinition, SessionDefinition, SessionId, SessionSet, Usage } from '../group.ts';
import { sessionLabel } from '../id.ts';
import type { SessionRecord } from '../session-state.ts';
import type { GroupState } from '../state.ts';
import type { GroupHold } from './decision.ts';
import { readySessions } from './plan.ts';

/** The shortest lifetime of the server's cache, milliseconds; with a subscription it is an hour. */
const keptMs = 5 * 60_000;
/**
 * The longest time the others wait after the start of the first one, milliseconds. claude sends its request one to
 * three seconds after its start, and the server starts to answer some seconds later. The cache can be read from then
 * on, even if claude prints nothing before the end of a long thought.
 */
const warmUpMs = 15_000;
/** With fewer sessions the time is worth more than the saved cache write. */
export const similarMin = 3;

/** The part of requests that we decide: equal texts give equal tools and system prompts. */
export function cacheKind(group: GroupDefinition, definition: SessionDefinition): string {
  const model = definition.model ?? group.config.model ?? '';
  const inherits = definition.config?.inheritFromGroup !== false;
  return `${model} ${(inherits && group.configTemplate?.digest) || ''} ${inherits} ${ownKind(definition)}`;
}

function ownKind(definition: SessionDefinition): string {
  const { configTemplate, config = {}, outputSchema } = definition;
  const { generateSettings, generateMcpConfig, generateClaudeMd, settingsOverride } = config;
  // Instructions, commands, skills and agents follow the system prompt; only their absence changes it.
  const parts = [configTemplate?.digest, generateSettings, generateMcpConfig, generateClaudeMd, settingsOverride];
  return JSON.stringify([...parts, outputSchema]);
}

export interface AnsweredAttempt {
  readonly answered?: SessionSet;
  readonly nowMs?: number;
}

export function isAnswered({ tokens }: Pick<Usage, 'tokens'>): boolean {
  return Object.values(tokens).some((count) => count > 0);
}

export interface WarmUps {
  /** The session for whose first answer this one must wait; null when it may start. */
  leaderFor(record: SessionRecord): SessionId | null;
  /** It is being started: others of its kind may have to wait for it. */
  noteStart(record: SessionRecord): void;
}

export function cacheWait(state: GroupState, leader: SessionId): GroupHold {
  const label = sessionLabel(leader, state.sessions.get(leader)?.definition.name);
  const message = `Waiting for the first request of ${label}, which fills the prompt cache.`;
  return { reason: 'cache', message, on: [leader] };
}

const nobodyWaits: WarmUps = { leaderFor: () => null, noteStart: () => {} };

export function warmUps(state: GroupState, { answered, nowMs = 0 }: AnsweredAttempt): WarmUps {
  if (state.group.config.warmCache === false || answered === undefined) return nobodyWaits;
  const kinds = new Map<string, Kind>();
  const kindOf = ({ definition }: SessionRecord): Kind => {
    const name = cacheKind(state.group, definition);
    const kind = kinds.get(name) ?? look(state, name, answered, nowMs);
    kinds.set(name, kind);
    return kind;
  };
  return {
    leaderFor(record) {
      if (!sendsRequests(record)) return null;
      const { isCold, leader } = kindOf(record);
      return isCold ? leader : null;
    },
    noteStart(record) {
      if (sendsRequests(record)) kindOf(record).leader ??= record.definition.id;
    },
  };
}

interface Kind {
  /** No session has an answer yet, and there are enough of them to make waiting worthwhile. */
  readonly isCold: boolean;
  leader: SessionId | null;
}

function look(state: GroupState, kind: string, answered: SessionSet, nowMs: number): Kind {
  const endedMs = state.endedMs.get(kind) ?? Number.NEGATIVE_INFINITY;
  // A session of the kind ended so recently that the cache is warm: no session waits, and none leads.
  if (nowMs - endedMs < keptMs) return { isCold: false, leader: null };
  const begun = begunOf(state, kind);
  const isOver = ({ id, startedAtMs }: Begun) => answered.has(id) || nowMs - startedAtMs >= warmUpMs;
  return { isCold: !begun.some(isOver) && hasCompany(state, kind, begun.length), leader: begun[0]?.id ?? null };
}

interface Begun {
  readonly id: SessionId;
  readonly startedAtMs: number;
}

function begunOf(state: GroupState, kind: string): Begun[] {
  const found: Begun[] = [];
  for (const id of state.running) {
    const record = state.sessions.get(id) as SessionRecord;
    const { definition, state: session } = record;
    if (session.status !== 'running' || session.attempt.accepting !== undefined || !sendsRequests(record)) continue;
    if (cacheKind(state.group, definition) !== kind) continue;
    found.push({ id, startedAtMs: Date.parse(session.attempt.startedAt) });
  }
  return found;
}

function hasCompany(state: GroupState, kind: string, begun: number): boolean {
  let count = begun;
  const ready = readySessions(state);
  for (let index = ready.length - 1; index >= 0 && count < similarMin; index -= 1) {
    const record = state.sessions.get(ready[index] as SessionId) as SessionRecord;
    if (sendsRequests(record) && cacheKind(state.group, record.definition) === kind) count += 1;
  }
  return count >= similarMin;
}

/**
 * Not sessions that only need acceptance; those with a set-up send their requests minutes later, at different times.
 */
export function sendsRequests({ definition, finished, workspace }: SessionRecord): boolean {
  return finished === undefined && (definition.setup === undefined || workspace !== undefined);
}
