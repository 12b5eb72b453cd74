/** Promises of simulation.test.ts, for all seeds of the first part and for others. */
import { expect, test } from 'bun:test';
import { cellName } from '../../support/sim/coverage.ts';
import { firstPart, longPart, runPart, runSeeds } from '../../support/sim/seed-run.ts';

test.each([
  ['first', firstPart],
  ['second', longPart],
] as const)(
  'every promise holds after every step of the %s part, and every decision meets every crash',
  (_, part) => {
    const { broken, steps, coverage } = runPart(part);
    if (broken !== null) throw new Error(broken);
    expect(steps).toBeGreaterThan(part.stepsMin);
    expect(coverage.thinCells(part.perCellMin).map(cellName)).toEqual([]);
  },
  600_000,
);

const seedCount = Number(process.env.TEST_SEEDS ?? 1_000);

test(`every promise holds for ${seedCount} further seeds (TEST_SEEDS=N tries more)`, () => {
  const { broken } = runSeeds(2_000_000, seedCount);
  if (broken !== null) throw new Error(broken);
}, 3_600_000);
