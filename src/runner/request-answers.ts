/**
 * Converts a user's command to log events. The live runner does this for requests of other processes; without a runner
 * the command does it itself, under the lock. The answer is logged with the events, then the request file is removed.
 */
import { messageBefore } from '../claude/conversation.ts';
import { type Advice, advise, adviseInOrder, see } from '../core/advice.ts';
import { defined } from '../core/defined.ts';
import {
  changed,
  changedNames,
  configEvents,
  definitionsWith,
  editProblem,
  graphProblem,
  groupDescription,
  ownProblem,
  type SessionChanges,
} from '../core/edit.ts';
import type { EventBody } from '../core/event.ts';
import { describeFailure, errorText, fail, ok, type Result } from '../core/failure.ts';
import { buildGraph } from '../core/graph.ts';
import { type GroupId, roundUsd, type SessionDefinition, type SessionId, type Usage } from '../core/group.ts';
import { makeSessionId, numberedName, sessionLabel, sessionNumber, sessionUuid } from '../core/id.ts';
import { openItems } from '../core/item.ts';
import { raiseSessionCommand, resumeSessionCommand, runCommand } from '../core/plan/advice.ts';
import { isBudgetExhausted } from '../core/plan/budget.ts';
import {
  autoResumesAfter,
  type ConversationChoice,
  conversationId,
  ownDefinition,
  type SessionRecord,
} from '../core/session-state.ts';
import { isWhole, promptProblem, sessionProblem } from '../core/setting-values.ts';
import type { GroupState } from '../core/state.ts';
import { listNames } from '../core/text.ts';
import type { GroupWriter } from '../store/group-writer.ts';
import { type GroupPaths, sessionPaths } from '../store/paths.ts';
import { type GroupEdit, type RequestBody, removeRequest, takeRequests } from '../store/requests.ts';
import { isLogFailure } from '../store/system-failure.ts';
import type { World } from '../system/world.ts';
import { anyAttachedProblem, attachEvents, attachedProblem } from './attach.ts';
import { allowedEvents, answerEvents, closedText, withdrawals } from './item-events.ts';

const namesShownMax = 8;
/** Then a freeze becomes a pause, because the API closes idle connections. */
const freezeMs = 60_000;

export interface AnswerOptions {
  /** The session has finished, but its end is not logged yet. */
  readonly isDone?: (sessionId: SessionId) => boolean;
  /** Requests of other kinds are not handled. */
  readonly takes?: (kind: RequestBody['kind']) => boolean;
  /** Usage of running attempts so far. */
  readonly used?: () => Iterable<Usage>;
}

export function answerRequests(
  world: World,
  writer: GroupWriter,
  runId: string,
  record: (bodies: readonly EventBody[]) => void,
  { isDone = () => false, takes = () => true, used = () => [] }: AnswerOptions = {},
): void {
  for (const { request, path } of takeRequests(world, writer.paths, runId)) {
    if (!takes(request.kind)) continue;
    const isLate = request.kind === 'say' && isDone(request.sessionId);
    const { state, paths } = writer;
    const effect = isLate ? tooLate(request.sessionId) : commandEvents(world, { state, paths, used }, request);
    const requestId = request.id;
    const answer = (message: string) => record([{ type: 'request_answered', requestId, done: false, message }]);
    if (effect.ok) {
      const { events, sessionId } = effect.value;
      const about = defined({ sessionId });
      try {
        record([...events, { type: 'request_answered', requestId, done: true, message: '', ...about }]);
      } catch (error) {
        if (isLogFailure(error)) throw error;
        answer(`The request could not be recorded: ${errorText(error)}.`);
      }
    } else answer(describeFailure(effect.failure));
    removeRequest(world, path);
  }
}

function tooLate(sessionId: SessionId): Result<never> {
  const message = `Session ${sessionId} has just finished and can receive no more messages.`;
  return fail('usage', message, 'Add a session that depends on it instead.');
}

