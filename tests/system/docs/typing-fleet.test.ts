/**
 * Promises: the commands in docs/fleet.md can be typed, see commands.test.ts. The other host is another home on this
 * machine, reached by a simulated ssh; fleet-hosts.test.ts uses a real one.
 */
import { test } from 'bun:test';
import { fleetPage, typeAll } from '../../support/docs/reader.ts';
import { hasRedis } from '../../support/redis-server.ts';

test.if(hasRedis)(`what ${fleetPage} shows can be typed`, () => typeAll(fleetPage), 120_000);
