/** Promises: what simulation.test.ts promises, for other seeds. */
import { expect } from 'bun:test';
import { longTest } from '../support/long.ts';
import { cellName } from './coverage.ts';
import { leastPerCellAndPart, leastStepsPerPart, runPart } from './seed-run.ts';

/** Far beyond the last seed of the first part. */
const firstSeed = 500_000;

longTest(
  'every promise holds after every step, and every decision meets every crash',
  () => {
    const { broken, steps, coverage } = runPart(firstSeed);
    if (broken !== null) throw new Error(broken);
    expect(steps).toBeGreaterThan(leastStepsPerPart);
    expect(coverage.thinCells(leastPerCellAndPart).map(cellName)).toEqual([]);
  },
  600_000,
);
