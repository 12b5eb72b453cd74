/** Promises: what simulation.test.ts promises, for other seeds. */
import { expect } from 'bun:test';
import { longTest } from '../support/long.ts';
import { cellName } from './coverage.ts';
import { longPart, runPart } from './seed-run.ts';

longTest(
  'every promise holds after every step, and every decision meets every crash',
  () => {
    const { broken, steps, coverage } = runPart(longPart);
    if (broken !== null) throw new Error(broken);
    expect(steps).toBeGreaterThan(longPart.stepsMin);
    expect(coverage.thinCells(longPart.perCellMin).map(cellName)).toEqual([]);
  },
  600_000,
);
