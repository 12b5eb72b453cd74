/** Why a session is not running, asked with all that can be seen of the machine from here. */

import { inQueueOf } from '../../control/watch/live-view.ts';
import type { OtherGroups, SchedulingContext } from '../../core/plan/decision.ts';
import { loggedGate } from '../../core/plan/timed-wait.ts';
import { answeredOf } from '../../core/plan/warm-cache.ts';
import { type Why, whyAsker } from '../../core/plan/why.ts';
import type { SessionRecord } from '../../core/session-state.ts';
import type { Room } from '../../runner/room.ts';
import type { World } from '../../world/world.ts';
import type { Source } from './source.ts';

export interface Around {
  readonly room: Room;
  readonly others: OtherGroups;
}

/** To be asked while the state stays as it is; nothing is looked at before that. */
export function askWhy(world: World, around: Around, source: Source): (record: SessionRecord) => Why | null {
  let ask: ReturnType<typeof whyAsker> | undefined;
  return (record) => {
    ask ??= whyAsker(source.state, circumstancesOf(world, around, source));
    return ask(record);
  };
}

function circumstancesOf(world: World, { room, others }: Around, { state, live }: Source): SchedulingContext {
  const gate = loggedGate(state);
  const space = room.forStarts(state.group.config, 0);
  return {
    preparingMax: 2 * world.machine.cores,
    nowMs: world.clock.now(),
    liveUsd: new Map([...live].map(([session, { usage }]) => [session, usage.costUsd])),
    inQueue: inQueueOf(live),
    answered: answeredOf([...live].map(([session, { usage }]) => [session, usage])),
    ...(gate === null ? {} : { gate }),
    ...(space === undefined ? {} : { room: space }),
    others,
  };
}
