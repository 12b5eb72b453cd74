/** Pure: which changes of a session or a group are possible after its creation. */
import { advise } from './advice.ts';
import type { ChangesOf } from './definitions.ts';
import type { EventBody } from './event.ts';
import { fail, ok, type Result } from './failure.ts';
import { ancestorsOf, buildGraph } from './graph.ts';
import { addUsage, type GroupConfig, type GroupDescription, type SessionDefinition, type Usage } from './group.ts';
import { numberedName, sessionLabel } from './id.ts';
import { attachedFailure } from './plan/attachment.ts';
import { isBudgetExhausted } from './plan/budget.ts';
import { ownDefinition, type SessionRecord } from './session-state.ts';
import { configProblem, lineProblem, sessionProblem } from './setting-values.ts';
import type { GroupState } from './state.ts';
import { formatMoney } from './text.ts';

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

export function groupDescription({ group }: Pick<GroupState, 'group'>): GroupDescription {
  const { id: _id, slug: _slug, createdAt: _createdAt, config: _config, ...description } = group;
  return description;
}

const aLine = (text: string) => lineProblem(text) ?? (text.trim() === '' ? 'must not be blank' : null);

/** The problem with a group's description, as a sentence without its full stop. */
function descriptionProblem(changes: ChangesOf<GroupDescription>): string | null {
  const { name = 'a', description = '', template } = changes;
  const problems = {
    name: name === null ? 'cannot be left out' : aLine(name),
    description: description === null ? 'cannot be left out' : lineProblem(description),
    template: aLine(template ?? 'a'),
  };
  const [wrong] = Object.entries(problems).filter(([, problem]) => problem !== null);
  return wrong === undefined ? null : `The ${wrong[0]} of the group ${wrong[1]}`;
}

export type GroupChanges = {
  readonly config?: ChangesOf<GroupConfig>;
  readonly group?: ChangesOf<GroupDescription>;
};

/** Why this change of the group is not possible now; null when it is. `used`: usage of running attempts so far. */
function groupEditProblem(
  state: GroupState,
  { config = {}, group = {} }: GroupChanges,
  used: () => Iterable<Usage>,
): Result<never> | null {
  const problem = configProblem(config) ?? descriptionProblem(group);
  if (problem !== null) return fail('usage', `${problem}.`, 'Give another one.');
  const cap = config.maxBudgetUsd ?? undefined;
  return cap === undefined || cap === state.group.config.maxBudgetUsd ? null : capProblem(state, cap, used);
}

/** The settings of the group; fails when they, or another part of the request, cannot be changed. */
export function configEvents(state: GroupState, asked: GroupChanges, used: () => Iterable<Usage>): Result<EventBody[]> {
  const problem = groupEditProblem(state, asked, used);
  if (problem !== null) return problem;
  const config = changed(state.group.config, asked.config ?? {});
  const names = changedNames(state.group.config, config);
  return ok(names.length > 0 ? [{ type: 'group_changed', config, changed: names }] : []);
}

/** A cap is never below what is spent, nor below what running sessions may still spend. */
function capProblem(state: GroupState, cap: number, used: () => Iterable<Usage>): Result<never> | null {
  const { group, reservedUsd } = state;
  const wanted = formatMoney(cap);
  let spent = state.usage;
  for (const usage of used()) spent = addUsage(spent, usage);
  if (cap <= spent.costUsd) {
    const already = formatMoney(spent.costUsd, spent.estimated);
    const message = `Group ${group.id} has already spent ${already}, so its cap cannot be ${wanted}.`;
    return fail('usage', message, 'Give a higher amount.');
  }
  const before = group.config.maxBudgetUsd;
  const promised = state.usage.costUsd + reservedUsd;
  if (state.running.size + state.takenOver.size === 0 || before === undefined || cap >= Math.min(before, promised))
    return null;
  const share = `Running sessions have reserved part of the cap of group ${group.id}`;
  const message = `${share} until it reaches ${formatMoney(promised)}.`;
  const next = advise('Give at least that, or take it back first with', ['group', 'pause', group.id]);
  return fail('usage', message, next);
}
