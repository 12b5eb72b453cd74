/**
 * Promises, whatever happens to machines, their agents and guards, the runner, the network between them and Redis: each
 * session is worked on once at a time and completes once, what is done is done again only where its machine was lost or
 * it was interrupted, the money is what was spent, and nothing is left. This file: several that are drawn by a seed.
 * TEST_SEEDS=N tries N seeds, TEST_SEED=N others.
 */
import { afterEach, test } from 'bun:test';
import { testSeed } from '../../support/draw.ts';
import { drawTroubles } from '../../support/fleet-chaos.ts';
import { expectAllOnce } from '../../support/fleet-chaos-checks.ts';
import { hasRedis } from '../../support/redis-server.ts';

const seeds = Array.from({ length: Number(process.env.TEST_SEEDS ?? 3) }, (_, index) => testSeed + index);

let close = async (): Promise<void> => {};
afterEach(() => close());
const opened = (closing: () => Promise<void>): void => {
  close = closing;
};

test.if(hasRedis).each(seeds)(
  'what is drawn by seed %d',
  async (seed) => expectAllOnce(`seed ${seed}: `, drawTroubles(seed), opened),
  400_000,
);