/** Commands on a group. `archive` is not a request: it needs the lock. */
export type Command = RequestBody | { readonly kind: 'archive' };

export type CommandOf<K extends Command['kind']> = Extract<Command, { readonly kind: K }>;

export interface Asked {
  readonly state: GroupState;
  readonly paths: GroupPaths;
  readonly used: () => Iterable<Usage>;
}

export interface RequestEffect {
  readonly events: EventBody[];
  readonly sessionId?: SessionId;
}

/** The events of a command. Fails when the command is not possible in the present state. */
export function commandEvents(world: World, asked: Asked, command: Command): Result<RequestEffect> {
  const { state } = asked;
  const refusal = statusProblem(state, command.kind);
  if (refusal !== null) return refusal;
  switch (command.kind) {
    case 'add-session': {
      const id = nextSessionId(world, state);
      const session: SessionDefinition = { id, ...command.session };
      const problem = additionProblem(state, session);
      if (problem !== null) return problem;
      return ok({ events: [{ type: 'session_added', sessionId: session.id, session }], sessionId: session.id });
    }
    case 'pause':
      return ok({ events: pauseEvents(world, state, command) });
    case 'thaw':
      if (state.frozenUntil !== undefined) return ok({ events: thawEvents(state) });
      return fail(
        'usage',
        'The group is running and is not frozen.',
        advise('Watch it with', ['group', 'watch', state.group.id]),
      );
    case 'edit-group': {
      const events = editGroupEvents(asked, command);
      if (!events.ok) return events;
      const edited = events.value.flatMap((event) =>
        event.type === 'session_changed' ? (state.sessions.get(event.sessionId) ?? []) : [],
      );
      const settled = [...edited.flatMap(withdrawals), ...allowedEvents(state, command.allow ?? [])];
      return ok({ events: [...settled, ...events.value] });
    }
    case 'decide-wave': {
      const item = state.waves.items.find(({ id }) => id === command.item);
      if (item === undefined) return fail('not-found', `There is no item ${command.item}.`, '');
      if (item.state !== 'open') return fail('usage', closedText(item), '');
      const { decision, note } = command;
      const { wave } = item;
      return ok({ events: [{ type: 'wave_decided', wave, decision, by: 'user', ...defined({ note }) }] });
    }
    case 'archive': {
      const taken = anyAttachedProblem(state);
      if (taken !== null) return taken;
      return ok({ events: state.status === 'archived' ? [] : [{ type: 'group_archived' }] });
    }
    default: {
      const problem = textProblem(command);
      if (problem !== null) return fail('usage', problem, '');
      const record = state.sessions.get(command.sessionId);
      if (!record && command.sessionId === undefined) return unknownRequest(state.group.id);
      if (!record) return fail('not-found', `There is no session ${command.sessionId} in this group.`, '');
      const taken = attachedProblem(state, record, command.kind);
      if (taken !== null) return taken;
      const events = sessionCommandEvents(world, asked, record, command);
      if (!events.ok) return events;
      const withdrawn = events.value.length > 0 && withdrawing.has(command.kind) ? withdrawals(record) : [];
      // claude takes a message along with the end of the call only if it has the message first.
      const all = command.kind === 'say' ? [...events.value, ...withdrawn] : [...withdrawn, ...events.value];
      return ok({ events: all, sessionId: command.sessionId });
    }
  }
}

/** Commands that replace the answer to an open item, which is then withdrawn. */
const withdrawing: ReadonlySet<Command['kind']> = new Set(['say', 'edit-session', 'allow-tools', 'retry-session']);

function itemEvents(asked: Asked, record: SessionRecord, command: CommandOf<'answer-item'>): Result<EventBody[]> {
  const answered = answerEvents(record, command.item, command.given);
  if (!answered.ok) return answered;
  const { events, rules } = answered.value;
  const allowed = rules.length === 0 ? ok([]) : editGroupEvents(asked, { allow: rules });
  return allowed.ok ? ok([...allowed.value, ...events, ...allowedEvents(asked.state, rules, command.item)]) : allowed;
}

