/** Why a session is not running: a reason code and a sentence, told by the same `decide` that would start it. */

import { type Advice, advise } from '../advice.ts';
import type { SessionId } from '../group.ts';
import { sessionLabel } from '../id.ts';
import { momentText } from '../moment.ts';
import { explanation } from '../progress.ts';
import type { SessionRecord } from '../session-state.ts';
import type { GroupState } from '../state.ts';
import { groupAdvice, raiseAdvice, resumeCommand, resumeSessionCommand } from './advice.ts';
import { isBudgetExhausted } from './budget.ts';
import type { Gate, SchedulingContext } from './decision.ts';
import { type Plan, planOf } from './plan.ts';
import { decide, nextStarts } from './schedule.ts';
import { failuresText, settleForLimit, startBlocker } from './settle.ts';
import { timedWait } from './timed-wait.ts';
import { cacheWait, type WarmUps, warmUps } from './warm-cache.ts';

export interface Why {
  readonly sessionId: SessionId;
  readonly status: string;
  readonly reason: string;
  /** A sentence. */
  readonly message: string;
  readonly advice?: Advice | undefined;
}

/** One answer for every session that is not running and not completed, in the order in which they were added. */
export function whyNot(state: GroupState, context: SchedulingContext): Why[] {
  const ask = whyAsker(state, context);
  return [...state.sessions.values()].flatMap((record) => ask(record) ?? []);
}

/**
 * The same for those who ask about a few of many, as long as the state stays as it is: nothing is looked at before the
 * first question. Null for a session that runs or is completed.
 */
export function whyAsker(state: GroupState, context: SchedulingContext): (record: SessionRecord) => Why | null {
  let moment: Moment | undefined;
  return (record) => {
    const { status } = record.state;
    if (status === 'running' || status === 'completed') return null;
    moment ??= {
      plan: planOf(state),
      general: whyNoneStarts(state, context),
      warming: warmUps(state, context),
      nowMs: context.nowMs ?? 0,
      gate: context.gate ?? null,
    };
    return whyOne(state, record, moment);
  };
}

/** What all answers at one moment have in common. */
interface Moment {
  readonly plan: Plan;
  readonly general: General;
  readonly warming: WarmUps;
  readonly nowMs: number;
  readonly gate: Gate | null;
}

type General = Pick<Why, 'reason' | 'message' | 'advice'>;

/** What holds for every session that could start. */
function whyNoneStarts(state: GroupState, context: SchedulingContext): General {
  switch (state.status) {
    case 'created':
      return { reason: 'not-started', message: 'The group was not started.', advice: groupAdvice(state) };
    case 'paused':
    case 'failed':
      return { reason: state.reason ?? state.status, message: state.message ?? '', advice: groupAdvice(state) };
    case 'completed':
    case 'archived':
      return { reason: state.status, message: `The group is ${state.status}.` };
    case 'running':
      return whyNow(state, context);
  }
}

function whyNow(state: GroupState, context: SchedulingContext): General {
  if (state.pausing !== undefined) return { reason: 'pausing', message: 'The group is being paused.' };
  if (state.frozenUntil !== undefined) {
    const until = momentText(Date.parse(state.frozenUntil));
    const message = `Everything is halted; at ${until} it becomes a pause.`;
    return { reason: 'frozen', message, advice: advise('Go on with', resumeCommand(state)) };
  }
  const holding = startBlocker(state);
  if (holding === 'needs-person') {
    return { reason: 'needs-person', message: 'Another session failed in a way that only a person can cure.' };
  }
  if (holding !== null) {
    return { reason: holding, message: `${failuresText(state)}, so nothing new starts in this run.` };
  }
  const { wait } = nextStarts(state, context);
  if (wait?.reason === 'limit' && wait.untilMs !== undefined) {
    if (state.group.config.onLimit === 'pause') return { ...settleForLimit(wait.untilMs), advice: groupAdvice(state) };
    return { reason: 'limit', message: limitSentence(wait.untilMs, context.gate?.isThrottled === true) };
  }
  if (wait !== null && wait.reason !== 'backoff') return wait;
  for (const decision of decide(state, context)) {
    if (decision.do === 'wait' && decision.reason !== 'backoff') return decision;
    if (decision.do === 'settle' && decision.status !== 'completed') return { ...decision, advice: groupAdvice(state) };
  }
  return aboutToStart;
}

function limitSentence(untilMs: number, isThrottled: boolean): string {
  const time = momentText(untilMs);
  return isThrottled
    ? `The server throttles requests, which is no usage limit; nothing starts before ${time}, then it goes on.`
    : `A usage limit holds; it is lifted at ${time}, then it goes on.`;
}

function whyOne(state: GroupState, record: SessionRecord, { plan, general, warming, nowMs, gate }: Moment): Why {
  const { id } = record.definition;
  const { status } = record.state;
  const answer = (reason: string, message: string, advice?: Advice): Why => ({
    sessionId: id,
    status,
    reason,
    message,
    ...(advice === undefined ? {} : { advice }),
  });
  const own = explanation(state, plan, record);
  const letItGoOn = advise('Let it go on with', resumeSessionCommand(state, record));
  if (status === 'paused' && isBudgetExhausted(record)) {
    return answer('budget', 'It has used up its own budget.', raiseAdvice(state, record));
  }
  if (own.reason === 'blocked') return answer('blocked', own.message ?? '', own.advice);
  if (status === 'failed' && !record.queued) return answer(own.reason ?? 'failed', own.message ?? '', own.advice);
  const labels = (own.waitsFor ?? []).map((other) => sessionLabel(other, state.sessions.get(other)?.definition.name));
  const waits = `It waits for ${labels.join(', ')}`;
  if (own.reason === 'waiting') return answer('waiting', `${waits}.`);
  if (own.reason === 'held') {
    const held = labels.length > 0 ? `${waits} and is held back.` : 'It is held back.';
    const others = state.status === 'running' ? '' : ' Resuming the group starts it as well.';
    return answer('held', `${held}${others}`, letItGoOn);
  }
  const wait = timedWait(state, plan, record, nowMs, gate);
  if (wait?.reason === 'backoff') {
    const time = momentText(wait.untilMs);
    return answer('backoff', `It is tried again at ${time}. ${own.message ?? ''}`.trim());
  }
  if (state.status === 'running' && !record.queued) {
    return answer(own.reason ?? status, own.message ?? '', letItGoOn);
  }
  if (state.status === 'running' && state.only !== undefined && !state.only.has(id)) {
    return answer('not-asked-for', 'Only other sessions were asked for in this run.');
  }
  if (general.reason === 'cache') {
    // Each kind of sessions waits for one of its own.
    const leader = warming.leaderFor(record);
    const { reason, message } = leader === null ? aboutToStart : cacheWait(state, leader);
    return answer(reason, message);
  }
  return answer(general.reason, general.message, general.advice);
}

const aboutToStart: General = { reason: 'slot', message: 'It is about to start.' };
