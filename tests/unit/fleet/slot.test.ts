/** Promises: the state of a slot survives a kill of its agent. */
import { expect, test } from 'bun:test';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Slot } from '../../../src/fleet/agent/slot.ts';
import { fleetPaths } from '../../../src/fleet/fleet-files.ts';
import { createRealWorld } from '../../../src/system/real-world.ts';
import { slotOrder } from '../../support/fleet/slot-order.ts';
import { withTempFolder } from '../../support/temp-folder.ts';

const world = createRealWorld();
const temp = withTempFolder();

test('an occupied slot is restored, and one whose start was cut short is not', () => {
  const fleet = fleetPaths(temp.path);
  world.files.makeFolder(fleet.slots);
  const slot = Slot.of(world, fleet, { token: 'one:x', ...slotOrder }) as Slot;
  slot.keep();
  slot.note({ offset: 3 });
  const recalled = () => Slot.recall(world, fleet, () => 7).map(({ record, renewedAt }) => ({ record, renewedAt }));
  expect(recalled()).toEqual([{ record: { token: 'one:x', ...slotOrder, offset: 3 }, renewedAt: 7 }]);
  writeFileSync(join(slot.folder, 'slot.json'), '\0\0');
  expect(recalled()).toEqual([]);
  expect(world.files.list(fleet.slots)).toEqual([]);
});

test('names that are invalid for folders make no slot', () => {
  const bad = { ...slotOrder, groupId: '../../elsewhere' };
  expect(Slot.of(world, fleetPaths(temp.path), { token: 'one:x', ...bad })).toBeNull();
});
