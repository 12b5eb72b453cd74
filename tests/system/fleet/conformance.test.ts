/** Promises: a machine of the fleet does for attempts what is promised of every machine. */
import { hasRedis } from '../../support/redis-server.ts';
import { hostTests } from '../../support/worker/conformance.ts';
import { openFleetMachine } from '../../support/worker/tested-fleet.ts';

hostTests('a machine of the fleet', openFleetMachine, hasRedis);
