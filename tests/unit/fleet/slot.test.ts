/** Promises: what a machine must know of a slot survives a power cut, whatever is left of what was not synced. */
import { expect, test } from 'bun:test';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Slot, type SlotRecord } from '../../../src/fleet/agent/slot.ts';
import { fleetPaths } from '../../../src/fleet/fleet-files.ts';
import { createRealWorld } from '../../../src/system/real-world.ts';
import { groupId, sid } from '../../support/core-events.ts';
import { withTempFolder } from '../../support/temp-folder.ts';

const world = createRealWorld();
const temp = withTempFolder();

test('half of what says which command came last leaves the slot as it was', () => {
  const fleet = fleetPaths(temp.path);
  world.files.makeFolder(fleet.slots);
  const record: SlotRecord = {
    ...{ token: 'one:1:x', labelSet: 'any', job: 'job', groupId, sessionId: sid(1), takenAt: 1, lastN: 0 },
  };
  const slot = Slot.take(world, fleet, record, 0);
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
