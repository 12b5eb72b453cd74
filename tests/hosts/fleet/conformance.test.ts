/** Promises: a machine of the fleet does for attempts what is promised of every machine. */
import { hasRedis } from '../../support/redis-server.ts';
import { hostTests } from '../conformance.ts';
import { openFleetMachine } from '../tested-fleet.ts';

hostTests('a machine of the fleet', openFleetMachine, hasRedis);