function unknownRequest(groupId: GroupId): Result<never> {
  const message = `The runner of ${groupId} does not know this request, because it is another version of the program.`;
  const pause = ['group', 'pause', groupId];
  const next = adviseInOrder('Pause the group, then resume it with this version', pause, ['group', 'resume', groupId]);
  return fail('usage', message, next);
}

function statusProblem(state: GroupState, kind: Command['kind']): Result<never> | null {
  const {
    group: { id },
    status,
  } = state;
  const about = `Group ${id} is ${status}`;
  if (status === 'archived' && kind !== 'archive' && kind !== 'settle-cost') {
    const next = advise('Create a new group, or delete this one with', ['group', 'delete', id]);
    return fail('illegal-transition', `${about} and cannot be changed.`, next);
  }
  if (kind !== 'archive' || (status !== 'created' && status !== 'running')) return null;
  const next =
    status === 'running'
      ? advise('Its runner exited. Continue it with', runCommand(state))
      : advise('Run it first, or delete it with', ['group', 'delete', id]);
  return fail('illegal-transition', `${about}; only completed, failed and paused groups can be archived.`, next);
}

function textProblem(command: Command): string | null {
  const text = command.kind === 'say' ? command.text : command.kind === 'retry-session' ? command.prompt : undefined;
  const problem = text === undefined ? null : promptProblem(text);
  return problem === null ? null : `The message ${problem}.`;
}

function pauseEvents(world: World, state: GroupState, { mode, toDelete }: CommandOf<'pause'>): EventBody[] {
  if (mode === 'freeze') {
    if (state.frozenUntil !== undefined || (state.pausing !== undefined && !state.draining)) return [];
    return [{ type: 'group_frozen', until: new Date(world.clock.now() + freezeMs).toISOString() }];
  }
  // A halted process cannot receive a stop.
  const thaw: EventBody[] = state.frozenUntil === undefined ? [] : [{ type: 'group_thawed' }];
  const known = state.pausing !== undefined && (!state.draining || mode === 'drain');
  return known ? thaw : [...thaw, { type: 'group_pausing', reason: toDelete ? 'deleted' : 'user', mode }];
}

/** Failed sessions are retried, as when a run resumes the group; otherwise the run would end with them. */
function thawEvents({ sessions, only }: GroupState): EventBody[] {
  const again = [...sessions].filter(
    ([id, { state, queued, takenOver }]) =>
      state.status === 'failed' && !queued && takenOver === undefined && (only === undefined || only.has(id)),
  );
  return [
    ...again.map(([sessionId]): EventBody => ({ type: 'session_queued', sessionId, queued: true })),
    { type: 'group_thawed' },
  ];
}

type SessionCommand = Extract<Command, { readonly sessionId: SessionId }>;

function sessionCommandEvents(
  world: World,
  asked: Asked,
  record: SessionRecord,
  command: SessionCommand,
): Result<EventBody[]> {
  const { state, paths } = asked;
  const { sessionId } = command;
  switch (command.kind) {
    case 'remove-session':
      return removalEvents(state, record);
    case 'pause-session':
      return pauseSessionEvents(record);
    case 'resume-session':
      return resumeEvents(state, record, command.maxBudgetUsd);
    case 'retry-session': {
      const { status } = record.state;
      const isParked = status === 'paused' && openItems(record).length > 0;
      if (status !== 'failed' && !isParked && !(status === 'completed' && command.prompt !== undefined)) {
        const goOn = resumeSessionCommand(state, record);
        return refused(
          record,
          'retried',
          advise('Give a failed session, or a completed one with --prompt. Resume a paused one with', goOn),
        );
      }
      const goesOn = conversationFor(world, paths, record, command);
      if (!goesOn.ok) return goesOn;
      const prompt = defined({ prompt: command.prompt });
      return ok([{ type: 'session_queued', sessionId, queued: true, ...prompt, ...goesOn.value }]);
    }
    case 'settle-cost':
      return settleEvents(state, record, command.isSpent);
    case 'say': {
      if (record.state.status === 'completed') {
        return refused(record, 'sent a message', 'Add a session that depends on it instead.');
      }
      // The message's position in the transcript.
      const offset = world.files.info(sessionPaths(paths, sessionId).transcript)?.size ?? 0;
      return ok([{ type: 'session_message', sessionId, text: command.text, offset }]);
    }
    case 'answer-item':
      return itemEvents(asked, record, command);
    case 'edit-session':
    case 'allow-tools':
      return editSessionEvents(state, record, editOf(record, command));
    case 'attach-session':
    case 'open-attached':
    case 'detach-session':
      return attachEvents(state, record, command);
    default:
      command satisfies never;
      return unknownRequest(state.group.id);
  }
}

