/**
 * Promises, whatever happens to a machine, its agent or its guard: each session is worked on once at a time and
 * completes once; what is done is done again only where its machine was lost or it was interrupted; the money is what
 * was spent, and nothing is left. fleet-troubles-center.test.ts: the same for the runner and Redis.
 */
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
  .each(singleTroubles.filter(({ kind }) => !isOfCenter(kind)).map((trouble) => [describe(trouble), trouble] as const))(
  'alone: %s',
  async (_, trouble) => expectAllOnce(trouble, opened),
  400_000,
);
