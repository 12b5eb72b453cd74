/**
 * How a command changes a group. Nobody holds it: the command takes the lock and acts as a short runner. Another short
 * command holds it: wait. A runner holds it: leave a request, and wait for the event that answers it.
 */

import type { Result } from '../core/failure.ts';
import { recoverTakeOvers } from '../runner/attach/recover.ts';
import { readLog } from '../store/event-log.ts';
import { type GroupWriter, type OpenFailure, openGroupWriter } from '../store/group-writer.ts';
import { systemFailure } from '../store/system-failure.ts';
import { delay } from '../system/clock.ts';
import type { World } from '../system/world.ts';
import { liveRunner, shortRunPrefix } from './live-runner.ts';
import type { Place } from './place.ts';
import type { GroupReference } from './resolve.ts';

/** Many commands at once queue up behind each other; each takes a few milliseconds. */
const patienceMs = 20_000;
const pollMs = 15;

export interface Change<T> {
  /** Acts with the lock held. The lock is released afterwards, whatever happens. */
  readonly direct: (writer: GroupWriter) => Result<T> | Promise<Result<T>>;
  /** Acts through the live runner; `runner-gone` = try again from the start. Absent = a live runner is in the way. */
  readonly viaRunner?: (runId: string) => Promise<Result<T, OpenFailure> | 'runner-gone'>;
}

export async function changeGroup<T>(
  { world }: Pick<Place, 'world'>,
  group: GroupReference,
  change: Change<T>,
): Promise<Result<T, OpenFailure>> {
  let deadline = world.clock.now() + patienceMs;
  for (;;) {
    const runId = `${shortRunPrefix}${world.random.uuid()}`;
    const opened = openGroupWriter(world, group.root, group.groupId, runId);
    if (opened.ok) {
      try {
        await recoverTakeOvers(world, opened.value);
        const changed = await change.direct(opened.value);
        return changed;
      } catch (error) {
        // The system says what it refused, but for a write into an open file: the log.
        if ((error as { path?: unknown }).path !== undefined) throw error;
        return { ok: false, failure: systemFailure(group.paths.events, error) };
      } finally {
        opened.value.close();
      }
    }
    if (opened.failure.reason !== 'busy' || opened.failure.survivor !== undefined) return opened;
    const runner = liveRunner(world, group);
    if (runner !== null) {
      if (change.viaRunner === undefined) return opened;
      // What a newer runner answers stands in a log that cannot be read.
      const log = readLog(world, group.paths.events);
      if (!log.ok && log.failure.reason === 'newer-version') return log;
      const answer = await change.viaRunner(runner);
      if (answer !== 'runner-gone') return answer;
      // The runner may have been waited for much longer than a short command.
      deadline = world.clock.now() + patienceMs;
    }
    if (world.clock.now() > deadline) return opened;
    await delay(world.clock, pollMs);
  }
}

/** Waits until no short command holds the group any more, for a command that will take the lock itself. */
export async function waitForShortCommands(world: World, group: Pick<GroupReference, 'paths'>): Promise<void> {
  const deadline = world.clock.now() + patienceMs;
  while (world.locks.holder(group.paths.lock)?.runId.startsWith(shortRunPrefix) && world.clock.now() < deadline) {
    await delay(world.clock, pollMs);
  }
}
