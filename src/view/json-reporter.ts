/** `--output json`: a header line, then one public event per line. Scripts rely on these names. */

import { adviceText } from '../core/advice.ts';
import { defined } from '../core/defined.ts';
import { type GroupEvent, publicEventTypes } from '../core/event.ts';
import type { GroupId, SessionId, Usage } from '../core/group.ts';
import { openItems } from '../core/item.ts';
import { eventAdvice } from '../core/plan/advice.ts';
import { slotReason, slotSentence } from '../core/plan/command-slot.ts';
import type { WaitReason } from '../core/plan/decision.ts';
import { waitingIn } from '../core/plan/settle.ts';
import { type LiveSession, sessionFigures, verdictFields } from '../core/progress.ts';
import type { SessionRecord } from '../core/session-state.ts';
import type { GroupState } from '../core/state.ts';
import type { Reporter } from './reporter.ts';
import { safeJson } from './terminal-text.ts';

const formatVersion = 1;
/** At most one session_progress line per session in this time; the last state is always printed. */
const progressIntervalMs = 500;

export interface ReporterClock {
  now(): number;
  after(delayMs: number, action: () => void): () => void;
}

export interface JsonReporterOptions {
  readonly write: (text: string) => void;
  readonly groupId: GroupId;
  readonly clock: ReporterClock;
}

export function createJsonReporter(options: JsonReporterOptions): Reporter {
  const { groupId, clock } = options;
  const write = (line: object): void => options.write(`${safeJson(line)}\n`);
  const lastProgressMs = new Map<SessionId, number>();
  /** The held-back line of a session, until it is due. */
  const held = new Map<SessionId, { readonly line: object; readonly cancel: () => void }>();
  /** The last reported reason of each session that is not running. */
  const reasons = new Map<SessionId, string>();
  let isBegun = false;

  const progressLine = (atMs: number, { definition: { id } }: SessionRecord, now: object): object => {
    return { at: new Date(atMs).toISOString(), type: 'session_progress', groupId, sessionId: id, ...now };
  };
  const writeProgress = (sessionId: SessionId, line: object): void => {
    held.get(sessionId)?.cancel();
    held.delete(sessionId);
    lastProgressMs.set(sessionId, clock.now());
    write(line);
  };
  const flush = (sessionId: SessionId): void => {
    const last = held.get(sessionId);
    if (last !== undefined) writeProgress(sessionId, last.line);
  };

  return {
    event(event, state) {
      // Not before the first event, because a refused run prints nothing.
      if (!isBegun) write({ type: 'header', version: formatVersion, groupId });
      isBegun = true;
      if (!publicEventTypes.has(event.type)) return;
      // Print progress from before the event first; drop what is no longer current.
      if ('sessionId' in event && event.sessionId !== undefined) flush(event.sessionId);
      write({ ...publicEvent(event, state), ...totals(event, state) });
      if (event.type === 'session_paused' || event.type === 'session_failed')
        reasons.set(event.sessionId, event.reason);
    },
    progress(sessionId, state, live) {
      const session = live.get(sessionId);
      const record = state.sessions.get(sessionId);
      if (session === undefined || record === undefined) return;
      const atMs = clock.now();
      const line = progressLine(atMs, record, shown(session, record, state));
      const dueMs = (lastProgressMs.get(sessionId) ?? -progressIntervalMs) + progressIntervalMs - atMs;
      if (dueMs <= 0) {
        writeProgress(sessionId, line);
        return;
      }
      const cancel = held.get(sessionId)?.cancel;
      held.set(sessionId, { line, cancel: cancel ?? clock.after(dueMs, () => flush(sessionId)) });
    },
    resting(sessionIds, state, verdicts) {
      for (const sessionId of sessionIds) {
        const record = state.sessions.get(sessionId);
        const verdict = record === undefined ? null : verdicts(record);
        if (record === undefined || verdict === null || reasons.get(sessionId) === verdict.reason) continue;
        reasons.set(sessionId, verdict.reason);
        write(progressLine(clock.now(), record, resting(state, record, verdict)));
      }
    },
    waiting() {
      // Printed for each waiting session.
    },
    summarize() {
      for (const id of held.keys()) flush(id);
    },
  };
}

function shown(now: LiveSession, record: SessionRecord, state: GroupState): object {
  const { currentTool, lastText, denied, slot, usage } = now;
  return {
    ...(slot === undefined ? {} : { reason: slotReason, message: slotSentence(state, slot) }),
    ...defined({ currentTool, lastText, denied }),
    ...sessionFigures(record, usage),
  };
}

function resting(state: GroupState, record: SessionRecord, verdict: WaitReason): object {
  return { status: record.state.status, ...verdictFields(state, record, verdict), ...sessionFigures(record) };
}

