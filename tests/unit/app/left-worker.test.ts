/** F5. Promises: of a worker whose runner is gone nobody says that it has ended who cannot see it. */
import { expect, test } from 'bun:test';
import { leftWorker } from '../../../src/app/watch/live-view.ts';
import type { Attempt } from '../../../src/core/session-state.ts';
import { createRealWorld } from '../../../src/system/real-world.ts';

const world = createRealWorld();
const { self } = world.machine;

test.each([
  ['alive', { process: self }],
  ['ended', {}],
  ['ended', { process: { ...self, startTime: '1' } }],
  ['ended', { process: { ...self, bootId: 'before' } }],
  [{ elsewhere: 'on the host far' }, { process: { ...self, host: 'far', bootId: 'another' } }],
  [{ elsewhere: 'on the host box of the fleet' }, { place: { host: 'box' } }],
] as const)('F5: %j', (known, attempt) => {
  expect(leftWorker(world, attempt as unknown as Attempt)).toEqual(known);
});
