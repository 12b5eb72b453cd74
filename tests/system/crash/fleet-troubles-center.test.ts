/** Promises as in fleet-troubles-machine.test.ts, for each single fault of the runner and of Redis. */
import { afterEach, test } from 'bun:test';
import { describe, isOfCenter, singleTroubles } from '../../support/fleet-chaos.ts';
import { expectAllOnce } from '../../support/fleet-chaos-checks.ts';
import { hasRedis } from '../../support/redis-server.ts';

let close = async (): Promise<void> => {};
afterEach(() => close());
const opened = (closing: () => Promise<void>): void => {
  close = closing;
};

test
  .if(hasRedis)
  .each(singleTroubles.filter(({ kind }) => isOfCenter(kind)).map((trouble) => [describe(trouble), trouble] as const))(
  'alone: %s',
  async (_, trouble) => expectAllOnce(trouble, opened),
  400_000,
);
