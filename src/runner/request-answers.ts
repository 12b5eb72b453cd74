/** Answers the requests of other processes. The answer is logged together with what it caused, then the file goes. */
import type { EventBody } from '../core/event.ts';
import { unreachable } from '../core/failure.ts';
import { buildGraph } from '../core/graph.ts';
import type { SessionDefinition } from '../core/group.ts';
import { makeSessionId, sessionNumber } from '../core/id.ts';
import type { GroupState } from '../core/state.ts';
import type { GroupWriter } from '../store/group-writer.ts';
import { type Request, removeRequest, takeRequests } from '../store/requests.ts';
import type { World } from '../world/world.ts';

/** Takes the requests to this run, has their answers recorded one after another, and removes their files. */
export function answerRequests(
  world: World,
  writer: GroupWriter,
  runId: string,
  record: (bodies: readonly EventBody[]) => void,
): void {
  for (const { request, path } of takeRequests(world, writer.paths, runId)) {
    record(answer(world, writer.state, request));
    removeRequest(world, path);
  }
}

function answer(world: World, state: GroupState, request: Request): EventBody[] {
  const requestId = request.id;
  const refuse = (message: string): EventBody[] => [{ type: 'request_answered', requestId, done: false, message }];
  const done = (bodies: EventBody[], sessionId?: string): EventBody[] => [
    ...bodies,
    { type: 'request_answered', requestId, done: true, message: '', ...(sessionId === undefined ? {} : { sessionId }) },
  ];
  switch (request.kind) {
    case 'add-session': {
      const session = { ...request.session, id: nextSessionId(world, state) };
      const problem = additionProblem(state, session);
      if (problem !== null) return refuse(problem);
      return done([{ type: 'session_added', sessionId: session.id, session }], session.id);
    }
    case 'remove-session': {
      const problem = removalProblem(state, request.sessionId);
      if (problem !== null) return refuse(problem);
      return done([{ type: 'session_removed', sessionId: request.sessionId }], request.sessionId);
    }
    case 'pause':
      return done(state.pausing === undefined ? [{ type: 'group_pausing', reason: 'user' }] : []);
    default:
      return unreachable(request);
  }
}

/** The id of the next session: one more than the highest number so far. */
export function nextSessionId(world: World, state: GroupState): string {
  let highest = 0;
  for (const id of state.sessions.keys()) highest = Math.max(highest, sessionNumber(id));
  return makeSessionId(highest + 1, world.random.uuid());
}

/** Why the session cannot be added, as sentences; null when it can. */
export function additionProblem(state: GroupState, session: SessionDefinition): string | null {
  const graph = buildGraph([...[...state.sessions.values()].map((record) => record.definition), session]);
  return graph.ok ? null : `${graph.failure.message} ${graph.failure.next}`;
}

/** Why the session cannot be removed, as sentences; null when it can. */
export function removalProblem(state: GroupState, sessionId: string): string | null {
  const record = state.sessions.get(sessionId);
  if (!record) return `There is no session ${sessionId} in this group.`;
  if (record.state.status === 'running') return `Session ${sessionId} is running. Pause the group first.`;
  if (record.state.status === 'completed') return `Session ${sessionId} is completed; its result stays in the group.`;
  const dependent = [...state.sessions.values()].find((other) => other.definition.dependsOn.includes(sessionId));
  if (!dependent) return null;
  return `Session ${dependent.definition.id} depends on ${sessionId}. Remove that one first.`;
}
