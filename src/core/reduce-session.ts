/** The effect of a session event on the session and on the group's sums; called by reduce, see state.ts for errors. */
import { defined } from './defined.ts';
import type { AttemptIntent, GroupEvent, StopReason, Warning } from './event.ts';
import type { Evidence } from './evidence.ts';
import {
  addUsage,
  noUsage,
  roundUsd,
  type SessionDefinition,
  type SessionId,
  type Usage,
  type Workspace,
} from './group.ts';
import { type Item, type LeftAnswer, openItems } from './item.ts';
import {
  addLostAttempt,
  beginTakeOver,
  bookAttempt,
  endTakeOver,
  openTakeOver,
  settleCost,
} from './plan/attachment.ts';
import { hasHostConstraints } from './plan/placement.ts';
import { updateBudgetWait } from './plan/settle.ts';
import { cacheKind, isAnswered } from './plan/warm-cache.ts';
import {
  type Attempt,
  attemptOf,
  autoResumesAfter,
  IllegalEvent,
  ownBudgetLeft,
  queue,
  type Rejection,
  type SessionRecord,
  type SessionResult,
} from './session-state.ts';
import { withShared } from './setting-values.ts';
import type { GroupState } from './state.ts';
import { nextSessionStatus } from './status.ts';

export type SessionEvent = Extract<GroupEvent, { sessionId: SessionId }>;
type EventOf<T extends SessionEvent['type']> = Extract<SessionEvent, { type: T }>;

/** Applies a session event. Throws IllegalEvent when it may not happen to that session now. */
export function reduceSession(state: GroupState, event: SessionEvent): void {
  if (event.type === 'session_added') {
    addSession(state, event.session);
    return;
  }
  const record = state.sessions.get(event.sessionId);
  if (!record) throw new IllegalEvent(`${event.type} for the unknown session ${event.sessionId}`);
  if (event.type === 'session_removed') {
    removeSession(state, event.sessionId, record);
    return;
  }
  const before = record.state.status;
  const next = nextSessionStatus(before, event.type);
  if (next === null) throw new IllegalEvent(`${event.type} for the ${before} session ${event.sessionId}`);
  const attempt = record.state.status === 'running' ? record.state.attempt : undefined;
  applySessionEvent(state, record, event);
  if (attempt !== undefined && record.state.status !== 'running') noteWorked(record, attempt, event.at);
  const after = record.state.status;
  if (after !== next) throw new IllegalEvent(`${event.type} led to ${after} instead of ${next}`);
  if (before !== after) {
    state.counts[before] -= 1;
    state.counts[after] += 1;
    if (after === 'running') state.running.add(event.sessionId);
    else state.running.delete(event.sessionId);
  }
}

function addSession(state: GroupState, definition: SessionDefinition): void {
  if (state.sessions.has(definition.id)) throw new IllegalEvent(`session_added twice for ${definition.id}`);
  const record: SessionRecord = {
    definition,
    state: { status: 'pending' },
    queued: true,
    attempts: 0,
    transients: 0,
    stalls: 0,
    messages: [],
    usage: noUsage,
    claudeSessionIds: [],
    warnings: [],
  };
  applyDefinition(state, record, definition);
  state.sessions.set(definition.id, record);
  state.counts.pending += 1;
  state.definitionsVersion += 1;
  if (state.status === 'completed' || state.status === 'failed') {
    state.reason = 'session-added';
    state.message = 'A session was added after the run had ended.';
  }
}

function removeSession(state: GroupState, id: SessionId, record: SessionRecord): void {
  if (record.state.status === 'running') throw new IllegalEvent(`session_removed for the running session ${id}`);
  if (record.takenOver) throw new IllegalEvent(`session_removed for ${id}, which a person has`);
  // Free its held amount now; nothing can do so after the removal.
  const { heldUsd, ...known } = record.usage;
  if (heldUsd !== undefined) settleCost(state, record, known);
  state.sessions.delete(id);
  state.failed.delete(id);
  state.counts[record.state.status] -= 1;
  state.definitionsVersion += 1;
}

