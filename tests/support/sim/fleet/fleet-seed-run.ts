/** Many seeds of the simulation of a fleet in a row. */
import { fleetScenarioOf } from './fleet-scenario.ts';
import { simulateFleet } from './fleet-simulation.ts';

/** How often each kind of event occurred in all seeds together; throws at the first that breaks a promise. */
export function runFleetSeeds(first: number, count: number): ReadonlyMap<string, number> {
  const events = new Map<string, number>();
  let steps = 0;
  for (let seed = first; seed < first + count; seed += 1) {
    const report = simulateFleet(fleetScenarioOf(seed));
    if (report.violation !== null) {
      const { invariant, message } = report.violation;
      throw new Error(`fleet seed ${seed} breaks "${invariant}": ${message}\nRepeat it with SIM_SEED=${seed}.`);
    }
    steps += report.steps;
    for (const [type, times] of report.events) events.set(type, (events.get(type) ?? 0) + times);
  }
  events.set('steps', steps);
  return events;
}
