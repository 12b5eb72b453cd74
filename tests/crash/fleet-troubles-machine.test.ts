/** Promises as fleet-chaos.test.ts; this file: each trouble of one machine alone. */
import { afterEach } from 'bun:test';
import { describe, isOfCenter, singleTroubles } from '../support/fleet-chaos.ts';
import { expectAllOnce } from '../support/fleet-chaos-checks.ts';
import { longTestIf } from '../support/long.ts';
import { hasRedis } from '../support/redis-server.ts';

let close = async (): Promise<void> => {};
afterEach(() => close());
const opened = (closing: () => Promise<void>): void => {
  close = closing;
};

longTestIf(hasRedis).each(
  singleTroubles.filter(({ kind }) => !isOfCenter(kind)).map((trouble) => [describe(trouble), trouble] as const),
)('alone: %s', async (_, trouble) => expectAllOnce('', [trouble], opened), 400_000);
