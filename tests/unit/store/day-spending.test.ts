/** Promises: the money of a day includes all groups, from attempts that ended since local midnight. */
import { afterEach, expect, test } from 'bun:test';
import { mkdirSync } from 'node:fs';
import { dirname } from 'node:path';
import type { GroupEvent } from '../../../src/core/event.ts';
import { daySpending } from '../../../src/store/day-spending.ts';
import { createLog } from '../../../src/store/event-log.ts';
import { groupPaths } from '../../../src/store/paths.ts';
import { createRealWorld } from '../../../src/system/real-world.ts';
import { CoreLog, groupId, sessionDefinition, sid, usage } from '../../support/core-events.ts';
import { SteppedClock, temporaryFolder } from '../../support/store-world.ts';

const folder = temporaryFolder();
afterEach(() => folder.remove());

test('spending before midnight does not count for the day, and running attempts count in their own group', () => {
  const clock = new SteppedClock();
  const world = { ...createRealWorld(), clock };
  const log = new CoreLog({ maxBudgetUsd: 10 });
  for (const number of [1, 2, 3]) log.addSession(sessionDefinition(number));
  log.run().start(sid(1), 'start', 2).complete(sid(1), usage(1.5)).start(sid(2), 'start', 2);
  const midnightMs = new Date(clock.now()).setHours(0, 0, 0, 0);
  const events = [...log.events];
  const at = (ms: number) => (event: GroupEvent) => ({ ...event, at: new Date(ms).toISOString() });
  const yesterday = events.map(at(midnightMs - 3_600_000));
  log.complete(sid(2), usage(0.25)).start(sid(3), 'start', 3);
  const today = log.events.slice(events.length).map(at(midnightMs + 1));
  const path = groupPaths(folder.path, groupId).events;
  mkdirSync(dirname(path), { recursive: true });
  const written = createLog(world, path, groupId, yesterday);
  const spending = daySpending(world, folder.path);
  expect(spending()).toEqual({ spentUsd: 0, othersReservedUsd: 2 });
  written.append(today);
  expect(spending()).toEqual({ spentUsd: 0.25, othersReservedUsd: 3 });
  expect(spending(groupId)).toEqual({ spentUsd: 0.25, othersReservedUsd: 0 });
  clock.step(24 * 3_600_000);
  expect(spending(groupId)).toEqual({ spentUsd: 0, othersReservedUsd: 0 });
  written.close();
});
