/** Promises: what simulation.test.ts promises, for as many seeds again. */
import { expect, test } from 'bun:test';
import { leastPerCellAndPart, leastStepsPerPart, runSeeds, seedsPerPart } from './seed-run.ts';

test('every promise holds after every step, and every decision meets every crash', () => {
  const { broken, steps, coverage } = runSeeds(seedsPerPart, seedsPerPart);
  if (broken !== null) throw new Error(broken);
  expect(steps).toBeGreaterThan(leastStepsPerPart);
  expect(coverage.thinCells(leastPerCellAndPart)).toEqual([]);
}, 600_000);
