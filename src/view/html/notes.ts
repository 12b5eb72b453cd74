/** One sentence for everything that happened to a group as a whole. Foreign parts are raw text. */
import type { GroupEvent, MergedRepository, PauseReason } from '../../core/event.ts';
import type { SessionId } from '../../core/group.ts';
import { type GroupState, isThrottled } from '../../core/state.ts';
import { formatMoney, plural } from '../format.ts';
import { limitName } from '../wording.ts';
import { formatUtc } from './times.ts';

/** What is special about a group that runs: frozen, being paused, held by a limit. */
export function conditionText(state: GroupState): string | undefined {
  if (state.status !== 'running') return undefined;
  if (state.pausing !== undefined) return state.draining ? 'running sessions finish, then it pauses' : 'being paused';
  if (state.frozenUntil !== undefined) return `halted until ${formatUtc(state.frozenUntil)}`;
  if (state.limitResetsAt === undefined) return undefined;
  return `${limitName(state)} until ${formatUtc(state.limitResetsAt)}`;
}

/** The sentence; the event's type where there is none. `titleOf` names a session. */
export function noteText(event: GroupEvent, titleOf: (id: SessionId) => string): string {
  switch (event.type) {
    case 'session_failed':
      return `${titleOf(event.sessionId)} failed (${event.reason}). ${event.message}`.trim();
    case 'session_paused':
      return pauseText(titleOf(event.sessionId), event.reason, event.message);
    case 'session_starting':
      return `${titleOf(event.sessionId)} was tried again, attempt ${event.attempt.number}.`;
    case 'group_started':
      return 'The group was started.';
    case 'group_resumed':
      return event.retry.length > 0
        ? `The group went on, and ${plural(event.retry.length, 'failed session')} with it.`
        : 'The group went on.';
    case 'group_pausing':
      return event.mode === 'drain'
        ? `A pause was asked for (${event.reason}); running sessions were left to finish.`
        : `Everything was stopped for a pause (${event.reason}).`;
    case 'group_paused':
      return `The group was paused (${event.reason}). ${event.message}`.trim();
    case 'group_failed':
      return `The group failed (${event.reason}). ${event.message}`.trim();
    case 'group_completed':
      return 'Every session was completed.';
    case 'group_frozen':
      return 'Everything was halted where it stood.';
    case 'group_thawed':
      return 'What was halted went on.';
    case 'group_merged':
      return event.merged.map(mergedText).join(' ');
    case 'group_archived':
      return 'The group was archived.';
    case 'limit_reached':
      return isThrottled(event)
        ? `The server throttled requests; nothing was to start before ${formatUtc(event.resetsAt)}.`
        : `A usage limit was reached; its reset was due at ${formatUtc(event.resetsAt)}.`;
    case 'limit_lifted':
      return 'The limit was lifted.';
    case 'budget_warning':
      return `${formatMoney(event.usage)} of ${formatMoney(event.limit)} were spent.`;
    case 'budget_exceeded':
      return `The budget of ${formatMoney(event.limit)} was used up (${event.action}).`;
    default:
      return event.type;
  }
}

function pauseText(title: string, reason: PauseReason, message: string): string {
  const what = reason === 'not-accepted' ? 'was sent back to correct its work' : `was paused (${reason})`;
  return `${title} ${what}. ${message}`.trim();
}

function mergedText({ into, sessionIds }: MergedRepository): string {
  return `The work of ${plural(sessionIds.length, 'session')} was merged into ${into}.`;
}
