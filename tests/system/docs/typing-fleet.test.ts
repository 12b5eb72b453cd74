/**
 * Promises: what docs/fleet.md shows can be typed, see commands.test.ts. The other machine is another home on this one,
 * and the way there an ssh that is played: fleet-hosts.test.ts goes over a real one.
 */
import { test } from 'bun:test';
import { fleetPage, typeAll } from '../../support/docs/reader.ts';
import { hasRedis } from '../../support/redis-server.ts';

test.if(hasRedis)(`what ${fleetPage} shows can be typed`, () => typeAll(fleetPage), 120_000);
