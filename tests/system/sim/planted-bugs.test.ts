/**
 * Promises: the simulation detects violations. For each promise a planted bug breaks it, and one of the first seeds
 * reports it. The report is short, and a shrunk scenario still breaks the same promise.
 */
import { expect, test } from 'bun:test';
import { aimOf } from '../../support/sim/aims.ts';
import { invariants } from '../../support/sim/checks.ts';
import { type PlantedBug, plantedBugs } from '../../support/sim/planted-bugs.ts';
import { isEndless, scenarioOf, withPowerCuts, withQuestions } from '../../support/sim/scenario-of-seed.ts';
import { shrink, tell } from '../../support/sim/shrink.ts';
import { simulate } from '../../support/sim/simulation.ts';

/** Scenarios within which each bug must be found. */
const storiesMax = 200;

function firstSeed({ wrap, invariant, near }: PlantedBug): number | null {
  const make = near === 'power-cut' ? withPowerCuts : near === 'questions' ? withQuestions : scenarioOf;
  const isNear = (seed: number) =>
    near === undefined || make !== scenarioOf || (near === 'endless' ? isEndless(seed) : aimOf(seed).decision === near);
  let stories = 0;
  for (let seed = 0; stories < storiesMax; seed += 1) {
    if (!isNear(seed)) continue;
    stories += 1;
    if (simulate(make(seed), { wrap, only: invariant }).violation !== null) return seed;
  }
  return null;
}

test('every promise has a planted bug', () => {
  expect([...new Set(plantedBugs.map(({ invariant }) => invariant))].sort()).toEqual(Object.values(invariants).sort());
});

test.each(plantedBugs.map((bug) => [bug.name, bug] as const))(
  '%s: found',
  (_name, bug) => expect(firstSeed(bug)).not.toBeNull(),
  60_000,
);

test('a violation is reported with its smallest scenario', () => {
  // Searched over all scenarios, not only those near the decision: the first shrinks to a single session.
  const { near: _, ...bug } = plantedBugs.find(({ invariant }) => invariant === invariants.completed) as PlantedBug;
  const scenario = scenarioOf(firstSeed(bug) ?? 0);
  const options = { wrap: bug.wrap, only: bug.invariant };
  const small = shrink(scenario, options);
  expect(small.sessions.length).toBe(1);
  expect(small.acts.length + small.crashes.length).toBeLessThanOrEqual(2);
  const story = tell(small, options);
  expect(story).toContain(`seed ${scenario.seed} breaks the promise "${bug.invariant}"`);
  expect(story).toContain('session_completed');
  expect(story.split('\n').length).toBeLessThan(40);
}, 60_000);
