/** Pure: log events for items, which are questions from sessions to the user. */

import { rulesFor } from '../claude/permission-rules.ts';
import { itemId, readAnswer } from '../claude/questions.ts';
import { type AttemptStream, runningAgents } from '../claude/stream.ts';
import type { EventBody } from '../core/event.ts';
import { fail, ok, type Result } from '../core/failure.ts';
import {
  earlierAnswer,
  type GivenAnswer,
  type Item,
  type ItemAnswer,
  type ItemRequest,
  openItems,
} from '../core/item.ts';
import type { Attempt, SessionRecord } from '../core/session-state.ts';
import type { GroupState } from '../core/state.ts';
import { nextGroupStatus } from '../core/status.ts';
import type { WorkerFact } from '../worker/facts.ts';

const defaultAskTimeoutMs = 5 * 60_000;

export type FactOf<K extends WorkerFact['kind']> = Extract<WorkerFact, { readonly kind: K }>;

/** Empty when the item is logged: the transcript of an adopted worker is read again from the start. */
export function askedEvents(
  { group }: GroupState,
  record: SessionRecord,
  attempt: Attempt,
  { sessionId, attemptId, request }: FactOf<'asked'>,
  nowMs: number,
): EventBody[] {
  const item = itemId(attemptId, request);
  if (record.items?.some(({ id }) => id === item)) return [];
  const { answerBy: clock } = group.config;
  const answerBy = clock === undefined ? {} : { answerBy: nextClock(clock, nowMs) };
  const opened: EventBody = { type: 'item_opened', sessionId, attemptId, item, ...request, ...answerBy };
  if (attempt.stopping !== undefined) return [opened];
  const earlier = earlierAnswer(record, attemptId, request);
  const answered = (answer: ItemAnswer, by: 'earlier' | 'rule', from?: string): EventBody[] => [
    opened,
    { type: 'item_answered', sessionId, item, by, answer, ...(from === undefined ? {} : { from }) },
  ];
  if (earlier?.answer !== undefined) return answered(earlier.answer, 'earlier', earlier.id);
  // claude requests permission for some calls although the exact rule is set.
  return isAllowed(request, group.config.allowedTools) ? answered({ text: 'allow' }, 'rule') : [opened];
}

function isAllowed(request: ItemRequest, allowedTools: readonly string[] = []): boolean {
  const rules = rulesOf(request);
  return rules.length > 0 && rules.every((rule) => allowedTools.includes(rule));
}

/** The answers to other open permission requests that the group's rules, with `added`, allow. */
export function allowedEvents({ group, sessions, status }: GroupState, added: readonly string[], except?: string) {
  if (added.length === 0 || nextGroupStatus(status, 'item_answered') === null) return [];
  const all = [...(group.config.allowedTools ?? []), ...added];
  return [...sessions.values()].flatMap((record) => {
    const allowed = openItems(record).filter((item) => item.id !== except && isAllowed(item, all));
    const answer = { by: 'rule', answer: { text: 'allow' } } as const;
    return allowed.map(({ id }): EventBody => {
      return { type: 'item_answered', sessionId: record.definition.id, item: id, ...answer };
    });
  });
}

/** The next occurrence of this local time, ISO 8601. */
function nextClock(clock: string, nowMs: number): string {
  const [hours = 0, minutes = 0] = clock.split(':').map(Number);
  const next = new Date(nowMs);
  next.setHours(hours, minutes, 0, 0);
  if (next.getTime() <= nowMs) next.setDate(next.getDate() + 1);
  return next.toISOString();
}

const inTime = 'No answer arrived in time.';
const standardAnswer = `${inTime} Decide yourself, and say what you assumed.`;

/** The default answers to items whose deadline has passed. */
export function deadlineEvents({ group, sessions, status }: GroupState, nowMs: number): EventBody[] {
  if (nextGroupStatus(status, 'item_answered') === null) return [];
  const { permission = 'deny', question = standardAnswer } = group.config.answers ?? {};
  return [...sessions.values()].flatMap((record) =>
    openItems(record).flatMap((item): EventBody[] => {
      if (item.answerBy === undefined || nowMs < Date.parse(item.answerBy)) return [];
      const given = item.kind !== 'question' ? { text: permission, note: inTime } : { text: question };
      const answer = readAnswer(item, given);
      const of = { sessionId: record.definition.id, item: item.id };
      return answer.ok ? [{ type: 'item_answered', ...of, by: 'deadline', answer: answer.value }] : [];
    }),
  );
}

function rulesOf({ kind, tool, input }: ItemRequest): string[] {
  return kind === 'permission' ? rulesFor({ tool, input }) : [];
}

export function unaskedEvents(
  record: SessionRecord,
  { stopping }: Attempt,
  { sessionId, requestId }: FactOf<'unasked'>,
): EventBody[] {
  const item = openItems(record).find((one) => one.requestId === requestId);
  return item === undefined || stopping !== undefined ? [] : [{ type: 'item_withdrawn', sessionId, item: item.id }];
}

export function withdrawals(record: SessionRecord): EventBody[] {
  const sessionId = record.definition.id;
  return openItems(record).map(({ id: item }) => ({ type: 'item_withdrawn', sessionId, item }));
}

/** Stops claude when the session does nothing but wait for an answer. */
export function parkingEvents(
  { group }: GroupState,
  record: SessionRecord,
  stream: AttemptStream,
  nowMs: number,
): EventBody[] {
  const open = openItems(record);
  if (record.state.status !== 'running' || record.state.attempt.stopping !== undefined || open.length === 0) return [];
  if (stream.openTasks.size > 0 || runningAgents(stream) > 0) return [];
  const patienceMs = group.config.askTimeoutMs ?? defaultAskTimeoutMs;
  if (open.some(({ since }) => nowMs < Date.parse(since) + patienceMs)) return [];
  const { id: attemptId } = record.state.attempt;
  return [{ type: 'session_stopping', sessionId: record.definition.id, attemptId, reason: 'waits-for-answer' }];
}

/** Only the first answer counts. `rules`: added to the group by `--always`. */
export function answerEvents(
  record: SessionRecord,
  id: string,
  given: GivenAnswer,
): Result<{ readonly events: EventBody[]; readonly rules: readonly string[] }> {
  const sessionId = record.definition.id;
  const item = record.items?.find((one) => one.id === id);
  if (item === undefined) return fail('not-found', `There is no item ${id}.`, '');
  if (item.state !== 'open') return fail('usage', closedText(item), '');
  const answer = readAnswer(item, given);
  if (!answer.ok) return answer;
  const rules = given.always ? rulesOf(item) : [];
  if (given.always && rules.length === 0)
    return fail('usage', 'No permission rule matches this call.', 'Answer without --always.');
  const withRules = rules.length > 0 ? { ...answer.value, rules } : answer.value;
  return ok({ events: [{ type: 'item_answered', sessionId, item: id, by: 'user', answer: withRules }], rules });
}

export function closedText({
  id,
  kind,
  state,
  answer,
}: Pick<Item, 'id' | 'state' | 'answer'> & { kind: string }): string {
  const asker = kind === 'wave' ? 'wave' : 'session';
  if (state === 'withdrawn') return `Item ${id} was withdrawn: the ${asker} no longer waits for an answer.`;
  return `Item ${id} was already answered: ${answer?.text}.`;
}