/** `own` is the user's definition; the group's shared settings are added. */
export function applyDefinition({ group }: GroupState, record: SessionRecord, own: SessionDefinition): void {
  record.definition = withNotes(withShared(own, group.config), record.notes);
  if (record.definition === own) delete record.own;
  else record.own = own;
}

function withNotes(definition: SessionDefinition, notes: readonly string[] = []): SessionDefinition {
  return notes.length === 0 ? definition : { ...definition, prompt: [definition.prompt, ...notes].join('\n\n') };
}

function changeDefinition(state: GroupState, record: SessionRecord, own: SessionDefinition): void {
  const before = record.definition;
  applyDefinition(state, record, own);
  const { definition } = record;
  // Later attempts use the model that claude reported; forget it when the user chooses another.
  if (before.model !== definition.model) {
    delete record.model;
    if (record.state.status === 'running' && definition.model !== undefined)
      record.state.attempt.model = definition.model;
  }
  if (before.prompt !== definition.prompt) changeTask(record);
  if (checkSettings.some((name) => String(before[name]) !== String(definition[name]))) judgeAnew(record);
  if (before.maxBudgetUsd !== definition.maxBudgetUsd) {
    delete record.budgetSaid;
    updateBudgetWait(state);
  }
  state.definitionsVersion += 1;
}

const checkSettings = ['accept', 'acceptIn', 'guard', 'prove', 'setup'] as const;

/** The next attempt gets the whole new prompt, whatever earlier ones achieved. */
function changeTask(record: SessionRecord): void {
  if (record.attempts > 0) record.taskChanged = true;
  delete record.promptUnsent;
  delete record.finished;
}

/** Work that the old check rejected is checked with the new one before claude is called again. */
function judgeAnew(record: SessionRecord): void {
  const { answer } = record.rejection ?? {};
  if (answer === undefined || record.messages.length > 0 || record.taskChanged) return;
  if (!mustAcceptElsewhere(record)) record.finished = answer;
  delete record.rejection;
  delete record.rejections;
}

function applySessionEvent(
  state: GroupState,
  record: SessionRecord,
  event: Exclude<SessionEvent, { type: 'session_added' | 'session_removed' }>,
): void {
  switch (event.type) {
    case 'session_changed':
      changeDefinition(state, record, event.session);
      return;
    case 'session_inherited':
      inherit(state, record, event);
      return;
    case 'session_starting':
      beginAttempt(state, record, event.attempt, event.at);
      return;
    case 'session_started':
    case 'session_resumed':
    case 'session_retrying':
    case 'session_adopted':
      attemptOf(record, event.attemptId).process = event.process;
      attemptOf(record, event.attemptId).spawnedAt ??= event.at;
      return;
    case 'session_identified':
      identify(record, event);
      return;
    case 'session_stopping':
      stopAttempt(attemptOf(record, event.attemptId), event.reason, event.at);
      return;
    case 'session_warning':
      noteWarning(record, event.warning);
      return;
    case 'session_isolated':
      isolate(state, record, event);
      return;
    case 'session_accepting':
      attemptOf(record, event.attemptId).acceptingAt = event.at;
      accept(state, record, event);
      return;
    case 'session_completed':
      completeSession(state, record, event);
      return;
    case 'session_failed':
      failSession(state, record, event);
      return;
    case 'session_paused':
      pauseSession(state, record, event);
      return;
    case 'session_queued':
      queueByName(state, record, event);
      return;
    case 'session_message':
      noteMessage(record, event.text);
      return;
    case 'session_stalled':
      return;
    case 'session_cost_settled':
      settleCost(state, record, event.usage);
      return;
    case 'session_cleaned':
      clean(record);
      return;
    case 'session_budget_warning':
    case 'session_budget_exceeded':
      record.budgetSaid = event.type === 'session_budget_warning' ? 'warned' : 'exceeded';
      return;
    default:
      applyOther(state, record, event);
  }
}

