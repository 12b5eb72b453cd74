/**
 * The order of the rows: every session after all it depends on, and directly below the one that makes it ready, so
 * that what belongs together stands together. Lanes at the left show who stands below whom.
 */
import type { SessionId } from '../../core/group.ts';
import type { GroupState } from '../../core/state.ts';

/** One step of indentation: a lane that passes by, none, or the branch that leads to this row. */
export type Lane = 'pass' | 'none' | 'branch' | 'last-branch';

export interface Placed {
  readonly id: SessionId;
  readonly lanes: readonly Lane[];
}

/** Deeper rows are indented no further. */
const depthMax = 12;

interface Ordered {
  readonly version: number;
  readonly rows: readonly Placed[];
}

const known = new WeakMap<GroupState, Ordered>();

/** All sessions in the order in which they are shown; computed again only when sessions or dependencies changed. */
export function placeSessions(state: GroupState): readonly Placed[] {
  const before = known.get(state);
  if (before?.version === state.definitionsVersion) return before.rows;
  const rows = place(state);
  known.set(state, { version: state.definitionsVersion, rows });
  return rows;
}

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
