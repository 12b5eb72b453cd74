/** Pure: which changes of a session or a group are possible after its creation. */
import { advise } from './advice.ts';
import type { ChangesOf } from './definitions.ts';
import { fail, type Result } from './failure.ts';
import { ancestorsOf, buildGraph } from './graph.ts';
import type { SessionDefinition } from './group.ts';
import { numberedName, sessionLabel } from './id.ts';
import { attachedFailure } from './plan/attachment.ts';
import { isBudgetExhausted } from './plan/budget.ts';
import { ownDefinition, type SessionRecord } from './session-state.ts';
import { sessionProblem } from './setting-values.ts';
import type { GroupState } from './state.ts';

type Editable = Omit<SessionDefinition, 'id' | 'createdAt'>;

export type SessionChanges = ChangesOf<Editable>;

export function changed<T extends object>(value: T, changes: ChangesOf<T>): T {
  return Object.fromEntries(Object.entries({ ...value, ...changes }).filter(([, one]) => one !== null)) as T;
}

export function changesOf<T extends object>(before: T, after: T): ChangesOf<T> {
  const next = new Map<string, unknown>(Object.entries(after));
  return Object.fromEntries(changedNames(before, after).map((name) => [name, next.get(name) ?? null])) as ChangesOf<T>;
}

export function changedNames(before: object, after: object): string[] {
  const [old, next] = [
    new Map<string, unknown>(Object.entries(before)),
    new Map<string, unknown>(Object.entries(after)),
  ];
  const names = [...new Set([...old.keys(), ...next.keys()])];
  return names.filter((name) => JSON.stringify(old.get(name)) !== JSON.stringify(next.get(name)));
}

/** Why this change of the session is not possible now; null when it is. */
export function editProblem(
  state: GroupState,
  record: SessionRecord,
  session: SessionDefinition,
): Result<never> | null {
  return ownProblem(state, record, session) ?? graphProblem(state, [session]);
}

/** The same without checking other sessions, which may be about to change as well. */
export function ownProblem(state: GroupState, record: SessionRecord, session: SessionDefinition): Result<never> | null {
  return statusProblem(state, record, session) ?? placeProblem(state, record, session) ?? valueProblem(record, session);
}

/** The group's sessions with these changed or new ones. */
export function definitionsWith(
  { sessions }: Pick<GroupState, 'sessions'>,
  changed: readonly SessionDefinition[],
): SessionDefinition[] {
  const all = new Map([...sessions].map(([id, { definition }]) => [id, definition]));
  for (const session of changed) all.set(session.id, session);
  return [...all.values()];
}

function titleOf({ id, name }: SessionDefinition): string {
  return `Session ${numberedName(id, name)}`;
}

function statusProblem(state: GroupState, record: SessionRecord, session: SessionDefinition): Result<never> | null {
  if (record.takenOver !== undefined) return attachedFailure(state, record);
  const {
    definition,
    state: { status },
  } = record;
  const groupId = state.group.id;
  const { id, name } = definition;
  if (status === 'running' && !isOnlyModel(record, session)) {
    const next = advise('Pause it first', ['session', 'pause', `${groupId}/${sessionLabel(id, name)}`]);
    return fail('illegal-transition', `${titleOf(definition)} is running and cannot be edited.`, next);
  }
  if (status !== 'completed') return null;
  const next = advise('Run it again with', ['group', 'copy', groupId, '--from', sessionLabel(id, name)]);
  return fail('illegal-transition', `${titleOf(definition)} is completed and cannot be changed.`, next);
}

/** claude can change its model while it works. */
function isOnlyModel(record: SessionRecord, session: SessionDefinition): boolean {
  const names = changedNames(ownDefinition(record), session);
  return names.every((name) => name === 'model' && session.model !== undefined);
}

/** Fixed once it has started: the folder of its files and its conversation. */
function placeProblem(state: GroupState, record: SessionRecord, session: SessionDefinition): Result<never> | null {
  const { definition, attempts, workspace, isolated } = record;
  const next = advise('Run it again with', ['session', 'add', state.group.id, '--project', 'DIR', '--prompt', 'TEXT']);
  const refuse = (what: string) => fail('illegal-transition', `${titleOf(definition)} has started, so ${what}.`, next);
  if (attempts > 0) {
    const isSame = session.projectPath === definition.projectPath && session.repository === definition.repository;
    if (!isSame) return refuse('its project cannot change: its conversation belongs to that folder');
  }
  if (isolated !== undefined && session.isolate !== definition.isolate) {
    return refuse(`it stays ${isolated ? 'in its worktree' : 'in the project folder, without a worktree'}`);
  }
  if (workspace !== undefined && JSON.stringify(session.dependsOn) !== JSON.stringify(definition.dependsOn)) {
    return refuse('its dependencies cannot change: its worktree is based on their work');
  }
  return null;
}

function valueProblem(record: SessionRecord, session: SessionDefinition): Result<never> | null {
  const problem = sessionProblem(session);
  if (problem !== null) return fail('usage', `${problem}.`, 'Correct it, then edit the session again.');
  if (session.maxBudgetUsd === record.definition.maxBudgetUsd) return null;
  if (!isBudgetExhausted({ ...record, definition: session })) return null;
  const spent = `$${record.usage.costUsd.toFixed(4)}`;
  const about = `${titleOf(record.definition)} has already spent ${spent}`;
  const message = `${about}, so its cap cannot be $${session.maxBudgetUsd}.`;
  return fail('usage', message, 'Give --max-budget-usd a higher amount.');
}

/** Every result that a prompt quotes must exist before the prompt is sent, even after the changes. */
export function graphProblem(state: GroupState, changed: readonly SessionDefinition[]): Result<never> | null {
  const definitions = definitionsWith(state, changed);
  const graph = buildGraph(definitions);
  if (!graph.ok) return graph;
  const byId = new Map(definitions.map((definition) => [definition.id, definition]));
  for (const definition of definitions) {
    if (definition.promptReferences === undefined) continue;
    if (state.sessions.get(definition.id)?.state.status === 'completed') continue;
    const before = ancestorsOf(byId, definition.dependsOn);
    const lost = definition.promptReferences.flatMap(({ sessionIds }) => sessionIds).find((id) => !before.has(id));
    if (lost === undefined) continue;
    const { name } = byId.get(lost) ?? {};
    const quote = `${titleOf(definition)} quotes ${numberedName(lost, name)} in its prompt`;
    const message = `${quote} and would not depend on it any more.`;
    return fail('usage', message, 'Remove the quote from the prompt first, or keep the dependency.');
  }
  return null;
}