type OtherEvent =
  | ItemEvent
  | EventOf<'session_moved' | 'session_host_lost' | 'session_booked'>
  | EventOf<'session_attaching' | 'session_attached' | 'session_detached'>;

function applyOther(state: GroupState, record: SessionRecord, event: OtherEvent): void {
  switch (event.type) {
    case 'session_moved':
      record.host = event.to;
      return;
    case 'session_host_lost':
      attemptOf(record, event.attemptId).isLost = true;
      return;
    case 'session_booked':
      bookAttempt(state, record, event.attemptId, event.usage);
      return;
    case 'session_attaching':
      beginTakeOver(state, record, event);
      return;
    case 'session_attached':
      openTakeOver(state, record, event);
      return;
    case 'session_detached':
      endTakeOver(state, record, event);
      return;
    default:
      reduceItem(record, event);
  }
}

function noteWarning({ warnings }: SessionRecord, warning: Warning): void {
  if (!warnings.some(({ message }) => message === warning.message)) warnings.push(warning);
}

function noteWorked(record: SessionRecord, { startedAt, spawnedAt, acceptingAt }: Attempt, at: string): void {
  const { allMs, preparingMs, acceptingMs } = record.worked ?? { allMs: 0, preparingMs: 0, acceptingMs: 0 };
  const between = (from: string, to: string) => Math.max(0, Date.parse(to) - Date.parse(from));
  record.worked = {
    allMs: allMs + between(startedAt, at),
    preparingMs: preparingMs + between(startedAt, spawnedAt ?? at),
    acceptingMs: acceptingMs + between(acceptingAt ?? at, at),
  };
}

function clean(record: SessionRecord): void {
  delete record.workspace;
  delete record.unaware;
}

function beginAttempt(state: GroupState, record: SessionRecord, intent: AttemptIntent, at: string): void {
  if (record.takenOver) throw new IllegalEvent(`an attempt of ${record.definition.id} begins while a person has it`);
  // Only the same attempt may start again, and only while it has cost nothing.
  const same = record.state.status === 'running' ? attemptOf(record, intent.id) : undefined;
  if (same?.identified) throw new IllegalEvent(`attempt ${intent.id} begins again although it has begun to work`);
  const number = same === undefined ? record.attempts + 1 : record.attempts;
  if (intent.number !== number) throw new IllegalEvent(`attempt ${intent.number} instead of attempt ${number}`);
  record.attempts = number;
  if (same === undefined) keepAnswers(record, intent.answers);
  if (record.finished === undefined && isNewTry(record)) {
    record.warnings = record.warnings.filter(({ code }) => !ofOneTry.has(code));
  }
  state.failed.delete(record.definition.id);
  const attempt: Attempt = { ...intent, startedAt: at, identified: false };
  // Its worker is done: only acceptance is left, and the model is not called.
  if (record.finished !== undefined) attempt.accepting = noUsage;
  record.state = { status: 'running', attempt };
  record.isolated ??= intent.isolated === true;
  if (intent.portBase !== undefined) record.portBase = intent.portBase;
  record.queued = false;
  delete record.notBeforeMs;
  delete record.told;
  record.startedAt ??= at;
  delete record.endedAt;
  state.reservedUsd = roundUsd(state.reservedUsd + (intent.reservedUsd ?? 0) - (same?.reservedUsd ?? 0));
}

/** Warnings that apply to one try only: the next may have different permissions, hooks, tasks and changes. */
const ofOneTry: ReadonlySet<Warning['code']> = new Set([
  'denied-tools',
  'hook-missing',
  'no-changes',
  'open-tasks',
  'guarded-files',
]);

/** It failed or was paused for a reason, and was not only interrupted. */
function isNewTry({ state }: SessionRecord): boolean {
  return (
    state.status === 'failed' ||
    (state.status === 'paused' && ['user', 'not-accepted', 'not-proven'].includes(state.reason))
  );
}

