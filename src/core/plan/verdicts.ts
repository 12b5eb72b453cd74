/** The verdict on every waiting session: its own reason first, then that of `judge`. */
import { type Advice, advise } from '../advice.ts';
import type { SessionId } from '../group.ts';
import { sessionLabel } from '../id.ts';
import { type Item, openItems } from '../item.ts';
import type { SessionRecord } from '../session-state.ts';
import type { GroupState } from '../state.ts';
import { momentText } from '../text.ts';
import {
  failedBy,
  failureAdvice,
  groupAdvice,
  raiseAdvice,
  resumeSessionCommand,
  retryFailedCommand,
  runCommand,
} from './advice.ts';
import { attachedSession } from './attachment.ts';
import { isBudgetExhausted } from './budget.ts';
import type { Verdicts, WaitReason } from './decision.ts';
import { type GroupHold, loggedContext, type SchedulingContext } from './decision.ts';
import { allBlockers, isAnsweredPause, isBeforeDecision, isHeldBack, isReady, planOf, unmetOf } from './plan.ts';
import { isDelayed, schedule } from './schedule.ts';
import { waitsForWave } from './waves.ts';

/** Why they do not run, in this context. Computed at the first call, once per state. */
export function verdictsOf(state: GroupState, context: SchedulingContext): Verdicts {
  let moment: Moment | undefined;
  return (record) => {
    const { status } = record.state;
    if (status === 'running' || status === 'completed') return null;
    if (moment?.seq !== state.lastSeq) moment = lookAt(state, context);
    return verdictOf(state, context, record, moment);
  };
}

/** The same for a group without a runner, from its log alone. */
export function verdictsAtRest(state: GroupState): Verdicts {
  return verdictsOf(state, { ...loggedContext(state, Date.parse(state.updatedAt)), isAbandoned: true });
}

interface Moment {
  readonly seq: number;
  readonly blockersOf: (id: SessionId) => readonly SessionId[] | undefined;
  readonly refused: ReadonlyMap<SessionId, GroupHold>;
  readonly hold: WaitReason;
  readonly goesOn: boolean;
}

function lookAt(state: GroupState, context: SchedulingContext): Moment {
  const refused = new Map<SessionId, GroupHold>();
  const { hold, goesOn = false } = schedule(state, context, (sessionId, why) => refused.set(sessionId, why));
  let blocked: ReturnType<typeof allBlockers> | undefined;
  const blockersOf = (id: SessionId) => {
    blocked ??= allBlockers(state, planOf(state));
    return blocked.get(id);
  };
  return { seq: state.lastSeq, blockersOf, refused, hold: hold ?? aboutToStart, goesOn };
}

export const aboutToStart: WaitReason = { reason: 'slot', message: 'It is about to start.' };

const answerApplies = 'Your answer is recorded and applies when the group runs.';

const notAskedFor: WaitReason = { reason: 'not-asked-for', message: 'This run was limited to other sessions.' };
export function runnerGone(state: GroupState): WaitReason {
  const advice = advise('Continue with', runCommand(state));
  return { reason: 'runner-gone', message: "The group's runner is gone.", advice };
}

