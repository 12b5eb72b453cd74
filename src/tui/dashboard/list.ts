/** The list: its order, with dependents below the session they depend on, its headings and its lanes. */
import type { SessionId } from '../../core/group.ts';

import type { Verdicts } from '../../core/plan/decision.ts';
import { planOf } from '../../core/plan/plan.ts';
import type { SessionRecord } from '../../core/session-state.ts';
import type { GroupState } from '../../core/state.ts';
import { projectName, titleOf } from '../../view/wording.ts';
import { plainWidths } from './cells.ts';
import type { Arrangement, Sorting, Ui } from './ui.ts';
import { isBlocked, usageNow, type View } from './view.ts';

/** One step of indentation: a lane that passes by, none, or the branch that leads to this row. */
export type Lane = 'pass' | 'none' | 'branch' | 'last-branch';

export interface Placed {
  readonly id: SessionId;
  readonly lanes: readonly Lane[];
}

/** Deeper rows are not indented further. */
const depthMax = 12;

/** Computed again only when sessions or dependencies changed. */
export function byDefinitions<T>(compute: (state: GroupState) => T): (state: GroupState) => T {
  const known = new WeakMap<GroupState, { readonly version: number; readonly value: T }>();
  return (state) => {
    const before = known.get(state);
    if (before?.version === state.definitionsVersion) return before.value;
    const value = compute(state);
    known.set(state, { version: state.definitionsVersion, value });
    return value;
  };
}

/** All sessions in the order in which they are shown. */
export const placeSessions: (state: GroupState) => readonly Placed[] = byDefinitions(place);

interface Open {
  readonly id: SessionId;
  readonly lanes: readonly Lane[];
  /** The lanes of rows below this one, before their own branch. */
  readonly below: readonly Lane[];
}

function place(state: GroupState): Placed[] {
  const dependents = new Map<SessionId, SessionId[]>();
  const unmet = new Map<SessionId, number>();
  for (const [id, { definition }] of state.sessions) {
    const needed = new Set(definition.dependsOn.filter((dependency) => state.sessions.has(dependency)));
    unmet.set(id, needed.size);
    for (const dependency of needed) {
      const known = dependents.get(dependency);
      if (known === undefined) dependents.set(dependency, [id]);
      else known.push(id);
    }
  }
  const rows: Placed[] = [];
  const open: Open[] = [...state.sessions.keys()]
    .filter((id) => unmet.get(id) === 0)
    .map((id) => ({ id, lanes: [], below: [] }))
    .reverse();
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    rows.push({ id: next.id, lanes: next.lanes });
    open.push(...branches(next, readyAfter(next.id, dependents, unmet)).reverse());
  }
  return rows;
}

function readyAfter(
  id: SessionId,
  dependents: ReadonlyMap<SessionId, readonly SessionId[]>,
  unmet: Map<SessionId, number>,
): SessionId[] {
  return (dependents.get(id) ?? []).filter((dependent) => {
    const left = (unmet.get(dependent) ?? 0) - 1;
    unmet.set(dependent, left);
    return left === 0;
  });
}

function branches({ below }: Open, ids: readonly SessionId[]): Open[] {
  return ids.map((id, index): Open => {
    const isLast = index === ids.length - 1;
    const lanes: readonly Lane[] = [...below, isLast ? 'last-branch' : 'branch'];
    const further: readonly Lane[] = [...below, isLast ? 'none' : 'pass'];
    return { id, lanes, below: further.length < depthMax ? further : below };
  });
}

export type ListItem =
  | { readonly heading: string }
  /** A lane is empty if rows between its ends are missing. */
  | { readonly id: SessionId; readonly lanes: readonly Lane[] };

type Choice = Pick<Ui, 'filter' | 'onlyProblems' | 'selected' | 'arrangement' | 'sorting'>;
type Now = Pick<View, 'state' | 'verdicts' | 'live' | 'nowMs' | 'runner'>;

const noLanes: readonly Lane[] = [];

export function listItems(now: Now, choice: Choice): readonly ListItem[] {
  const { state } = now;
  const { arrangement, sorting } = choice;
  const placed = placeSessions(state);
  const listed = placed.filter(({ id }) => isListed(now, choice, id));
  if (arrangement === 'tree' && sorting === 'graph' && listed.length === placed.length) return placed;
  const shown = sorted(now, listed, sorting);
  return arrangement === 'tree' ? shown.map(withoutLanes) : headed(state, shown, arrangement);
}