/** A running session gets it at once; a starting one may have to be started again; a stopping one gets it later. */
function noteMessage(record: SessionRecord, text: string): void {
  const attempt = record.state.status === 'running' ? record.state.attempt : undefined;
  const hears = attempt !== undefined && attempt.stopping === undefined && attempt.accepting === undefined;
  if (!hears || !attempt.identified) record.messages.push(text);
  if (hears) record.told = [...(record.told ?? []), text];
  // A further message requires another turn before the work is accepted.
  if (attempt === undefined) delete record.finished;
}

function inherit(state: GroupState, record: SessionRecord, event: EventOf<'session_inherited'>): void {
  const { from, isolated, workspace, mergedInto, work } = event;
  record.state = { status: 'completed', ...answerOf(event), ...defined({ work }) };
  record.queued = false;
  record.inherited = from;
  record.isolated = isolated;
  if (mergedInto !== undefined) record.mergedInto = mergedInto;
  if (workspace === undefined) return;
  record.workspace = workspace;
  // Merged work needs no base: sessions that start from now on start from the merged commits.
  if (mergedInto === undefined) noteBase(state, workspace);
}

function isolate(state: GroupState, record: SessionRecord, { workspace }: EventOf<'session_isolated'>): void {
  if (record.workspace !== undefined && record.workspace.remadeAt !== workspace.remadeAt) record.unaware = true;
  record.workspace = workspace;
  noteBase(state, workspace);
}

function noteBase(state: GroupState, workspace: Workspace): void {
  const { repository, target, checkout = repository, origin = workspace.base } = workspace;
  if (state.bases.has(checkout)) return;
  state.bases.set(checkout, { repository, base: origin, ...defined({ target }) });
}

/** The worker is gone and paid for; its answer stays whatever the acceptance says. */
function accept(state: GroupState, record: SessionRecord, event: EventOf<'session_accepting'>): void {
  endAttempt(state, record, event);
  const attempt = attemptOf(record, event.attemptId);
  attempt.accepting = event.usage;
  record.finished = answerOf(event);
}

function answerOf({ result, structured }: SessionResult): SessionResult {
  return { result, ...defined({ structured }) };
}

function identify(record: SessionRecord, event: EventOf<'session_identified'>): void {
  const attempt = attemptOf(record, event.attemptId);
  // The attempt's first request contains all pending messages, except those sent while it was being stopped.
  if (!attempt.identified && attempt.stopping === undefined) record.messages = [];
  attempt.identified = true;
  delete record.resumeAt;
  if (record.claudeSessionIds.at(-1) !== event.claudeSessionId) record.claudeSessionIds.push(event.claudeSessionId);
  // In a turn that started with another model, claude continues to report that one.
  if (event.model !== undefined && attempt.model === undefined) record.model = event.model;
}

function completeSession(state: GroupState, record: SessionRecord, event: EventOf<'session_completed'>): void {
  endAttempt(state, record, event);
  const work = defined({ work: event.work });
  record.state = { status: 'completed', ...answerOf(event), ...work };
  delete record.finished;
  delete record.rejections;
  delete record.rejection;
  closeItems(record);
}

function queueByName(
  state: GroupState,
  record: SessionRecord,
  { sessionId, queued, prompt, fresh, resumeAt }: EventOf<'session_queued'>,
): void {
  if (queued) state.failed.delete(sessionId);
  else if (record.queued && record.state.status === 'failed') state.failed.add(sessionId);
  if (record.state.status === 'completed') {
    record.state = { status: 'paused', reason: 'user', message: 'It continues with a further prompt.' };
    delete record.mergedInto;
  }
  queue(record, queued);
  // A session requested by name belongs to this run.
  if (queued && state.only !== undefined) state.only = new Set([...state.only, sessionId]);
  if (prompt !== undefined) noteMessage(record, prompt);
  if (fresh !== undefined) record.claudeSessionIds.push(fresh);
  if (resumeAt !== undefined) record.resumeAt = resumeAt;
  // The resumed conversation does not contain the last prompt.
  if (fresh !== undefined || resumeAt !== undefined) delete record.promptUnsent;
}

