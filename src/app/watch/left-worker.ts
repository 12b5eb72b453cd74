/** What is known of a worker, or a person, whose runner is gone. */
import { isOutOfSight } from '../../core/out-of-sight.ts';
import type { Attempt } from '../../core/session-state.ts';
import type { World } from '../../system/world.ts';

/** `elsewhere`: where it was started, and cannot be seen from here. */
export function leftWorker(
  { processes, machine }: World,
  { process, place }: Pick<Attempt, 'process' | 'place'>,
): 'alive' | 'ended' | { readonly elsewhere: string } {
  if (place !== undefined) return { elsewhere: `on the machine ${place.host} of the fleet` };
  if (process === undefined) return 'ended';
  if (processes.isAlive(process)) return 'alive';
  if (process.host !== machine.self.host) return { elsewhere: `on the machine ${process.host}` };
  const isHidden = isOutOfSight(process, machine.self);
  return isHidden ? { elsewhere: 'in another container (pid namespace) of this machine' } : 'ended';
}