function verdictOf(state: GroupState, context: SchedulingContext, record: SessionRecord, moment: Moment): WaitReason {
  const { hold } = moment;
  const { definition, state: session, queued } = record;
  if (record.takenOver !== undefined) return attachedSession(record.takenOver);
  if (session.status === 'paused' && isBudgetExhausted(record)) {
    return { reason: 'budget', message: 'It has exhausted its own budget.', advice: raiseAdvice(state, record) };
  }
  if (session.status === 'failed' && !queued) {
    const { reason, message } = session.failure;
    return { reason, message, advice: failureAdvice(state, record, session.failure) };
  }
  const [item] = openItems(record);
  if (session.status === 'paused' && item !== undefined) return waitsForAnswer(state, item);
  const unmet = session.status === 'pending' ? unmetOf(state, record) : [];
  if (unmet.length > 0 || (isHeldBack(record) && session.status === 'pending' && state.status !== 'created')) {
    return waitingFor(state, unmet, record, moment);
  }
  if (state.status !== 'created' && isBeforeDecision(state, record)) return waitsForWave(state, record);
  if (session.status === 'paused' && rests(state, queued, hold)) {
    if (isAnsweredPause(record)) {
      return { reason: session.reason, message: answerApplies, advice: advise('Continue with', runCommand(state)) };
    }
    // The advice of a failed group is about the sessions that failed.
    const isOwn = state.status === 'running' || state.status === 'failed';
    const advice = isOwn ? letItGoOn(state, record) : groupAdvice(state);
    return { reason: session.reason, message: session.message, advice };
  }
  if (isReady(state, record)) {
    if (context.isAbandoned && state.status === 'running') return runnerGone(state);
    return delayOf(context, record, moment) ?? moment.refused.get(definition.id) ?? hold;
  }
  return state.status === 'running' && state.only?.has(definition.id) === false ? notAskedFor : hold;
}

export function waitsForAnswer({ group }: GroupState, { id, kind, text }: Item): WaitReason {
  const message = `It waits for an answer (item ${id}): ${text.replace(/(?<![.!?…])$/, '.')}`;
  const answer =
    kind !== 'question'
      ? [
          ['answer', id, 'allow'],
          ['answer', id, 'deny'],
        ]
      : [['inbox', group.id]];
  const reason = kind === 'guard' ? 'guard-changed' : 'waits-for-answer';
  return { reason, message, advice: advise('Answer with', ...answer) };
}

function rests(state: GroupState, queued: boolean, hold: WaitReason): boolean {
  return state.status === 'running' ? !queued : summaries.has(hold.reason);
}

/** Group reasons that only summarise the states of sessions. */
const summaries: ReadonlySet<string> = new Set([
  'sessions-failed',
  'sessions-paused',
  'sessions-waiting',
  'waits-for-answer',
]);

function waitingFor(
  state: GroupState,
  unmet: readonly SessionId[],
  record: SessionRecord,
  { blockersOf }: Moment,
): WaitReason {
  const list = (ids: readonly SessionId[]): string =>
    ids.map((id) => sessionLabel(id, state.sessions.get(id)?.definition.name)).join(', ');
  const culprits = unmet.length === 0 ? undefined : blockersOf(record.definition.id);
  if (culprits !== undefined) {
    const message = `Blocked by ${list(culprits)}, which failed.`;
    const isDenied = state.status !== 'running' && failedBy(state, 'permission').length > 0;
    const advice = isDenied ? groupAdvice(state) : advise('Retry with', retryFailedCommand(state));
    return { reason: 'blocked', message, advice, on: culprits };
  }
  const on = unmet.length === 0 ? {} : { on: unmet };
  if (!isHeldBack(record) || state.status === 'created') {
    return { reason: 'waiting', message: `It waits for ${list(unmet)}.`, ...on };
  }
  const held = unmet.length > 0 ? `It waits for ${list(unmet)} and is held back.` : 'It is held back.';
  const others = state.status === 'running' ? '' : ' Resuming the group starts it as well.';
  return { reason: 'held', message: `${held}${others}`, advice: letItGoOn(state, record), ...on };
}

function letItGoOn(state: GroupState, record: SessionRecord): Advice {
  return advise('Resume it with', resumeSessionCommand(state, record));
}

/** Its own delay, if it resumes by itself after it; null without one, or when the usage limit lasts longer. */
function delayOf(context: SchedulingContext, record: SessionRecord, { hold, goesOn }: Moment): WaitReason | null {
  const { notBeforeMs: until = 0, state: session } = record;
  if (!goesOn || !isDelayed(record, context) || until <= (hold.until ?? 0)) return null;
  const own = session.status === 'paused' ? ` ${session.message}` : '';
  return { reason: 'backoff', message: `It is retried at ${momentText(until)}.${own}`, until };
}
