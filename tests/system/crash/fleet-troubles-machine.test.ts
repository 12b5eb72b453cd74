/**
 * Promises, for each single fault of a host, its agent or its guard: each session runs at most once at a time and
 * completes once. Work is repeated only if its host was lost or it was interrupted. The books match what was spent, and
 * no process is left. fleet-troubles-center.test.ts covers the runner and Redis.
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
