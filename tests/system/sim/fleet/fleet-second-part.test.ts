/** Promises: what fleet.test.ts promises, for the seeds after those of a plain run. */
import { expect, test } from 'bun:test';
import { runSeeds } from '../../../support/sim/fleet/fleet-seed-run.ts';

test('every promise holds among machines for further seeds', () => {
  // What a lost machine tells late is counted.
  expect(runSeeds(21, 80).get('session_booked')).toBeGreaterThan(0);
}, 600_000);
