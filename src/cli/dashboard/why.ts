/** Why a session is not running, asked with all that can be seen of the machine from here. */
import type { SessionId } from '../../core/group.ts';
import type { Circumstances } from '../../core/schedule.ts';
import { answeredOf } from '../../core/warm-cache.ts';
import { whyNot } from '../../core/why.ts';
import { watchRoom } from '../../runner/room.ts';
import type { World } from '../../world/world.ts';
import type { Source } from './source.ts';

/** A sentence; absent when the session runs or is completed, or when nobody runs the group. */
export function whySession(world: World, root: string, source: Source, id: SessionId): string | undefined {
  const { state, live, runner } = source;
  const known = state.limitResetsAt;
  const room = watchRoom(world, root)(state.group.config, 0);
  const circumstances: Circumstances = {
    preparingMax: 2 * world.machine.cores,
    nowMs: world.clock.now(),
    liveUsd: new Map([...live].map(([session, { usage }]) => [session, usage.costUsd])),
    answered: answeredOf([...live].map(([session, { usage }]) => [session, usage])),
    ...(known === undefined ? {} : { gate: { untilMs: Date.parse(known), mayProbe: false } }),
    ...(room === undefined ? {} : { room }),
  };
  const why = whyNot(state, circumstances).find(({ sessionId }) => sessionId === id);
  if (why === undefined) return undefined;
  const isIdle = state.status === 'running' && runner === 'none' && why.reason === 'slot';
  return isIdle ? "The group's runner is gone." : why.message;
}
