/**
 * What a wish of a user means for the log: asked of the live runner by another process, or carried out by a command
 * that holds the lock itself. An answer is logged together with what it caused, then the request's file goes.
 */

import { type Advice, advise, see } from '../core/advice.ts';
import type { EventBody } from '../core/event.ts';
import { describeFailure, errorText, fail, ok, type Result, unreachable } from '../core/failure.ts';
import { buildGraph } from '../core/graph.ts';
import { roundUsd, type SessionDefinition, type SessionId } from '../core/group.ts';
import { makeSessionId, sessionNumber } from '../core/id.ts';
import { raiseSessionCommand, resumeSessionCommand } from '../core/plan/advice.ts';
import { isBudgetExhausted } from '../core/plan/budget.ts';
import { goesOnAfter, type SessionRecord } from '../core/session-state.ts';
import { moneyProblem, sessionProblem } from '../core/session-values.ts';
import type { GroupState } from '../core/state.ts';
import { promptProblem } from '../core/values.ts';
import { findRepository } from '../git/repository.ts';
import type { GroupWriter } from '../store/group-writer.ts';
import { isLogTrouble } from '../store/log-lost.ts';
import { sessionPaths } from '../store/paths.ts';
import { otherVersion, type RequestBody, removeRequest, takeRequests } from '../store/requests.ts';
import type { World } from '../world/world.ts';
import { freezeMs } from './freeze.ts';

/**
 * Takes the requests to this run, has their answers recorded one after another, and removes their files. `isDone`: a
 * session has given its last answer, though its end is not on record yet. Those that `takes` does not want stay.
 */
export function answerRequests(
  world: World,
  writer: GroupWriter,
  runId: string,
  record: (bodies: readonly EventBody[]) => void,
  isDone: (sessionId: SessionId) => boolean = () => false,
  takes: (kind: RequestBody['kind']) => boolean = () => true,
): void {
  const refuse = (requestId: string) =>
    record([
      {
        type: 'request_answered',
        requestId,
        done: false,
        message: describeFailure(otherVersion(writer.state.group.id)),
      },
    ]);
  for (const { request, path } of takeRequests(world, writer.paths, runId, refuse)) {
    if (!takes(request.kind)) continue;
    const isLate = request.kind === 'say' && isDone(request.sessionId);
    const wish = isLate ? tooLate(request.sessionId) : wishEvents(world, writer, request);
    const requestId = request.id;
    const answer = (message: string) => record([{ type: 'request_answered', requestId, done: false, message }]);
    if (wish.ok) {
      const { events, sessionId } = wish.value;
      const about = sessionId === undefined ? {} : { sessionId };
      try {
        record([...events, { type: 'request_answered', requestId, done: true, message: '', ...about }]);
      } catch (error) {
        if (isLogTrouble(error)) throw error;
        answer(`What was asked for cannot be recorded: ${errorText(error)}.`);
      }
    } else answer(describeFailure(wish.failure));
    removeRequest(world, path);
  }
}

function tooLate(sessionId: SessionId): Result<never> {
  const message = `Session ${sessionId} has just given its last answer and cannot be told anything.`;
  return fail('illegal-transition', message, 'Add a session that depends on it instead.');
}

export interface Wish {
  readonly events: EventBody[];
  /** The session it was about, or that it made. */
  readonly sessionId?: SessionId;
}

/** The events that fulfil a wish in the present state. Fails with a sentence when it cannot be fulfilled now. */
export function wishEvents(world: World, writer: GroupWriter, wish: RequestBody): Result<Wish> {
  const { state } = writer;
  switch (wish.kind) {
    case 'add-session': {
      const session = { ...wish.session, id: nextSessionId(world, state) };
      const problem = additionProblem(state, session) ?? placeProblem(world, session);
      if (problem !== null) return problem;
      return ok({ events: [{ type: 'session_added', sessionId: session.id, session }], sessionId: session.id });
    }
    case 'pause':
      return ok({ events: pauseEvents(world, state, wish.mode) });
    case 'thaw':
      if (state.frozenUntil !== undefined) return ok({ events: [{ type: 'group_thawed' }] });
      return fail(
        'illegal-transition',
        'The group is running and is not frozen.',
        advise('Watch it with', ['group', 'watch', state.group.id]),
      );
    case 'raise-budget': {
      const problem = moneyProblem(wish.maxBudgetUsd);
      if (problem !== null) return fail('usage', `The budget ${problem}.`, '');
      const config = { ...state.group.config, maxBudgetUsd: wish.maxBudgetUsd };
      return ok({ events: [{ type: 'group_changed', config }] });
    }
    default: {
      const problem = wordsProblem(wish);
      if (problem !== null) return fail('usage', problem, '');
      const record = state.sessions.get(wish.sessionId);
      if (!record) return fail('not-found', `There is no session ${wish.sessionId} in this group.`, '');
      const events =
        wish.kind === 'say' ? sayEvents(world, writer, record, wish) : sessionWishEvents(state, record, wish);
      return events.ok ? ok({ events: events.value, sessionId: wish.sessionId }) : events;
    }
  }
}