function conversationFor(
  world: World,
  paths: GroupPaths,
  record: SessionRecord,
  { fresh, rewind }: ConversationChoice,
): Result<{ readonly fresh?: string; readonly resumeAt?: string }> {
  if (fresh) return ok({ fresh: world.random.uuid() });
  if (rewind === undefined) return ok({});
  if (!isWhole(rewind, Number.MAX_SAFE_INTEGER)) return fail('usage', 'rewind must be a whole number above 0.', '');
  const { config } = sessionPaths(paths, record.definition.id);
  const { resumeAt, messages } = messageBefore(world, config, conversationId(record), rewind);
  if (resumeAt !== undefined) return ok({ resumeAt });
  const has = messages === 1 ? 'only one message' : `only ${messages} messages`;
  const message = `The conversation has ${messages === 0 ? 'no message' : has} of the model.`;
  return fail('usage', message, 'Rewind fewer messages, or start a new conversation with --fresh.');
}

/** Held money becomes spent (`isSpent`) or is released. */
function settleEvents({ group }: GroupState, record: SessionRecord, isSpent: boolean): Result<EventBody[]> {
  const { id: sessionId } = record.definition;
  const { heldUsd, ...usage } = record.usage;
  if (heldUsd === undefined) {
    const next = see('group', 'budget', group.id);
    return fail('usage', `Nothing is held for session ${sessionId}.`, next);
  }
  const costUsd = isSpent ? usage.costUsd : Math.max(0, roundUsd(usage.costUsd - heldUsd));
  // claude did not report the cost on a lost host.
  const mark = isSpent && record.lost !== undefined ? { estimated: true as const } : {};
  return ok([{ type: 'session_cost_settled', sessionId, usage: { ...usage, costUsd, ...mark } }]);
}

function resumeEvents(state: GroupState, record: SessionRecord, maxBudgetUsd: number | undefined): Result<EventBody[]> {
  const { id: sessionId } = record.definition;
  if (record.state.status !== 'paused' && record.state.status !== 'pending') {
    const reference = `${state.group.id}/${sessionLabel(sessionId, record.definition.name)}`;
    const next =
      record.state.status === 'failed'
        ? advise('Retry with', ['session', 'retry', reference])
        : see('session', 'show', reference);
    return refused(record, 'resumed', next);
  }
  const [item] = openItems(record);
  if (item !== undefined) {
    const answer = advise('Answer it with', ['inbox', state.group.id]);
    return fail('usage', `Session ${sessionId} waits for an answer: ${item.text}`, answer);
  }
  const edited = maxBudgetUsd === undefined ? ok([]) : editSessionEvents(state, record, { maxBudgetUsd });
  if (!edited.ok) return edited;
  const session = maxBudgetUsd === undefined ? record.definition : { ...record.definition, maxBudgetUsd };
  if (isBudgetExhausted({ ...record, definition: session })) {
    const spent = `$${record.usage.costUsd.toFixed(4)}`;
    const message = `Session ${sessionId} has spent ${spent}, all of its own budget of $${session.maxBudgetUsd}.`;
    return fail('usage', message, advise(`Raise the cap above ${spent} with`, raiseSessionCommand(state, record)));
  }
  return ok([
    ...edited.value,
    ...(record.queued ? [] : [{ type: 'session_queued', sessionId, queued: true } as const]),
  ]);
}

