/** The rows of the list: which sessions are shown, in which order, and the headings between them. */
import type { SessionId } from '../../core/group.ts';
import { planOf } from '../../core/plan/plan.ts';
import type { SessionRecord } from '../../core/session-state.ts';
import type { GroupState } from '../../core/state.ts';
import type { Verdicts } from '../../core/verdict.ts';
import { projectName, titleOf } from '../wording.ts';
import { type Lane, type Placed, placeSessions } from './order.ts';
import type { Ui } from './ui.ts';
import type { View } from './view.ts';

export type Item =
  | { readonly heading: string }
  /** The lanes are empty where rows are missing between those they would join. */
  | { readonly id: SessionId; readonly lanes: readonly Lane[] };

type Choice = Pick<Ui, 'filter' | 'onlyProblems' | 'selected' | 'arrangement'>;
type Standing = Pick<View, 'state' | 'verdicts'>;

const noLanes: readonly Lane[] = [];

export function listItems(view: Standing, choice: Choice): readonly Item[] {
  const { state } = view;
  const placed = placeSessions(state);
  const shown = placed.filter(({ id }) => isListed(view, choice, id));
  switch (choice.arrangement) {
    case 'tree':
      return shown.length === placed.length ? shown : shown.map(({ id }) => ({ id, lanes: noLanes }));
    case 'waves':
      return inWaves(state, shown);
  }
}

/** The sessions of these rows, in their order. */
export function sessionsOf(items: readonly Item[]): SessionId[] {
  return items.flatMap((item) => ('id' in item ? [item.id] : []));
}

function inWaves(state: GroupState, shown: readonly Placed[]): Item[] {
  const { wave } = planOf(state).graph;
  const waves = Map.groupBy(shown, ({ id }) => wave.get(id) ?? 0);
  return [...waves]
    .toSorted(([one], [other]) => one - other)
    .flatMap(([number, placed]) => headed(state, `Wave ${number + 1}`, placed));
}

function headed(state: GroupState, title: string, placed: readonly Placed[]): Item[] {
  const done = placed.filter(({ id }) => state.sessions.get(id)?.state.status === 'completed').length;
  return [{ heading: `${title}  ${done}/${placed.length}` }, ...placed.map(({ id }) => ({ id, lanes: noLanes }))];
}

/**
 * What is selected stays also when it changes so that a filter does not hold for it any more: the next key is meant for
 * it, and not for whoever would take its place.
 */
function isListed({ state, verdicts }: Standing, { filter, onlyProblems, selected }: Choice, id: SessionId): boolean {
  const wanted = filter.trim().toLowerCase();
  if (id === selected || (wanted === '' && !onlyProblems)) return true;
  const record = state.sessions.get(id);
  if (record === undefined || (onlyProblems && !isProblem(verdicts, record))) return false;
  return wanted === '' || searchable(state, record, verdicts(record)?.reason).includes(wanted);
}

/** Failed, stopped on its way, kept from starting by a failure, or with something a person should know. */
function isProblem(verdicts: Verdicts, record: SessionRecord): boolean {
  const { status } = record.state;
  if (status === 'failed' || status === 'paused' || record.warnings.length > 0) return true;
  return status === 'pending' && verdicts(record)?.reason === 'blocked';
}

function searchable(state: GroupState, record: SessionRecord, reason = ''): string {
  const { id, projectPath } = record.definition;
  return `${titleOf(state, id)} ${projectName(projectPath)} ${record.state.status} ${reason}`.toLowerCase();
}
