/** `session attach`: its log events, and the commands that are refused while a user is attached. */
import { type Advice, advise } from '../../core/advice.ts';
import type { EventBody } from '../../core/event.ts';
import { fail, ok, type Result, unreachable } from '../../core/failure.ts';
import { numberedName } from '../../core/id.ts';
import {
  groupAdvice,
  raiseGroupCommand,
  raiseSessionCommand,
  runCommand,
  sessionReference,
} from '../../core/plan/advice.ts';
import { attachedFailure, attachmentGrant } from '../../core/plan/attachment.ts';
import { autoResumesAfter, type SessionRecord } from '../../core/session-state.ts';
import type { GroupState } from '../../core/state.ts';
import type { RequestBody } from '../../store/requests.ts';

type AttachKind = 'attach-session' | 'open-attached' | 'detach-session';
type AttachCommand = Extract<RequestBody, { readonly kind: AttachKind }>;

/** Commands that are allowed while a session is attached. */
const allowed: ReadonlySet<string> = new Set([
  'say',
  'pause-session',
  'settle-cost',
  'open-attached',
  'detach-session',
]);

/** The refusal of a command because a user is attached; null when it is allowed. */
export function attachedProblem(state: GroupState, record: SessionRecord, kind: string): Result<never> | null {
  return record.takenOver === undefined || allowed.has(kind) ? null : attachedFailure(state, record);
}

export function anyAttachedProblem(state: GroupState): Result<never> | null {
  for (const id of state.takenOver) {
    const record = state.sessions.get(id);
    if (record !== undefined) return attachedFailure(state, record);
  }
  return null;
}

export function attachEvents(state: GroupState, record: SessionRecord, command: AttachCommand): Result<EventBody[]> {
  const { sessionId, attachmentId } = command;
  switch (command.kind) {
    case 'attach-session': {
      const problem = attachProblem(state, record);
      if (problem !== null) return problem;
      const { process } = command;
      return ok([{ type: 'session_attaching', sessionId, attachmentId, process }, ...stopFor(record)]);
    }
    case 'open-attached': {
      if (record.takenOver?.id !== attachmentId) return notAttachedHere(record);
      if (record.takenOver.openedAt !== undefined) return ok([]);
      if (record.state.status !== 'paused' && record.state.status !== 'failed') return notNow(state, record);
      const grant = attachmentGrant(state, record);
      if (grant.kind === 'own-dry' || grant.kind === 'dry') return budgetExhausted(state, record, grant.kind);
      const reserved = grant.kind === 'share' ? { reservedUsd: grant.usd } : {};
      return ok([{ type: 'session_attached', sessionId, attachmentId, ...reserved }]);
    }
    case 'detach-session': {
      // The runner has already treated this process as dead and recorded its cost.
      if (record.takenOver?.id !== attachmentId) return ok([]);
      const { usage, claudeSessionIds, spoken, cleared } = command;
      const said = { ...(spoken ? { spoken } : {}), ...(cleared ? { cleared } : {}) };
      return ok([{ type: 'session_detached', sessionId, attachmentId, usage, claudeSessionIds, ...said }]);
    }
    default:
      return unreachable(command);
  }
}

function stopFor({ definition, state }: SessionRecord): EventBody[] {
  if (state.status !== 'running') return [];
  const { attempt } = state;
  if (attempt.stopping !== undefined && !autoResumesAfter(attempt.stopping)) return [];
  return [{ type: 'session_stopping', sessionId: definition.id, attemptId: attempt.id, reason: 'user' }];
}

function attachProblem(state: GroupState, record: SessionRecord): Result<never> | null {
  const { status } = record.state;
  if (status === 'pending' || status === 'completed') return notNow(state, record);
  const dry = status === 'running' ? null : attachmentGrant(state, record).kind;
  if (dry === 'own-dry' || dry === 'dry') return budgetExhausted(state, record, dry);
  return busyCheckout(state, record);
}

/** Two sessions must not share a checkout, except with worktrees or where the user allowed it. */
function busyCheckout(
  state: GroupState,
  { definition: { id, repository }, isolated }: SessionRecord,
): Result<never> | null {
  if (state.group.config.shareCheckouts || repository === undefined || isolated === true) return null;
  const other = [...state.running, ...state.takenOver].find((one) => {
    const record = state.sessions.get(one);
    return one !== id && record?.isolated !== true && record?.definition.repository === repository;
  });
  const record = other === undefined ? undefined : state.sessions.get(other);
  if (record === undefined) return null;
  const message = `${titleOf(record)} is using the same checkout. Sessions without worktrees take turns there.`;
  const next = advise('Wait for it, or pause it first', ['session', 'pause', sessionReference(state, record)]);
  return fail('illegal-transition', message, next);
}

function notNow(state: GroupState, record: SessionRecord): Result<never> {
  const { status } = record.state;
  const about = titleOf(record);
  if (status === 'completed') {
    const next = advise('Run it again with', ['group', 'copy', state.group.id, '--from', label(state, record)]);
    return fail('illegal-transition', `${about} is completed and cannot be changed.`, next);
  }
  if (status === 'pending') {
    const message = `${about} was never started, so there is no conversation to attach to.`;
    return fail('illegal-transition', message, startAdvice(state));
  }
  return fail('illegal-transition', `${about} is running again.`, 'Attach to it again.');
}

function startAdvice(state: GroupState): Advice {
  if (state.status === 'running') return advise('See why it has not started', ['group', 'why', state.group.id]);
  return state.status === 'created' ? advise('Start the group with', runCommand(state)) : groupAdvice(state);
}

function budgetExhausted(state: GroupState, record: SessionRecord, kind: 'dry' | 'own-dry'): Result<never> {
  if (kind === 'own-dry') {
    const message = `${titleOf(record)} has used up its own budget.`;
    return fail('usage', message, advise('Raise the cap and continue with', raiseSessionCommand(state, record)));
  }
  const what =
    state.reservedUsd > 0
      ? "The rest of the group's budget is reserved by other sessions."
      : "The group's budget is exhausted.";
  return fail('usage', what, advise('Raise it first', raiseGroupCommand(state)));
}

function notAttachedHere(record: SessionRecord): Result<never> {
  return fail('illegal-transition', `${titleOf(record)} is no longer attached to this command.`, 'Attach to it again.');
}

function titleOf({ definition: { id, name } }: SessionRecord): string {
  return `Session ${numberedName(id, name)}`;
}

function label(state: GroupState, record: SessionRecord): string {
  return sessionReference(state, record).slice(state.group.id.length + 1);
}
