/** Promises: what a machine must know of a slot survives a power cut, whatever is left of what was not synced. */
import { expect, test } from 'bun:test';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Slot, type SlotRecord } from '../../../src/fleet/agent/slot.ts';
import { fleetPaths } from '../../../src/fleet/fleet-files.ts';
import type { Order } from '../../../src/fleet/wire.ts';
import { createRealWorld } from '../../../src/system/real-world.ts';
import { groupId, sid } from '../../support/core-events.ts';
import { withTempFolder } from '../../support/temp-folder.ts';

const world = createRealWorld();
const temp = withTempFolder();
const blob = { id: 'blob', pieces: 1, size: 1 };
const work = { repository: 'a', base: 'a', baseBundle: blob, head: 'a', snapshot: 'a', branch: 'main' };
const order: Order = {
  ...{ attemptId: 'attempt', attempt: 1, groupId, sessionId: sid(1), args: [], cwd: 'worktree', untrusted: false },
  ...{ files: blob, work },
};

test('half of what says which command came last leaves the slot as it was', () => {
  const fleet = fleetPaths(temp.path);
  world.files.makeFolder(fleet.slots);
  const record: SlotRecord = { token: 'one:1:x', groupId, sessionId: sid(1), lastN: 0, order };
  const slot = Slot.of(world, fleet, record) as Slot;
  slot.keep();
  slot.note({ lastN: 3 });
  slot.hear(12);
  const recalled = () => Slot.recall(world, fleet, () => 0).map(({ record: { token, lastN } }) => ({ token, lastN }));
  expect(recalled()).toEqual([{ token: 'one:1:x', lastN: 12 }]);
  for (const left of ['', '\0\0']) {
    writeFileSync(join(slot.folder, 'heard'), left);
    expect(recalled()).toEqual([{ token: 'one:1:x', lastN: 3 }]);
  }
  slot.remove();
  expect(recalled()).toEqual([]);
});
