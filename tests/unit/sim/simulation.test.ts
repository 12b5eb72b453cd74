/**
 * Promises: whatever is done to a group at whatever moment, our promises hold. The real runner, store and core run over
 * a virtual machine; every seed is a story of crashes, faults, commands and slow claudes, the same in each run. Not
 * promised: anything about the real system calls behind the World; tests/system/crash is for that.
 */

import { expect, test } from 'bun:test';
import { isLongRun } from '../../support/long.ts';
import { Coverage, cellName } from '../../support/sim/coverage.ts';
import { scenarioNamed, scenarioOf, withPowerCuts, withTakeOvers } from '../../support/sim/scenario-of-seed.ts';
import { plainPart, runPart } from '../../support/sim/seed-run.ts';
import { tell } from '../../support/sim/shrink.ts';
import { simulate } from '../../support/sim/simulation.ts';

const minutes = 60_000;

/** Replayed instead of everything else. */
const { SIM_SEED: seedAsked } = process.env;
const usually = test.skipIf(seedAsked !== undefined);

if (seedAsked !== undefined) {
  test('the seed it was requested', () => {
    const scenario = scenarioNamed(seedAsked);
    console.log(tell(scenario));
    expect(simulate(scenario).violation).toBeNull();
  });
}

usually('the same seed tells the same story', () => {
  for (const seed of [3, 14, 159, 2_653]) {
    const [first, second] = [1, 2].map(() => simulate(scenarioOf(seed), { trace: true }));
    expect(second?.trace).toEqual(first?.trace ?? []);
    expect(second?.steps).toBe(first?.steps ?? 0);
  }
});

usually(
  'every promise holds after every step, and every decision meets every crash',
  () => {
    const { broken, steps, coverage } = runPart(plainPart);
    if (broken !== null) throw new Error(broken);
    expect(steps).toBeGreaterThan(plainPart.stepsMin);
    expect(coverage.thinCells(plainPart.perCellMin).map(cellName)).toEqual([]);
  },
  10 * minutes,
);

usually(
  'F3: whatever a disk forgets that was not synced, nothing that may have cost something is forgotten',
  () => {
    for (let seed = 0; seed < (isLongRun ? 1_000 : 40); seed += 1) {
      const { violation } = simulate(withPowerCuts(seed));
      expect({ seed, violation }).toEqual({ seed, violation: null });
    }
  },
  10 * minutes,
);

usually(
  'a person who takes a session over, and whatever dies meanwhile, breaks no promise',
  () => {
    const coverage = new Coverage();
    const seeds = Array.from({ length: isLongRun ? 2_000 : 160 }, (_, seed) => seed);
    for (const seed of seeds) {
      const { violation, coverage: own } = simulate(withTakeOvers(seed));
      expect({ seed, violation }).toEqual({ seed, violation: null });
      coverage.add(own);
    }
    expect(coverage.counts.get('left after a visit')).toBeGreaterThan(30);
  },
  10 * minutes,
);