function failSession(state: GroupState, record: SessionRecord, event: EventOf<'session_failed'>): void {
  endAttempt(state, record, event);
  // Rejected work needs another turn; after any other acceptance problem only the acceptance is repeated.
  if (event.reason === 'not-accepted' || event.reason === 'not-proven') reject(record, event);
  const { reason, message, next } = event;
  record.state = { status: 'failed', failure: { reason, message, next } };
  record.lastFailure = message;
  closeItems(record);
  state.failed.add(event.sessionId);
}

/** The first cause is kept, but a cause with automatic resume gives way to the user's. */
function stopAttempt(attempt: Attempt, reason: StopReason, at: string): void {
  attempt.stoppingAt ??= at;
  if (attempt.stopping === undefined || (autoResumesAfter(attempt.stopping) && reason === 'user'))
    attempt.stopping = reason;
}

/** The cause of the pause decides whether it resumes by itself. */
function pauseSession(state: GroupState, record: SessionRecord, event: EventOf<'session_paused'>): void {
  const isInterrupted = !judged.has(event.reason) && attemptOf(record, event.attemptId).accepting !== undefined;
  if (isInterrupted && mustAcceptElsewhere(record)) delete record.finished;
  endAttempt(state, record, event);
  record.state = { status: 'paused', reason: event.reason, message: event.message };
  switch (event.reason) {
    case 'interrupted':
      record.queued = true;
      // It was killed from outside while its runner was alive.
      if (event.retryAt !== undefined) countTransient(record, false);
      break;
    case 'host-lost':
    case 'top-up':
    case 'limit':
    case 'waits-for-answer':
      record.queued = true;
      break;
    case 'disk':
      record.queued = true;
      record.diskPauses = (record.diskPauses ?? 0) + 1;
      break;
    case 'transient':
      record.queued = true;
      // An attempt that made progress resets the count. Its cost proves nothing: an aborted reply is paid for as well.
      countTransient(record, event.progressed === true);
      break;
    case 'stall':
      record.queued = true;
      record.stalls = event.progressed === true ? 1 : record.stalls + 1;
      record.stallsInAll = (record.stallsInAll ?? 0) + 1;
      break;
    case 'not-accepted':
    case 'not-proven':
      record.queued = true;
      record.rejections = (record.rejections ?? 0) + 1;
      reject(record, event);
      break;
    case 'budget':
      // Its reservation was spent; it resumes when its own cap and the group's allow it.
      record.queued = ownBudgetLeft(record) > 0;
      break;
    default:
      record.queued = false;
  }
  if (event.retryAt !== undefined) record.notBeforeMs = Date.parse(event.retryAt);
  if (openItems(record).length > 0) record.queued = false;
}

function countTransient(record: SessionRecord, progressed: boolean): void {
  record.transients = progressed ? 1 : record.transients + 1;
  record.transientsInAll = (record.transientsInAll ?? 0) + 1;
}

/** Reasons of an acceptance that came to its end. */
const judged: ReadonlySet<string> = new Set(['not-accepted', 'not-proven', 'guard-changed']);

/** Without claude, acceptance runs on this machine. Its command may need what only other hosts have. */
function mustAcceptElsewhere({ definition }: SessionRecord): boolean {
  return definition.accept !== undefined && hasHostConstraints(definition);
}

/** Records why the work was rejected; the next turn is told. */
function reject(
  record: SessionRecord,
  { message, output = '' }: Pick<Rejection, 'message'> & Partial<Rejection>,
): void {
  const { finished: answer } = record;
  delete record.finished;
  record.rejection = { message, output, ...defined({ answer }) };
}

/** Attempts that end for these reasons: claude has stored the prompt but received no answer. */
const notServed: ReadonlySet<string | undefined> = new Set(['transient', 'limit', 'api-error']);

interface Ending {
  readonly attemptId: string;
  readonly usage: Usage;
  readonly at: string;
  readonly reason?: string;
  readonly unread?: readonly string[];
  readonly evidence?: Evidence;
}

