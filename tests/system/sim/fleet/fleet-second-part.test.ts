/** Promises: what fleet.test.ts promises, for the seeds after those of a plain run. */
import { test } from 'bun:test';
import { runSeeds } from '../../../support/sim/fleet/fleet-seed-run.ts';

test('every promise holds among machines for further seeds', () => void runSeeds(21, 80), 600_000);
