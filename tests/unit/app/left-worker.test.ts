/** Promises: a worker without a runner is reported as ended only where its process can be observed. */
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
] as const)('a worker without a runner is alive, ended or on another host: %j', (known, attempt) => {
  expect(leftWorker(world, attempt as unknown as Attempt)).toEqual(known);
});
