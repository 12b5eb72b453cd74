/** `session attach`: its log events, and the commands that are refused while a user is attached. */

import { openCostMeter } from '../claude/attached-cost.ts';
import { type KeptMessage, keptMessages } from '../claude/conversation.ts';
import { withHeldUsd } from '../claude/final-usage.ts';
import { heldAfterKill } from '../claude/spending.ts';
import { type Advice, advise } from '../core/advice.ts';
import { defined } from '../core/defined.ts';
import type { Conversed, EventBody, ProcessIdentity } from '../core/event.ts';
import { fail, ok, type Result, unreachable } from '../core/failure.ts';
import { noUsage, type PriceTable, type SessionId } from '../core/group.ts';
import { numberedName } from '../core/id.ts';
import {
  groupAdvice,
  raiseGroupCommand,
  raiseSessionCommand,
  runCommand,
  sessionReference,
} from '../core/plan/advice.ts';
import { attachedFailure, attachmentGrant } from '../core/plan/attachment.ts';
import { type Attachment, autoResumesAfter, type SessionRecord } from '../core/session-state.ts';
import type { GroupState } from '../core/state.ts';
import type { GroupWriter } from '../store/group-writer.ts';
import { type GroupPaths, sessionPaths } from '../store/paths.ts';
import type { RequestBody } from '../store/requests.ts';
import type { World } from '../system/world.ts';
import type { Fact } from '../worker/facts.ts';
import { reap } from '../worker/reap.ts';
import { deadlineEvents } from './item-events.ts';

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

// If the attach command dies, its claude is ended, the cost is read from claude's files, and the session returns
// to the group.

/** Attached sessions whose command is gone and whose end is not being recorded yet. */
export function abandonedAttachments(world: World, state: GroupState): SessionId[] {
  return [...state.takenOver].filter((id) => {
    const record = state.sessions.get(id);
    return (
      record?.takenOver !== undefined && record.state.status !== 'running' && isGone(world, record.takenOver.process)
    );
  });
}

function isGone(world: World, process: ProcessIdentity): boolean {
  const { self } = world.machine;
  if (process.host !== self.host) return false;
  return process.bootId !== self.bootId || !world.processes.isAlive(process);
}

/** Ends the remaining processes and counts the cost; the returned event must be logged. */
export async function endAbandonedAttachment(
  world: World,
  paths: GroupPaths,
  { group }: GroupState,
  { definition, takenOver, claudeSessionIds, model }: SessionRecord & { readonly takenOver: Attachment },
): Promise<EventBody> {
  const { id: attachmentId } = takenOver;
  await reap(world, attachmentId);
  const conversed = abandonedCost(
    world,
    paths,
    { definition, claudeSessionIds, ...defined({ model }) },
    takenOver,
    group.config.prices ?? {},
  );
  return { type: 'session_detached', sessionId: definition.id, attachmentId, ...conversed };
}

function abandonedCost(
  world: World,
  paths: GroupPaths,
  { definition, claudeSessionIds, model }: Pick<SessionRecord, 'definition' | 'claudeSessionIds' | 'model'>,
  { openedAt, process, reservedUsd }: Attachment,
  prices: PriceTable,
): Conversed {
  if (openedAt === undefined) return { usage: noUsage, claudeSessionIds: [] };
  const { config } = sessionPaths(paths, definition.id);
  const openedMs = Date.parse(openedAt);
  const meter = openCostMeter(world, config, openedMs, prices);
  meter.look();
  const conversed = meter.conversed(openedMs, claudeSessionIds.at(-1));
  // After a machine crash the last writes may be lost.
  const isLost = process.bootId !== world.machine.self.bootId || meter.isAsking;
  if (!isLost) return conversed;
  const kept = keptMessages(world, config, claudeSessionIds, prices);
  return withAnswerHeld(conversed, kept, { ...defined({ reservedUsd, model }) }, prices);
}

/** Holds money for the response that claude was waiting for when it was killed. */
export function withAnswerHeld(
  conversed: Conversed,
  kept: readonly KeptMessage[],
  { reservedUsd, model }: Pick<Attachment, 'reservedUsd'> & Pick<SessionRecord, 'model'>,
  prices: PriceTable,
): Conversed {
  const mostExpensiveUsd = kept.reduce((most, { usd }) => Math.max(most, usd), 0);
  const seenUsd = conversed.usage.costUsd;
  const rest = { ...defined({ reservedUsd, model }), prices };
  const heldUsd = heldAfterKill({ seenUsd, mostExpensiveUsd, requests: 1, ...rest });
  return { ...conversed, usage: withHeldUsd(conversed.usage, heldUsd) };
}

/** Recovers abandoned attachments without a runner. The caller holds the group's lock. */
export async function recoverAttachments(world: World, writer: GroupWriter): Promise<void> {
  writer.record(deadlineEvents(writer.state, world.clock.now()));
  for (const id of abandonedAttachments(world, writer.state)) {
    const record = writer.state.sessions.get(id);
    if (record?.takenOver === undefined) continue;
    const { takenOver } = record;
    writer.record([await endAbandonedAttachment(world, writer.paths, writer.state, { ...record, takenOver })]);
  }
}

// Detects attach commands that have died.

/** The returned function ends the attachments whose command has died. */
export function watchAttachments(
  world: World,
  { state, paths }: { readonly state: GroupState; readonly paths: GroupPaths },
  emit: (fact: Fact) => void,
): () => void {
  const ending = new Set<string>();
  return () => {
    for (const id of abandonedAttachments(world, state)) {
      const record = state.sessions.get(id);
      const { takenOver } = record ?? {};
      if (record === undefined || takenOver === undefined || ending.has(takenOver.id)) continue;
      ending.add(takenOver.id);
      // A failure, on a full disk for example, is retried at the next check.
      endAbandonedAttachment(world, paths, state, { ...record, takenOver }).then(
        (event) => emit({ kind: 'attachment-ended', event }),
        () => ending.delete(takenOver.id),
      );
    }
  };
}

/** The event to log, unless the command itself has logged it meanwhile. */
export function attachmentEndEvents({ sessions }: GroupState, event: EventBody): EventBody[] {
  if (event.type !== 'session_detached') return [];
  return sessions.get(event.sessionId)?.takenOver?.id === event.attachmentId ? [event] : [];
}