/** What is wrong with what the wish itself says; null when nothing is. */
function wordsProblem(wish: RequestBody): string | null {
  const text = wish.kind === 'say' ? wish.text : wish.kind === 'retry-session' ? wish.prompt : undefined;
  const usd = wish.kind === 'resume-session' ? wish.maxBudgetUsd : undefined;
  const ofText = text === undefined ? null : promptProblem(text);
  const ofMoney = usd === undefined ? null : moneyProblem(usd);
  return ofText !== null ? `What is to be said ${ofText}.` : ofMoney !== null ? `The budget ${ofMoney}.` : null;
}

function pauseEvents(world: World, state: GroupState, mode: 'now' | 'drain' | 'freeze'): EventBody[] {
  if (mode === 'freeze') {
    if (state.frozenUntil !== undefined || state.pausing !== undefined) return [];
    return [{ type: 'group_frozen', until: new Date(world.clock.now() + freezeMs).toISOString() }];
  }
  // What is halted cannot be asked to stop.
  const thaw: EventBody[] = state.frozenUntil === undefined ? [] : [{ type: 'group_thawed' }];
  const known = state.pausing !== undefined && (!state.draining || mode === 'drain');
  return known ? thaw : [...thaw, { type: 'group_pausing', reason: 'user', mode }];
}

type SessionWish = Exclude<RequestBody, { kind: 'add-session' | 'pause' | 'thaw' | 'raise-budget' | 'say' }>;

function sessionWishEvents(state: GroupState, record: SessionRecord, wish: SessionWish): Result<EventBody[]> {
  const { sessionId } = wish;
  switch (wish.kind) {
    case 'remove-session':
      return removalEvents(state, record);
    case 'pause-session':
      return pauseSessionEvents(record);
    case 'resume-session':
      return resumeEvents(state, record, wish.maxBudgetUsd);
    case 'retry-session': {
      if (record.state.status !== 'failed')
        return refused(
          record,
          'retried',
          advise('Give a failed session; one that is paused goes on with', resumeSessionCommand(state, record)),
        );
      const prompt = wish.prompt === undefined ? {} : { prompt: wish.prompt };
      return ok([{ type: 'session_queued', sessionId, queued: true, ...prompt }]);
    }
    case 'settle-cost':
      return settleEvents(state, record, wish.isSpent);
    default:
      return unreachable(wish);
  }
}

/** What is held for the session is money like any other from now on (`isSpent`), or free again. */
function settleEvents({ group }: GroupState, record: SessionRecord, isSpent: boolean): Result<EventBody[]> {
  const { id: sessionId } = record.definition;
  const { heldUsd, ...usage } = record.usage;
  if (heldUsd === undefined) {
    const next = see('group', 'budget', group.id);
    return fail('usage', `Nothing is held for session ${sessionId}.`, next);
  }
  const costUsd = isSpent ? usage.costUsd : Math.max(0, roundUsd(usage.costUsd - heldUsd));
  return ok([{ type: 'session_cost_settled', sessionId, usage: { ...usage, costUsd } }]);
}

function sayEvents(
  world: World,
  writer: GroupWriter,
  record: SessionRecord,
  { sessionId, text }: Extract<RequestBody, { kind: 'say' }>,
): Result<EventBody[]> {
  if (record.state.status === 'completed') {
    return refused(record, 'told anything', 'Add a session that depends on it instead.');
  }
  return ok([messageEvent(world, writer, sessionId, text)]);
}

/** What the user says now, with its place in the transcript. */
export function messageEvent(
  { files }: World,
  { paths }: Pick<GroupWriter, 'paths'>,
  sessionId: SessionId,
  text: string,
): EventBody {
  const offset = files.info(sessionPaths(paths, sessionId).transcript)?.size ?? 0;
  return { type: 'session_message', sessionId, text, offset };
}