function endAttempt(state: GroupState, record: SessionRecord, event: Ending): void {
  const attempt = attemptOf(record, event.attemptId);
  record.endedAt = event.at;
  if (event.evidence !== undefined) record.evidence = event.evidence;
  record.messages.push(...(event.unread ?? []));
  const isFree = event.usage.costUsd === 0 && !isAnswered(event.usage);
  const isOfThisBoot = attempt.process !== undefined && attempt.process.bootId === state.run?.runner.bootId;
  if (notServed.has(event.reason) && isFree && isOfThisBoot) record.promptUnsent = true;
  else delete record.promptUnsent;
  // Its worker's usage was counted when it ended.
  if (attempt.accepting) return;
  // Before an answer the prompt may have been lost; it is better sent twice than never.
  if (isAnswered(event.usage)) delete record.unaware;
  if (isAnswered(event.usage)) delete record.taskChanged;
  if (isAnswered(event.usage)) delete record.spokenWith;
  if (isAnswered(event.usage)) delete record.cleared;
  // Without an answer it has left nothing in the prompt cache for others.
  if (isAnswered(event.usage)) state.endedMs.set(cacheKind(state.group, record.definition), Date.parse(event.at));
  state.reservedUsd = Math.max(0, roundUsd(state.reservedUsd - (attempt.reservedUsd ?? 0)));
  record.usage = addUsage(record.usage, event.usage);
  addLostAttempt(record, attempt, event.usage);
  state.usage = addUsage(state.usage, event.usage);
}

// Items: questions of a session to the user.

type ItemEvent = EventOf<'item_opened' | 'item_answered' | 'item_withdrawn'>;

function reduceItem(record: SessionRecord, event: ItemEvent): void {
  const known = record.items?.find(({ id }) => id === event.item);
  if (event.type === 'item_opened') {
    if (known !== undefined) throw new IllegalEvent(`item_opened twice for ${event.item}`);
    const { kind, text, options, firstOptions, requestId, toolUseId, tool, input, attemptId, answerBy, at } = event;
    const request = { kind, text, options, ...defined({ firstOptions }), requestId, toolUseId, tool, input };
    const by = answerBy === undefined ? {} : { answerBy };
    record.items = [
      ...(record.items ?? []),
      { id: event.item, ...request, attemptId, since: at, ...by, state: 'open' },
    ];
    return;
  }
  if (known?.state !== 'open') throw new IllegalEvent(`${event.type} for ${event.item}, which is not open`);
  const used = event.type === 'item_answered' ? event.from : undefined;
  record.items = (record.items ?? []).map((item): Item => {
    if (item.id === used) return { ...item, left: undefined };
    if (item !== known) return item;
    if (event.type === 'item_withdrawn') return { ...item, state: 'withdrawn' };
    const left = item.kind === 'guard' ? undefined : 'quote';
    return { ...item, state: 'answered', answer: event.answer, left };
  });
  if (known.kind === 'guard' && event.type === 'item_answered' && event.answer.text === 'deny') {
    const note = event.answer.note === undefined ? '' : ` ${event.answer.note}`;
    const message = `${known.text}. A person did not accept that.${note}`;
    reject(record, { message, output: String(known.input.output ?? '') });
  }
  const { state } = record;
  if (state.status === 'paused' && openItems(record).length === 0 && !endedByPerson.has(state.reason))
    record.queued = true;
}

/** After any other pause, the session resumes once its last open item is answered. */
const endedByPerson: ReadonlySet<string> = new Set(['user', 'signal', 'deleted', 'error-threshold']);

/** Which answers the new attempt must still deliver depends on its conversation; see LeftAnswer. */
function keepAnswers(record: SessionRecord, kept: readonly LeftAnswer[] = []): void {
  if (record.items === undefined) return;
  record.items = record.items.map((item) => ({ ...item, left: kept.find((one) => one.item === item.id)?.left }));
}

/** The session has ended: open items are closed. */
function closeItems(record: SessionRecord): void {
  if (record.items === undefined) return;
  record.items = record.items.map((item) => ({
    ...item,
    state: item.state === 'open' ? 'withdrawn' : item.state,
    left: undefined,
  }));
}
