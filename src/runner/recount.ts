/**
 * What sessions cost that an earlier version resumed. It took claude's totals for the cost of one attempt, and since
 * 2.1.278 they go on with those of the conversation. The transcripts tell what was added by each attempt.
 */

import { answersBase } from '../claude/control.ts';
import { totalsBefore } from '../claude/conversation.ts';
import { type ClaudeMessage, parseLine } from '../claude/messages.ts';
import { printedLines } from '../claude/printed-lines.ts';
import { type Claim, noClaim } from '../claude/spending.ts';
import { type AttemptStream, emptyStream, foldMessage, usageOf } from '../claude/stream.ts';
import type { GroupEvent } from '../core/event.ts';
import { addUsage, exchanged, noUsage, type PriceTable, type SessionId, type Usage } from '../core/group.ts';
import type { SessionRecord } from '../core/session-state.ts';
import { readLog } from '../store/event-log.ts';
import type { GroupWriter } from '../store/group-writer.ts';
import { type SessionPaths, sessionPaths } from '../store/paths.ts';
import type { World } from '../system/world.ts';

/** An attempt that has ended, from the log. */
interface PastAttempt {
  /** Bytes of the transcript before it and, where another one followed, at its end. */
  readonly offset: number;
  end: number;
  readonly startedAtMs: number;
  usage?: Usage;
}

/** US dollars; less than the last digit that is shown. */
const sameUsd = 1e-6;

/**
 * Logs what is known of the cost of such sessions, once, and returns the event; none when there are no such sessions.
 * The caller holds the group's lock through `writer`. Throws the system's error when it cannot be logged.
 */
export function correctUsage(world: World, writer: GroupWriter): GroupEvent[] {
  const { state, paths } = writer;
  const doubtful = [...state.sessions].filter(([, record]) => record.doubtful);
  if (doubtful.length === 0) return [];
  const log = readLog(world, paths.events);
  const past = log.ok ? pastAttempts(log.value, new Set(doubtful.map(([id]) => id))) : new Map();
  const sessions: { sessionId: SessionId; usage: Usage }[] = [];
  const unsure: SessionId[] = [];
  let total = state.usage;
  for (const [sessionId, record] of doubtful) {
    const recount = new Recount(world, sessionPaths(paths, sessionId), record, state.group.config.prices);
    const usage = recount.of(past.get(sessionId) ?? []);
    if (usage === 'unknown') unsure.push(sessionId);
    else if (Math.abs(usage.costUsd - record.usage.costUsd) > sameUsd) {
      sessions.push({ sessionId, usage });
      total = exchanged(total, record.usage, usage);
    }
  }
  return writer.record([{ type: 'usage_corrected', usage: total, sessions, unsure }]);
}

function pastAttempts(events: readonly GroupEvent[], ids: ReadonlySet<SessionId>): Map<SessionId, PastAttempt[]> {
  const attempts = new Map<string, PastAttempt>();
  const sessions = new Map<SessionId, PastAttempt[]>();
  for (const event of events) {
    if (event.type === 'session_starting' && ids.has(event.sessionId)) {
      const { id, offset } = event.attempt;
      const list = sessions.get(event.sessionId) ?? [];
      // Said again for the same attempt, it begins again.
      if (attempts.has(id)) list.pop();
      const last = list.at(-1);
      if (last !== undefined) last.end = offset;
      const attempt = { offset, end: Number.POSITIVE_INFINITY, startedAtMs: Date.parse(event.at) };
      attempts.set(id, attempt);
      sessions.set(event.sessionId, [...list, attempt]);
    } else if ('attemptId' in event && 'usage' in event) {
      const attempt = attempts.get(event.attemptId);
      // What is said at the end of its acceptance was counted when its worker ended.
      if (attempt !== undefined) attempt.usage ??= event.usage;
    }
  }
  return sessions;
}

class Recount {
  readonly #world: World;
  readonly #paths: SessionPaths;
  readonly #record: SessionRecord;
  readonly #prices: PriceTable | undefined;
  /** What claude named last in the attempt before. */
  #before: Claim = noClaim;

  constructor(world: World, paths: SessionPaths, record: SessionRecord, prices: PriceTable | undefined) {
    this.#world = world;
    this.#paths = paths;
    this.#record = record;
    this.#prices = prices;
  }

  /** The sum over these attempts, all that the session has had. */
  of(attempts: readonly PastAttempt[]): Usage | 'unknown' {
    let sum = noUsage;
    for (const [index, attempt] of attempts.entries()) {
      // One that is still running is counted by whoever follows it.
      if (attempt.usage === undefined) continue;
      const usage = index === 0 ? this.#first(attempt, attempt.usage) : this.#later(attempt, attempt.usage);
      if (usage === 'unknown') return usage;
      sum = addUsage(sum, usage);
    }
    return sum;
  }

  #first(attempt: PastAttempt, usage: Usage): Usage {
    this.#before = this.#read(attempt, noClaim).spending.claimed;
    return usage;
  }

  #later(attempt: PastAttempt, recorded: Usage): Usage | 'unknown' {
    const { config } = this.#paths;
    const plain = this.#read(attempt, noClaim);
    const { claimed } = plain.spending;
    const goesOn = isAtLeast(claimed, this.#before);
    this.#before = claimed;
    const base = totalsBefore(this.#world, config, this.#record.claudeSessionIds, attempt.startedAtMs);
    // Without the conversation, totals that are lower than those before it are known to have begun anew.
    if (base === null) return goesOn ? 'unknown' : recorded;
    if (base.costUsd < sameUsd || plain.asked) return recorded;
    const counted = this.#read(attempt, base);
    if (Math.abs(recorded.costUsd - counted.costUsd) < sameUsd) return recorded;
    if (Math.abs(recorded.costUsd - plain.costUsd) > sameUsd) return 'unknown';
    return { ...usageOf(counted, recorded.durationMs), turns: recorded.turns };
  }

  #read({ offset, end }: PastAttempt, base: Claim): AttemptStream & { asked?: boolean } {
    const stream: AttemptStream & { asked?: boolean } = emptyStream(this.#prices, { findBase: () => base });
    for (const line of printedLines(this.#world, this.#paths.transcript, offset, end)) {
      const message = parseLine(line);
      stream.asked ||= isBase(message);
      foldMessage(stream, message);
    }
    return stream;
  }
}

function isBase(message: ClaudeMessage): boolean {
  return message.kind === 'control-response' && message.costUsd !== undefined && answersBase(message.requestId);
}

/** Whether a total can be one that went on with the other. */
function isAtLeast(total: Claim, before: Claim): boolean {
  if (before.costUsd < sameUsd || total.costUsd < before.costUsd - sameUsd) return false;
  const later = new Map(Object.entries(total.models));
  return Object.entries(before.models).every(
    ([model, { tokens }]) => (later.get(model)?.tokens.input ?? 0) >= tokens.input,
  );
}
