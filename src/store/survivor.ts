/** A runner that lives although its lock file was removed. */
import type { ProcessIdentity } from '../core/event.ts';
import type { GroupState } from '../core/state.ts';
import type { World } from '../world/world.ts';

/**
 * Who runs the group according to its log and still lives, though the lock is free: then its lock file was removed, and
 * a second runner would write into the same log and the same conversations. This process is in nobody's way. One that
 * cannot be seen from here is found by the log, which it holds, too.
 */
export function survivingRunner(
  world: Pick<World, 'machine' | 'processes'>,
  { run, runStartedAt }: GroupState,
): ProcessIdentity | null {
  const runner = runStartedAt === undefined ? undefined : run?.runner;
  if (runner === undefined || !world.processes.isAlive(runner)) return null;
  const { pid, startTime } = world.machine.self;
  return runner.pid === pid && runner.startTime === startTime ? null : runner;
}