function pauseSessionEvents(record: SessionRecord): Result<EventBody[]> {
  const { id: sessionId } = record.definition;
  if (record.state.status === 'running') {
    const { attempt } = record.state;
    if (attempt.stopping !== undefined && !autoResumesAfter(attempt.stopping)) return ok([]);
    return ok([{ type: 'session_stopping', sessionId, attemptId: attempt.id, reason: 'user' }]);
  }
  if (record.state.status === 'completed') return refused(record, 'paused', 'Its result stays as it is.');
  return ok(record.queued ? [{ type: 'session_queued', sessionId, queued: false }] : []);
}

function refused(record: SessionRecord, what: string, next: string | Advice): Result<never> {
  const message = `Session ${record.definition.id} is ${record.state.status} and cannot be ${what}.`;
  return fail('usage', message, next);
}

function removalEvents(state: GroupState, record: SessionRecord): Result<EventBody[]> {
  const { id: sessionId, name } = record.definition;
  const { id: groupId } = state.group;
  const about = `Session ${numberedName(sessionId, name)}`;
  // Dependents may still use its result, and merged work is part of a branch.
  if (record.state.status === 'completed' && (state.status === 'running' || record.mergedInto !== undefined)) {
    const what = record.mergedInto === undefined ? 'completed in a running group' : `merged into ${record.mergedInto}`;
    const next = advise('Delete the whole group with', ['group', 'delete', groupId]);
    return fail('illegal-transition', `${about} is ${what}; it cannot be removed.`, next);
  }
  if (record.state.status === 'running') {
    const next = advise('Pause it first', ['session', 'pause', `${groupId}/${sessionLabel(sessionId, name)}`]);
    return fail('illegal-transition', `${about} is running.`, next);
  }
  const needing = [...state.sessions.values()].filter(({ definition }) => definition.dependsOn.includes(sessionId));
  if (needing.length === 0) return ok([{ type: 'session_removed', sessionId }]);
  const names = needing.map(({ definition: { id, name } }) => numberedName(id, name));
  return fail('usage', `${about} is needed by ${listNames(names, namesShownMax)}.`, 'Remove those first.');
}

/** The id of the next session: one more than the highest number so far. */
export function nextSessionId(world: World, state: GroupState): SessionId {
  return makeSessionId(highestNumber(state) + 1, world.random.uuid());
}

function highestNumber({ sessions }: GroupState): number {
  let highest = 0;
  for (const id of sessions.keys()) highest = Math.max(highest, sessionNumber(id));
  return highest;
}

function additionProblem(state: GroupState, session: SessionDefinition): Result<never> | null {
  const problem = valuesProblem(session);
  if (problem !== null) return problem;
  const graph = buildGraph([...[...state.sessions.values()].map((record) => record.definition), session]);
  return graph.ok ? null : graph;
}

function valuesProblem(session: SessionDefinition): Result<never> | null {
  const problem = sessionProblem(session);
  return problem === null ? null : fail('usage', `${problem}.`, 'Correct it, then add the session again.');
}

function editOf(
  record: SessionRecord,
  command: Extract<RequestBody, { kind: 'edit-session' | 'allow-tools' }>,
): SessionChanges {
  if (command.kind === 'edit-session') return command.changes;
  return { allowedTools: [...new Set([...(ownDefinition(record).allowedTools ?? []), ...command.rules])] };
}

/** The sender may have seen an older state, so the change is checked again. */
function editSessionEvents(state: GroupState, record: SessionRecord, changes: SessionChanges): Result<EventBody[]> {
  const before = ownDefinition(record);
  const session = changed<SessionDefinition>(before, changes);
  const problem = editProblem(state, record, session);
  if (problem !== null) return problem;
  const { id: sessionId } = session;
  const names = changedNames(before, session);
  return ok(names.length === 0 ? [] : [{ type: 'session_changed', sessionId, session, changed: names }]);
}

