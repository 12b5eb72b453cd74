/** Promises: what simulation.test.ts promises, for all seeds of the first part and for others. */
import { expect, test } from 'bun:test';
import { cellName } from '../../support/sim/coverage.ts';
import { firstPart, longPart, runPart } from '../../support/sim/seed-run.ts';

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
