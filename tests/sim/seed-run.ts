/** Many seeds in a row: sums and the first broken promise, shrunk and told. */
import { Coverage } from './coverage.ts';
import { scenarioOf } from './scenario-of-seed.ts';
import { shrink, tell } from './shrink.ts';
import { simulate } from './simulation.ts';

/**
 * The seeds of a plain test run, in two parts of one file each, so that two cores can share them. Each part has to make
 * half of the steps and to fill half of each cell; then both together make a million and fill every cell a hundredfold.
 */
export const seedsPerPart = 6_700;
export const leastStepsPerPart = 500_000;
export const leastPerCellAndPart = 50;

export interface SeedRun {
  readonly seeds: number;
  readonly steps: number;
  readonly coverage: Coverage;
  /** The story of the first seed that broke a promise; null when none did. */
  readonly broken: string | null;
}

/** Runs the seeds `first`, `first` + 1, … and stops at the first one that breaks a promise. */
export function runSeeds(first: number, count: number): SeedRun {
  const coverage = new Coverage();
  let steps = 0;
  for (let seed = first; seed < first + count; seed += 1) {
    const scenario = scenarioOf(seed);
    const report = simulate(scenario);
    steps += report.steps;
    coverage.add(report.coverage);
    if (report.violation !== null) return { seeds: seed - first + 1, steps, coverage, broken: tell(shrink(scenario)) };
  }
  return { seeds: count, steps, coverage, broken: null };
}
