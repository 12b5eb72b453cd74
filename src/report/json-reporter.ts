/** `--output json` (CLI.md): a header line, then one public event a line. Scripts rely on the names used here. */
import { type GroupEvent, publicEventTypes } from '../core/event.ts';
import type { GroupId, SessionId, Usage } from '../core/group.ts';
import type { Reporter } from './reporter.ts';
import { safeJson } from './terminal-text.ts';

const formatVersion = 1;
/** session_progress may be thinned: at most one line per session in this time. */
const progressIntervalMs = 500;

export interface JsonReporterOptions {
  readonly write: (text: string) => void;
  readonly groupId: GroupId;
  /** Milliseconds since 1970. */
  readonly now: () => number;
}

export function createJsonReporter(options: JsonReporterOptions): Reporter {
  const { groupId, now } = options;
  const write = (line: object): void => options.write(`${safeJson(line)}\n`);
  const lastProgressMs = new Map<SessionId, number>();
  let isBegun = false;

  return {
    event(event) {
      // Not before: a run that is refused prints nothing.
      if (!isBegun) write({ type: 'header', version: formatVersion, groupId });
      isBegun = true;
      if (publicEventTypes.has(event.type)) write(publicEvent(event));
    },
    progress(sessionId, state, live) {
      const session = live.get(sessionId);
      const atMs = now();
      if (session === undefined || atMs - (lastProgressMs.get(sessionId) ?? -progressIntervalMs) < progressIntervalMs) {
        return;
      }
      lastProgressMs.set(sessionId, atMs);
      const before = state.sessions.get(sessionId)?.usage.costUsd ?? 0;
      write({
        at: new Date(atMs).toISOString(),
        type: 'session_progress',
        groupId,
        sessionId,
        ...(session.currentTool === undefined ? {} : { currentTool: session.currentTool }),
        ...(session.lastText === undefined ? {} : { lastText: session.lastText }),
        ...(session.denied === undefined ? {} : { denied: session.denied }),
        cost: before + session.usage.costUsd,
        tokens: session.usage.tokens,
        ...(session.usage.estimated ? { estimated: true } : {}),
      });
    },
    waiting() {
      // Scripts ask `group why`; limits have events of their own.
    },
    summarize() {
      // Everything a script needs was in the events.
    },
  };
}

/** The event without what only this program can use: attempt ids, process identities beyond the pid. */
export function publicEvent(event: GroupEvent): object {
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
        ...(event.structured === undefined ? {} : { structured: event.structured }),
        ...publicUsage(event.usage),
      };
    case 'session_failed': {
      const { reason, message, next } = event;
      return { ...head, reason, message, next, ...publicUsage(event.usage) };
    }
    case 'session_paused': {
      const { reason, message, retryAt } = event;
      return { ...head, reason, message, ...(retryAt ? { retryAt } : {}), ...publicUsage(event.usage) };
    }
    case 'budget_warning':
      return { ...head, usage: event.usage, limit: event.limit };
    case 'budget_exceeded':
      return { ...head, action: event.action, usage: event.usage, limit: event.limit };
    case 'session_stalled':
      return { ...head, step: event.step, silentMs: event.silentMs };
    case 'limit_reached':
      return { ...head, resetsAt: event.resetsAt, ...(event.limitType ? { limitType: event.limitType } : {}) };
    case 'group_paused':
    case 'group_failed':
      return { ...head, reason: event.reason, message: event.message };
    default:
      return head;
  }
}

function publicRun(run: { readonly id: string; readonly rehearsal?: true }): object {
  return { runId: run.id, ...(run.rehearsal ? { rehearsal: true } : {}) };
}

/** What this attempt used; US dollars and milliseconds. */
function publicUsage(usage: Usage): object {
  const { costUsd, tokens, durationMs, turns, estimated } = usage;
  return { cost: costUsd, tokens, durationMs, turns, ...(estimated ? { estimated } : {}) };
}
