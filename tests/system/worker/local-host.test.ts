/** Promises: the machine on which this program runs does for attempts what is promised of every machine. */
import { expect, test } from 'bun:test';
import { createRealWorld } from '../../../src/system/real-world.ts';
import { LocalHost } from '../../../src/worker/local-host.ts';
import { CoreLog } from '../../support/core-events.ts';
import { hostTests } from '../../support/worker/conformance.ts';
import { openHere } from '../../support/worker/tested-host.ts';

const world = createRealWorld();

hostTests('this machine', async (folder) => {
  const late = { log: new CoreLog(), onLeftover: () => expect.unreachable() };
  return openHere(folder, () => new LocalHost(world, late));
});

hostTests('this machine, when nothing is looked for later', async (folder) =>
  openHere(folder, () => new LocalHost(world)),
);

test('without a run there is nothing to wait for', async () => {
  const host = new LocalHost(world);
  await host.finish();
  expect(host.isIdle).toBe(true);
});