export function sessionIdsOf(items: readonly ListItem[]): SessionId[] {
  return items.flatMap((item) => ('id' in item ? [item.id] : []));
}

function withoutLanes({ id }: Placed): ListItem {
  return { id, lanes: noLanes };
}

function sorted(now: Now, shown: readonly Placed[], sorting: Sorting): readonly Placed[] {
  const recordOf = ({ id }: Placed) => now.state.sessions.get(id) as SessionRecord;
  switch (sorting) {
    case 'graph':
      return shown;
    case 'status': {
      const place = (placed: Placed): number => statuses.indexOf(recordOf(placed).state.status);
      return shown.toSorted((one, other) => place(one) - place(other));
    }
    case 'cost':
    case 'time': {
      const figures = new Map(
        shown.map((placed) => {
          const { costUsd, durationMs } = usageNow(now, recordOf(placed));
          return [placed, sorting === 'cost' ? costUsd : durationMs];
        }),
      );
      return shown.toSorted((one, other) => (figures.get(other) ?? 0) - (figures.get(one) ?? 0));
    }
    case 'project':
    case 'name': {
      const nameOf = (placed: Placed): string => {
        const { name, projectPath } = recordOf(placed).definition;
        return sorting === 'name' ? (name ?? placed.id) : projectName(projectPath);
      };
      return shown.toSorted((one, other) => nameOf(one).localeCompare(nameOf(other)));
    }
  }
}

/** Statuses that need the user first, completed ones last. */
const statuses = ['failed', 'paused', 'running', 'pending', 'completed'] as const;

function headed(state: GroupState, shown: readonly Placed[], arrangement: Exclude<Arrangement, 'tree'>): ListItem[] {
  const recordOf = ({ id }: Placed) => state.sessions.get(id) as SessionRecord;
  const parts = (): (readonly [heading: string, placed: readonly Placed[]])[] => {
    switch (arrangement) {
      case 'waves': {
        const waves = Map.groupBy(shown, ({ id }) => planOf(state).graph.wave.get(id) ?? 0);
        const sorted = [...waves].toSorted(([one], [other]) => one - other);
        return sorted.map(([wave, placed]) => [`Wave ${wave + 1}  ${doneOf(state, placed)}`, placed]);
      }
      case 'status': {
        const groups = Map.groupBy(shown, (placed) => recordOf(placed).state.status);
        const found = statuses.map((status) => [status, groups.get(status) ?? []] as const);
        return found
          .filter(([, placed]) => placed.length > 0)
          .map(([status, placed]) => [`${status}  ${placed.length}`, placed]);
      }
      case 'project': {
        const groups = Map.groupBy(shown, (placed) => recordOf(placed).definition.projectPath);
        const nameOf = (path: string) => plainWidths(projectName(path));
        return [...groups].map(([path, placed]) => [`${nameOf(path)}  ${doneOf(state, placed)}`, placed]);
      }
    }
  };
  return parts().flatMap(([heading, placed]) => [{ heading }, ...placed.map(withoutLanes)]);
}

function doneOf(state: GroupState, placed: readonly Placed[]): string {
  const done = placed.filter(({ id }) => state.sessions.get(id)?.state.status === 'completed').length;
  return `${done}/${placed.length}`;
}

/** The selected session stays listed although it no longer matches: the next key is meant for it. */
function isListed({ state, verdicts }: Now, { filter, onlyProblems, selected }: Choice, id: SessionId): boolean {
  const wanted = filter.trim().toLowerCase();
  if (id === selected || (wanted === '' && !onlyProblems)) return true;
  const record = state.sessions.get(id);
  if (record === undefined || (onlyProblems && !isProblem(verdicts, record))) return false;
  return wanted === '' || searchable(state, record, verdicts(record)?.reason).includes(wanted);
}

/** Failed, paused, blocked by a failure, or with a warning. */
function isProblem(verdicts: Verdicts, record: SessionRecord): boolean {
  const { status } = record.state;
  return status === 'failed' || status === 'paused' || record.warnings.length > 0 || isBlocked(verdicts, record);
}

function searchable(state: GroupState, record: SessionRecord, reason = ''): string {
  const { id, projectPath } = record.definition;
  return `${titleOf(state, id)} ${projectName(projectPath)} ${record.state.status} ${reason}`.toLowerCase();
}