/** With `maxBudgetUsd` the session's own cap is changed before it goes on. */
function resumeEvents(state: GroupState, record: SessionRecord, maxBudgetUsd: number | undefined): Result<EventBody[]> {
  const { id: sessionId } = record.definition;
  if (record.state.status !== 'paused' && record.state.status !== 'pending') {
    return refused(record, 'resumed', 'Only a paused session can be resumed; a failed one is retried.');
  }
  const session = maxBudgetUsd === undefined ? record.definition : { ...record.definition, maxBudgetUsd };
  if (isBudgetExhausted({ ...record, definition: session })) {
    const spent = `$${record.usage.costUsd.toFixed(4)}`;
    const message = `Session ${sessionId} has spent ${spent}, all of its own budget of $${session.maxBudgetUsd}.`;
    return fail(
      'illegal-transition',
      message,
      advise(`Give it more than ${spent} with`, raiseSessionCommand(state, { ...record, definition: session })),
    );
  }
  return ok([
    ...(maxBudgetUsd === undefined ? [] : [{ type: 'session_changed', sessionId, session } as const]),
    ...(record.queued ? [] : [{ type: 'session_queued', sessionId, queued: true } as const]),
  ]);
}

function pauseSessionEvents(record: SessionRecord): Result<EventBody[]> {
  const { id: sessionId } = record.definition;
  if (record.state.status === 'running') {
    const { attempt } = record.state;
    if (attempt.stopping !== undefined && !goesOnAfter(attempt.stopping)) return ok([]);
    return ok([{ type: 'session_stopping', sessionId, attemptId: attempt.id, reason: 'user' }]);
  }
  if (record.state.status === 'completed') return refused(record, 'paused', 'Its result stays as it is.');
  return ok(record.queued ? [{ type: 'session_queued', sessionId, queued: false }] : []);
}

function refused(record: SessionRecord, what: string, next: string | Advice): Result<never> {
  const message = `Session ${record.definition.id} is ${record.state.status} and cannot be ${what}.`;
  return fail('illegal-transition', message, next);
}

/** The id of the next session: one more than the highest number so far. */
export function nextSessionId(world: World, state: GroupState): SessionId {
  let highest = 0;
  for (const id of state.sessions.keys()) highest = Math.max(highest, sessionNumber(id));
  return makeSessionId(highest + 1, world.random.uuid());
}

/** Why the session cannot be added; null when it can. */
export function additionProblem(state: GroupState, session: SessionDefinition): Result<never> | null {
  const problem = sessionProblem(session);
  if (problem !== null) return fail('usage', `${problem}.`, 'Correct it, then add the session again.');
  const graph = buildGraph([...[...state.sessions.values()].map((record) => record.definition), session]);
  return graph.ok ? null : graph;
}

/** The project and its repository are what a command would have found; whoever asks may have named any others. */
function placeProblem({ files }: World, { projectPath, repository }: SessionDefinition): Result<never> | null {
  const next = 'Give the real path of an existing folder.';
  const refuse = (path: string, what: string) => fail('usage', `${JSON.stringify(path)} ${what}.`, next);
  try {
    if (files.info(projectPath)?.kind !== 'folder') return refuse(projectPath, 'is no folder');
    if (files.realPath(projectPath) !== projectPath) return refuse(projectPath, 'is not where that folder really is');
    if (repository === undefined || findRepository(files, projectPath)?.repository === repository) return null;
    return refuse(repository, 'is not the repository of the project');
  } catch (error) {
    return refuse(projectPath, `cannot be looked at (${errorText(error)})`);
  }
}

function removalEvents(state: GroupState, record: SessionRecord): Result<EventBody[]> {
  const { id: sessionId } = record.definition;
  const { status } = record.state;
  if (status === 'running') return refused(record, 'removed', 'Pause it first.');
  if (status === 'completed') return refused(record, 'removed', 'Its result stays in the group.');
  const dependent = [...state.sessions.values()].find((other) => other.definition.dependsOn.includes(sessionId));
  if (!dependent) return ok([{ type: 'session_removed', sessionId }]);
  const message = `Session ${dependent.definition.id} depends on ${sessionId}.`;
  return fail('illegal-transition', message, 'Remove that one first.');
}
