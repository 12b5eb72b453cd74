/**
 * Promises: the program's invariants hold for any actions at any time. The real runner, store and core run over a
 * simulated machine; each seed gives the same sequence of crashes, faults, commands and slow workers. Real system
 * calls are tested in tests/system/crash.
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
  test('the requested seed holds all invariants', () => {
    const scenario = scenarioNamed(seedAsked);
    console.log(tell(scenario));
    expect(simulate(scenario).violation).toBeNull();
  });
}

usually('the same seed gives the same run', () => {
  for (const seed of [3, 14, 159, 2_653]) {
    const [first, second] = [1, 2].map(() => simulate(scenarioOf(seed), { trace: true }));
    expect(second?.trace).toEqual(first?.trace ?? []);
    expect(second?.steps).toBe(first?.steps ?? 0);
  }
});

usually(
  'all invariants hold after every step, and every decision meets every crash',
  () => {
    const { broken, steps, coverage } = runPart(plainPart);
    if (broken !== null) throw new Error(broken);
    expect(steps).toBeGreaterThan(plainPart.stepsMin);
    expect(coverage.thinCells(plainPart.perCellMin).map(cellName)).toEqual([]);
  },
  10 * minutes,
);

usually(
  'a disk that forgets unsynced data loses no possible cost',
  () => {
    for (let seed = 0; seed < (isLongRun ? 1_000 : 40); seed += 1) {
      const { violation } = simulate(withPowerCuts(seed));
      expect({ seed, violation }).toEqual({ seed, violation: null });
    }
  },
  10 * minutes,
);

usually(
  'attaching a user breaks no invariant, whatever dies meanwhile',
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
