/** Words that several outputs share: session titles, colours of statuses, sentences about conditions. */
import { basename } from 'node:path';
import { type Advice, adviceText } from '../core/advice.ts';
import { thisMachine } from '../core/event.ts';
import { allDependentsOf } from '../core/graph.ts';
import type { SessionId } from '../core/group.ts';
import { numberedName as titleInFull } from '../core/id.ts';
import { openItems } from '../core/item.ts';
import { failureAdvice } from '../core/plan/advice.ts';
import type { WaitReason } from '../core/plan/decision.ts';
import { isAnsweredPause, planOf } from '../core/plan/plan.ts';
import type { ApiRetry } from '../core/progress.ts';
import type { SessionRecord } from '../core/session-state.ts';
import { type GroupState, isThrottled } from '../core/state.ts';
import { listNames } from '../core/text.ts';
import { formatDuration, formatMoment, type Tone } from './format.ts';
import { safeLine } from './terminal-text.ts';

const labelColumnsMax = 32;

export function sessionTitle(id: SessionId, name: string | undefined): string {
  return safeLine(titleInFull(id, name), labelColumnsMax);
}

export function machineName({ host }: Pick<SessionRecord, 'host'>): string {
  if (host === undefined) return '';
  return host === thisMachine ? 'here' : safeLine(host, 63);
}

/** Lost hosts that have not reported the cost of this session. */
export function lostHosts({ lost = [] }: Pick<SessionRecord, 'lost'>): string[] {
  return [...new Set(lost.flatMap(({ attempt }) => attempt.place?.host ?? []))];
}

export function titleOf(state: GroupState, id: SessionId): string {
  return sessionTitle(id, state.sessions.get(id)?.definition.name);
}

export function projectName(path: string): string {
  return safeLine(basename(path) || path, 40);
}

const tones: Readonly<Record<string, Tone>> = {
  completed: 'good',
  running: 'accent',
  failed: 'bad',
  paused: 'warn',
  blocked: 'warn',
  interrupted: 'warn',
};

export function statusTone(status: string): Tone {
  return tones[status] ?? 'dim';
}

export const rehearsalNote = 'Rehearsal with a scripted model; the costs are not real.';

/** The message with its suggestion. */
export function withAdvice(message: string, advice: Advice | undefined): string {
  return advice === undefined ? message : `${message} ${adviceText(advice)}`.trim();
}

export const estimateNote = 'estimated until claude reports the final figure; held amounts count in full';

/** The condition of a running group, such as frozen or throttled, or null. */
export function conditionOf(
  state: GroupState,
  nowMs: number,
  formatTime = (at: string): string => formatMoment(at, nowMs),
): string | null {
  if (state.status !== 'running') return null;
  if (state.frozenUntil !== undefined) return `frozen until ${formatTime(state.frozenUntil)}`;
  if (state.pausing !== undefined) {
    return state.draining ? 'pausing: running sessions finish first' : `pausing: ${state.pausing}`;
  }
  if (state.limitResetsAt === undefined) return null;
  return `${limitName(state)} until ${formatTime(state.limitResetsAt)}`;
}

export function limitName(state: Pick<GroupState, 'limitType'>): string {
  return isThrottled(state) ? 'throttled' : 'usage limit';
}

export function setupSentence(setupLog: string): string {
  return `Its setup command is running; see ${setupLog}.`;
}

export function acceptanceSentence(acceptLog: string | undefined): string {
  if (acceptLog === undefined) return 'claude has finished; its work is being checked.';
  return `claude has finished; the acceptance command is running; see ${acceptLog}.`;
}

export function retrySentence({ attempt, attemptsMax, error, errorStatus }: ApiRetry): string {
  const what = errorStatus === 429 ? 'The server is throttling requests' : 'The API does not respond';
  const known = error === 'unknown' ? '' : error;
  const why = errorStatus === null ? known : String(errorStatus);
  const tries = attemptsMax === undefined ? `try ${attempt}` : `${attempt} of ${attemptsMax}`;
  return `${what}${why === '' ? '' : ` (${why})`}; claude is retrying (${tries}).`;
}

const isoTime = /\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z/g;

/** Replaces ISO times in a sentence by local times. */
export function withLocalTimes(sentence: string, nowMs: number): string {
  return sentence.replaceAll(isoTime, (at) => {
    const leftMs = Date.parse(at) - nowMs;
    return leftMs > 0 ? `${formatMoment(at, nowMs)} (in ${formatDuration(leftMs)})` : formatMoment(at, nowMs);
  });
}

export function problemText(
  state: GroupState,
  record: SessionRecord,
  why: WaitReason | null,
): Pick<WaitReason, 'message' | 'advice'> | undefined {
  const now = record.state;
  if (now.status === 'failed') {
    return { message: now.failure.message, advice: failureAdvice(state, record, now.failure) };
  }
  if (now.status === 'paused') {
    return { message: (isAnsweredPause(record) ? why?.message : undefined) ?? now.message };
  }
  return why?.reason === 'blocked' || why?.reason === 'held' ? why : undefined;
}

/** The message of a group at rest, which was logged before its questions were answered. */
export function messageAtRest({ reason, message, sessions }: GroupState): string | undefined {
  const isAnswered =
    reason === 'waits-for-answer' && [...sessions.values()].every((one) => openItems(one).length === 0);
  return isAnswered ? 'All questions are answered. The answers apply when the group runs.' : message;
}

export function resumesAtText(untilMs: number, nowMs: number): string {
  return `resumes at ${formatMoment(new Date(untilMs).toISOString(), nowMs)}`;
}

export function blockedBy(state: GroupState, id: SessionId): SessionId[] {
  if (!state.group.config.respectDependencies) return [];
  const dependents = allDependentsOf(planOf(state).graph.graph, id);
  return [...dependents].filter((dependent) => state.sessions.get(dependent)?.state.status === 'pending').sort();
}

const namesShownMax = 8;

export function listTitles(state: GroupState, ids: readonly SessionId[]): string {
  return listNames(
    ids.map((id) => titleOf(state, id)),
    namesShownMax,
  );
}

/** `max budget usd, prompt`: names of settings as words. */
export function settingWords(names: readonly string[]): string {
  return safeLine(names.map((name) => name.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`)).join(', '), 400);
}
