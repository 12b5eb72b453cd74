/**
 * Promises: the fleet simulation detects violations. For each promise a planted bug breaks it, and one of the first
 * seeds reports it.
 */
import { expect, test } from 'bun:test';
import { isLongRun } from '../../../support/long.ts';
import { type FleetBug, fleetBugs, withBug } from '../../../support/sim/fleet/fleet-bugs.ts';
import { fleetScenarioOf } from '../../../support/sim/fleet/fleet-scenario.ts';
import { simulateFleet } from '../../../support/sim/fleet/fleet-simulation.ts';

/** Scenarios within which each bug must be found. */
const storiesMax = 100;

function firstSeed(bug: FleetBug): number | null {
  for (let seed = 1; seed <= storiesMax; seed += 1) {
    const report = simulateFleet(withBug(fleetScenarioOf(seed), bug), { wrap: bug.wrap, only: bug.promise });
    if (report.violation !== null) return seed;
  }
  return null;
}

/** The others take more scenarios. */
const quickBugs = fleetBugs.filter((_, index) => index % 4 === 1);

test.each((isLongRun ? fleetBugs : quickBugs).map((bug) => [bug.name, bug] as const))(
  '%s: found',
  (_name, bug) => {
    const seed = firstSeed(bug);
    if (process.env.SIM_TELL !== undefined) console.log(seed);
    expect(seed).not.toBeNull();
  },
  120_000,
);
