/** A group of a list as it stands now, also while it runs. */
import { addUsage, type SessionId, type Usage } from '../../core/group.ts';
import type { LiveSession } from '../../core/progress.ts';
import type { GroupState } from '../../core/state.ts';
import { type GroupMeta, groupMeta, type SessionSummary } from '../../store/meta.ts';
import { groupPaths } from '../../store/paths.ts';
import { conditionOf } from '../../view/wording.ts';
import type { Place } from '../place.ts';
import { loadWithRunner } from '../resolve.ts';
import { standingOf } from './live-view.ts';

export interface PresentGroup {
  readonly meta: GroupMeta;
  /** For people: `interrupted` when its runner is gone, with what is special about a running one. */
  readonly status: string;
}

/** Snapshots come a moment later than the log and know nothing of what running sessions have spent. */
export function presentGroup({ world }: Pick<Place, 'world'>, root: string, meta: GroupMeta): PresentGroup {
  if (meta.status !== 'running') return { meta, status: meta.status };
  const loaded = loadWithRunner(world, { root, groupId: meta.id, paths: groupPaths(root, meta.id) });
  if (!loaded.ok) return { meta, status: meta.status };
  const { state } = loaded.value;
  const { live, isInterrupted } = standingOf(world, loaded.value);
  const condition = conditionOf(state, world.clock.now());
  const running = condition === null ? state.status : `${state.status} (${condition})`;
  return {
    meta: presentMeta(state, live),
    status: isInterrupted ? 'interrupted' : running,
  };
}

type LiveUsages = ReadonlyMap<SessionId, Pick<LiveSession, 'usage'>>;

/** What the group has used, running sessions included. */
export function presentUsage(state: GroupState, live: LiveUsages): Usage {
  return [...live.values()].reduce((sum, now) => addUsage(sum, now.usage), state.usage);
}

/** The snapshot with what running sessions have spent by now. */
export function presentMeta(state: GroupState, live: LiveUsages): GroupMeta {
  const meta = groupMeta(state);
  const usage = presentUsage(state, live);
  const sessions = meta.sessions.map((session): SessionSummary => {
    const now = live.get(session.id)?.usage;
    const record = state.sessions.get(session.id);
    if (now === undefined || record === undefined) return session;
    const { costUsd, estimated } = addUsage(record.usage, now);
    return { ...session, cost: costUsd, ...(estimated ? { estimated: true } : {}) };
  });
  const { costUsd, estimated, tokens } = usage;
  return { ...meta, cost: costUsd, ...(estimated ? { estimated: true } : {}), tokens, sessions };
}
