/** What it means for the log that sessions are added, and that sessions or the group are changed. */
import {
  changed,
  changedNames,
  definitionsWith,
  editProblem,
  graphProblem,
  ownProblem,
  type SessionChanges,
} from '../core/edit.ts';
import { descriptionOf, groupEditProblem } from '../core/edit-group.ts';
import type { EventBody } from '../core/event.ts';
import { errorText, fail, ok, type Result } from '../core/failure.ts';
import { buildGraph } from '../core/graph.ts';
import type { SessionDefinition, SessionId, Usage } from '../core/group.ts';
import { makeSessionId, sessionNumber, sessionUuid } from '../core/id.ts';
import type { SessionRecord } from '../core/session-state.ts';
import { sessionProblem } from '../core/setting-values.ts';
import type { GroupState } from '../core/state.ts';
import { findRepository } from '../git/git.ts';
import type { GroupEdit, RequestBody } from '../store/requests.ts';
import type { World } from '../system/world.ts';

/** The id of the next session: one more than the highest number so far. */
export function nextSessionId(world: World, state: GroupState): SessionId {
  return makeSessionId(highestNumber(state) + 1, world.random.uuid());
}

function highestNumber({ sessions }: GroupState): number {
  let highest = 0;
  for (const id of sessions.keys()) highest = Math.max(highest, sessionNumber(id));
  return highest;
}

/** Why the session cannot be added; null when it can. */
export function additionProblem(state: GroupState, session: SessionDefinition): Result<never> | null {
  const problem = valuesProblem(session);
  if (problem !== null) return problem;
  const graph = buildGraph([...[...state.sessions.values()].map((record) => record.definition), session]);
  return graph.ok ? null : graph;
}

function valuesProblem(session: SessionDefinition): Result<never> | null {
  const problem = sessionProblem(session);
  return problem === null ? null : fail('usage', `${problem}.`, 'Correct it, then add the session again.');
}

/** The project and its repository are what a command would have found; whoever asks may have named any others. */
export function placeProblem({ files }: World, { projectPath, repository }: SessionDefinition): Result<never> | null {
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

/** Rules are added to whatever the session has by now. */
export function editOf(
  { definition }: SessionRecord,
  command: Extract<RequestBody, { kind: 'edit-session' | 'allow-tools' }>,
): SessionChanges {
  if (command.kind === 'edit-session') return command.changes;
  return { allowedTools: [...new Set([...(definition.allowedTools ?? []), ...command.rules])] };
}

/** Whoever asks has looked at the session as it was then: what it has become meanwhile counts. */
export function editSessionEvents(
  world: World,
  state: GroupState,
  record: SessionRecord,
  changes: SessionChanges,
): Result<EventBody[]> {
  const session = changed<SessionDefinition>(record.definition, changes);
  const problem = editProblem(state, record, session) ?? movedProblem(world, record.definition, session);
  if (problem !== null) return problem;
  const { id: sessionId } = session;
  const names = changedNames(record.definition, session);
  return ok(names.length === 0 ? [] : [{ type: 'session_changed', sessionId, session, changed: names }]);
}

function movedProblem(world: World, before: SessionDefinition, session: SessionDefinition): Result<never> | null {
  const isMoved = session.projectPath !== before.projectPath || session.repository !== before.repository;
  return isMoved ? placeProblem(world, session) : null;
}

interface AskedGroup {
  readonly state: GroupState;
  readonly used: () => Iterable<Usage>;
}

/**
 * Everything is looked at before anything is logged. Each session comes after those it depends on, so that whatever is
 * left of these lines after a power cut is a graph.
 */
export function editGroupEvents(world: World, { state, used }: AskedGroup, asked: GroupEdit): Result<EventBody[]> {
  const problem = groupEditProblem(state, asked, used);
  if (problem !== null) return problem;
  const sessions = changedSessions(world, state, asked);
  if (!sessions.ok) return sessions;
  const events: EventBody[] = [];
  const config = changed(state.group.config, asked.config ?? {});
  const ofConfig = changedNames(state.group.config, config);
  if (ofConfig.length > 0) events.push({ type: 'group_changed', config, changed: ofConfig });
  const before = descriptionOf(state);
  const group = changed(before, asked.group ?? {});
  const ofGroup = changedNames(before, group);
  if (ofGroup.length > 0) events.push({ type: 'group_redefined', group, changed: ofGroup });
  return ok([...events, ...sessions.value]);
}

function changedSessions(world: World, state: GroupState, { add = [], edit = [] }: GroupEdit): Result<EventBody[]> {
  const added = withFreeNumbers(state, add);
  const ids = new Map(add.map(({ id }, index) => [id, added[index]?.id ?? id]));
  const edited: SessionDefinition[] = [];
  for (const { sessionId, changes } of edit) {
    const record = state.sessions.get(sessionId);
    if (record === undefined) return fail('not-found', `There is no session ${sessionId} in this group.`, '');
    const session = renamed(changed<SessionDefinition>(record.definition, changes), ids);
    if (changedNames(record.definition, session).length === 0) continue;
    const problem = ownProblem(state, record, session) ?? movedProblem(world, record.definition, session);
    if (problem !== null) return problem;
    edited.push(session);
  }
  for (const session of added) {
    const problem = valuesProblem(session) ?? placeProblem(world, session);
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
  const before = state.sessions.get(session.id)?.definition;
  if (before === undefined) return { type: 'session_added', sessionId: session.id, session };
  return { type: 'session_changed', sessionId: session.id, session, changed: changedNames(before, session) };
}

/** Whoever made the ids may not have known of sessions that are there by now. */
function withFreeNumbers(state: GroupState, add: readonly SessionDefinition[]): SessionDefinition[] {
  const first = highestNumber(state) + 1;
  const ids = new Map(add.map(({ id }, index) => [id, makeSessionId(first + index, sessionUuid(id))]));
  return add.map((session) => ({ ...renamed(session, ids), id: ids.get(session.id) ?? session.id }));
}

/** Other ids for the sessions that it names. */
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
