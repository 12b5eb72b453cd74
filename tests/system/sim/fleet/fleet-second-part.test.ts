/** Promises of fleet.test.ts, for the seeds after those of a plain run. */
import { expect, test } from 'bun:test';
import { runFleetSeeds } from '../../../support/sim/fleet/fleet-seed-run.ts';

test('every promise holds among hosts for further seeds', () => {
  // Late reports of a lost host are counted.
  expect(runFleetSeeds(21, 80).get('session_booked')).toBeGreaterThan(0);
}, 600_000);
