/**
 * Promises: the simulation of a fleet is not blind. For each of its promises there is a bug that breaks it, and some
 * seed among the first few notices.
 */
import { expect, test } from 'bun:test';
import { type FleetBug, fleetBugs, withBug } from './fleet-bugs.ts';
import { fleetScenarioOf } from './fleet-scenario.ts';
import { simulateFleet } from './fleet-simulation.ts';

/** Stories within which each bug has to be found. */
const storiesMax = 25;

function firstSeed(bug: FleetBug): number | null {
  for (let seed = 1; seed <= storiesMax; seed += 1) {
    const report = simulateFleet(withBug(fleetScenarioOf(seed), bug), { wrap: bug.wrap, only: bug.promise });
    if (report.violation !== null) return seed;
  }
  return null;
}

test.each(fleetBugs.map((bug) => [bug.name, bug] as const))(
  '%s: found',
  (_name, bug) => {
    const seed = firstSeed(bug);
    if (process.env.SIM_TELL !== undefined) console.log(seed);
    expect(seed).not.toBeNull();
  },
  120_000,
);