/**
 * Everything is checked before anything is logged. Sessions are logged after their dependencies, so that any prefix
 * left by a power cut is a valid graph.
 */
function editGroupEvents({ state, used }: Pick<Asked, 'state' | 'used'>, asked: GroupEdit): Result<EventBody[]> {
  const own = configEvents(state, withAllowedRules(state, asked), used);
  if (!own.ok) return own;
  const sessions = changedSessions(state, asked);
  if (!sessions.ok) return sessions;
  const events = [...own.value];
  const before = groupDescription(state);
  const group = changed(before, asked.group ?? {});
  const ofGroup = changedNames(before, group);
  if (ofGroup.length > 0) events.push({ type: 'group_redefined', group, changed: ofGroup });
  return ok([...events, ...sessions.value]);
}

function withAllowedRules({ group }: GroupState, { allow, ...asked }: GroupEdit): GroupEdit {
  if (allow === undefined) return asked;
  const allowedTools = [...new Set([...(group.config.allowedTools ?? []), ...allow])];
  return { ...asked, config: { ...asked.config, allowedTools } };
}

function changedSessions(state: GroupState, { add = [], edit = [] }: GroupEdit): Result<EventBody[]> {
  const added = withFreeNumbers(state, add);
  const ids = new Map(add.map(({ id }, index) => [id, added[index]?.id ?? id]));
  const edited: SessionDefinition[] = [];
  for (const { sessionId, changes } of edit) {
    const record = state.sessions.get(sessionId);
    if (record === undefined) return fail('not-found', `There is no session ${sessionId} in this group.`, '');
    const before = ownDefinition(record);
    const session = renamed(changed<SessionDefinition>(before, changes), ids);
    if (changedNames(before, session).length === 0) continue;
    const problem = ownProblem(state, record, session);
    if (problem !== null) return problem;
    edited.push(session);
  }
  for (const session of added) {
    const problem = valuesProblem(session);
    if (problem !== null) return problem;
  }
  const all = [...edited, ...added];
  if (all.length === 0) return ok([]);
  const wrong = graphProblem(state, all);
  if (wrong !== null) return wrong;
  const graph = buildGraph(definitionsWith(state, all));
  if (!graph.ok) return graph;
  const byId = new Map(all.map((session) => [session.id, session]));
  const inOrder = graph.value.order.flatMap((id) => byId.get(id) ?? []);
  return ok(inOrder.map((session) => sessionEvent(state, session)));
}

function sessionEvent(state: GroupState, session: SessionDefinition): EventBody {
  const record = state.sessions.get(session.id);
  if (record === undefined) return { type: 'session_added', sessionId: session.id, session };
  const changed = changedNames(ownDefinition(record), session);
  return { type: 'session_changed', sessionId: session.id, session, changed };
}

/** Other sessions may have been added since the sender chose the ids, so the numbers are assigned again. */
function withFreeNumbers(state: GroupState, add: readonly SessionDefinition[]): SessionDefinition[] {
  const first = highestNumber(state) + 1;
  const ids = new Map(add.map(({ id }, index) => [id, makeSessionId(first + index, sessionUuid(id))]));
  return add.map((session) => ({ ...renamed(session, ids), id: ids.get(session.id) ?? session.id }));
}

/** Replaces session ids. */
function renamed(session: SessionDefinition, ids: ReadonlyMap<SessionId, SessionId>): SessionDefinition {
  const other = (id: SessionId): SessionId => ids.get(id) ?? id;
  const { dependsOn, promptReferences } = session;
  return {
    ...session,
    dependsOn: dependsOn.map(other),
    ...(promptReferences === undefined
      ? {}
      : { promptReferences: promptReferences.map((one) => ({ ...one, sessionIds: one.sessionIds.map(other) })) }),
  };
}
