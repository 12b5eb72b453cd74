/** Who runs a group as its log tells, be its lock file there or not. */
import type { ProcessIdentity } from '../core/event.ts';
import type { GroupState } from '../core/state.ts';
import type { World } from '../system/world.ts';

/** The runner of a run that has not ended, when it lives; null also for one that cannot be seen from here. */
export function livingRunner(
  { processes }: Pick<World, 'processes'>,
  { run, runStartedAt }: GroupState,
): ProcessIdentity | null {
  const runner = runStartedAt === undefined ? undefined : run?.runner;
  return runner !== undefined && processes.isAlive(runner) ? runner : null;
}

/**
 * The same where the lock is free: then its lock file was removed, and a second runner would write into the same log
 * and the same conversations. This process is in nobody's way. One that cannot be seen from here is found by the log,
 * which it holds, too.
 */
export function survivingRunner(
  world: Pick<World, 'machine' | 'processes'>,
  state: GroupState,
): ProcessIdentity | null {
  const runner = livingRunner(world, state);
  const { pid, startTime } = world.machine.self;
  return runner?.pid === pid && runner.startTime === startTime ? null : runner;
}
