/** What sessions ask of a person: what that means for the log, whoever answers. Pure. */

import { runningAgents } from '../claude/at-work.ts';
import { rulesFor } from '../claude/permission-rules.ts';
import { itemId, readAnswer } from '../claude/questions.ts';
import type { AttemptStream } from '../claude/stream.ts';
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
import type { WorkerFact } from '../worker/facts.ts';

const defaultAskTimeoutMs = 5 * 60_000;

type FactOf<K extends WorkerFact['kind']> = Extract<WorkerFact, { readonly kind: K }>;

/** None when it is on record: an adopted worker is read again from its beginning. */
export function askedEvents(
  { group }: GroupState,
  record: SessionRecord,
  attempt: Attempt,
  { sessionId, attemptId, request }: FactOf<'asked'>,
): EventBody[] {
  const item = itemId(attemptId, request);
  if (record.items?.some(({ id }) => id === item)) return [];
  const opened: EventBody = { type: 'item_opened', sessionId, attemptId, item, ...request };
  if (attempt.stopping !== undefined) return [opened];
  const earlier = earlierAnswer(record, attemptId, request);
  const answered = (answer: ItemAnswer, by: 'earlier' | 'rule', from?: string): EventBody[] => [
    opened,
    { type: 'item_answered', sessionId, item, by, answer, ...(from === undefined ? {} : { from }) },
  ];
  if (earlier?.answer !== undefined) return answered(earlier.answer, 'earlier', earlier.id);
  // claude asks for some calls although their exact rule is set.
  const rules = rulesOf(request);
  const isAllowed = rules.length > 0 && rules.every((rule) => group.config.allowedTools?.includes(rule));
  return isAllowed ? answered({ text: 'allow' }, 'rule') : [opened];
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

/** Ends claude when all that the session does is to wait for a person. */
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

/** The first answer counts. `rules`: what `--always` adds to the group. */
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
    return fail('usage', 'No rule can allow this call always.', 'Answer without --always.');
  const withRules = rules.length > 0 ? { ...answer.value, rules } : answer.value;
  return ok({ events: [{ type: 'item_answered', sessionId, item: id, by: 'user', answer: withRules }], rules });
}

export function closedText({ id, state, answer }: Item): string {
  if (state === 'withdrawn') return `Item ${id} was withdrawn: the session no longer waits for an answer.`;
  return `Item ${id} was already answered: ${answer?.text}.`;
}