/** At the end of an attempt, the usage of all attempts of the session; the event has that of one attempt. */
function totals(event: GroupEvent, { sessions }: GroupState): object {
  if (event.type !== 'session_completed' && event.type !== 'session_failed' && event.type !== 'session_paused')
    return {};
  const record = sessions.get(event.sessionId);
  if (record === undefined) return {};
  const { cost, tokens, attempts } = sessionFigures(record);
  return { totalCost: cost, totalTokens: tokens, attempts };
}

export interface PublicEvent {
  readonly seq: number;
  readonly type: string;
  readonly [field: string]: unknown;
}

/** The event without internal fields, such as attempt ids and process identities. */
export function publicEvent(event: GroupEvent, state: GroupState): PublicEvent {
  const { at, type, groupId, seq } = event;
  const head = { at, type, groupId, ...('sessionId' in event ? { sessionId: event.sessionId } : {}), seq };
  switch (event.type) {
    case 'group_started':
      return { ...head, ...publicRun(event.run) };
    case 'group_resumed':
      return { ...head, ...publicRun(event.run), retry: event.retry };
    case 'session_started':
    case 'session_resumed':
    case 'session_retrying':
    case 'session_adopted':
      return { ...head, attempt: event.attempt, pid: event.process.pid };
    case 'session_completed':
      return {
        ...head,
        result: event.result,
        ...defined({ structured: event.structured }),
        ...publicUsage(event.usage),
      };
    case 'session_failed': {
      const { reason, message } = event;
      return { ...head, reason, message, next: nextOf(event, state), ...publicUsage(event.usage) };
    }
    case 'item_opened': {
      const { item, kind, text, options, answerBy } = event;
      return {
        ...head,
        item,
        kind,
        text,
        options,
        ...defined({ answerBy }),
        waiting: waitingIn(state) + Number(kind === 'wave'),
      };
    }
    case 'item_answered':
      return { ...head, item: event.item, by: event.by };
    case 'item_withdrawn':
      return { ...head, item: event.item };
    case 'session_paused':
      return { ...head, ...pausedFields(event, state) };
    case 'group_changed':
    case 'group_redefined':
      return { ...head, type: 'group_edited', ...defined({ changed: event.changed }) };
    case 'session_changed':
      return { ...head, type: 'session_edited', ...defined({ changed: event.changed }) };
    case 'budget_warning':
      return { ...head, scope: 'group', usage: event.usage, limit: event.limit };
    case 'budget_exceeded':
      return { ...head, scope: 'group', action: event.action, usage: event.usage, limit: event.limit };
    // Printed as the event of the same name, with the scope `session`.
    case 'session_budget_warning':
      return { ...head, type: 'budget_warning', scope: 'session', usage: event.usage, limit: event.limit };
    case 'session_budget_exceeded': {
      const { action, usage, limit } = event;
      return { ...head, type: 'budget_exceeded', scope: 'session', action, usage, limit };
    }
    case 'session_booked':
      return { ...head, ...publicUsage(event.usage) };
    case 'limit_reached':
      return { ...head, resetsAt: event.resetsAt, ...(event.limitType ? { limitType: event.limitType } : {}) };
    case 'group_paused':
    case 'group_failed':
      return { ...head, reason: event.reason, message: event.message, next: nextOf(event, state) };
    default:
      return { ...head, ...otherFields(event) };
  }
}

function otherFields(event: GroupEvent): object {
  switch (event.type) {
    case 'wave_finished':
      return { wave: event.wave, accepted: event.accepted, cost: event.cost };
    case 'wave_decided': {
      const { wave, decision, by, note } = event;
      return { wave, decision, by, ...defined({ note }) };
    }
    case 'session_stalled':
      return { step: event.step, silentMs: event.silentMs };
    case 'session_host_lost':
      return { host: event.host, held: event.held };
    case 'session_moved':
      return { ...defined({ from: event.from }), to: event.to };
    default:
      return {};
  }
}

function pausedFields(event: Extract<GroupEvent, { type: 'session_paused' }>, { sessions }: GroupState): object {
  const { reason, message, retryAt } = event;
  const fields = { reason, message, ...(retryAt ? { retryAt } : {}), ...publicUsage(event.usage) };
  const [open] = openItems(sessions.get(event.sessionId) ?? {});
  return reason === 'waits-for-answer' && open ? { type: 'session_parked', item: open.id, ...fields } : fields;
}

function nextOf(event: GroupEvent, state: GroupState): string {
  return adviceText(eventAdvice(event, state));
}

function publicRun(run: { readonly id: string; readonly rehearsal?: true }): object {
  return { runId: run.id, ...(run.rehearsal ? { rehearsal: true } : {}) };
}

/** What this attempt used; US dollars and milliseconds. */
function publicUsage(usage: Usage): object {
  const { costUsd, tokens, durationMs, turns, estimated } = usage;
  return { cost: costUsd, tokens, durationMs, turns, ...(estimated ? { estimated } : {}) };
}
