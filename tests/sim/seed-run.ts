/** Many seeds in a row: sums and the first broken promise, shrunk and told. */
import { aimOf } from './aims.ts';
import { Coverage } from './coverage.ts';
import { scenarioOf } from './scenario-of-seed.ts';
import { shrink, tell } from './shrink.ts';
import { simulate } from './simulation.ts';

/**
 * A plain test run has two parts of one file each, so that two cores can share them. Each part has to make half of the
 * steps and to fill half of each cell; then both together make a million and fill every cell a hundredfold. How many
 * seeds that takes is left to the seeds, with a limit that tells of a cell that has become hard to hit.
 */
export const mostSeedsPerPart = 6_000;
export const leastStepsPerPart = 500_000;
export const leastPerCellAndPart = 50;

export interface SeedRun {
  /** How many seeds were simulated. */
  readonly seeds: number;
  readonly steps: number;
  readonly coverage: Coverage;
  /** The story of the first seed that broke a promise; null when none did. */
  readonly broken: string | null;
}

/** Runs the seeds `first`, `first` + 1, … and stops at the first one that breaks a promise. */
export function runSeeds(first: number, count: number): SeedRun {
  return run(first, { isWanted: () => true, isEnough: ({ seeds }) => seeds === count });
}

/** Runs the seeds of one part, without those whose aim has been hit often enough, until the part is complete. */
export function runPart(first: number): SeedRun {
  return run(first, {
    isWanted: (seed, { coverage, steps }) =>
      steps < leastStepsPerPart || coverage.of(aimOf(seed)) < leastPerCellAndPart,
    isEnough: ({ seeds, steps, coverage }) =>
      seeds === mostSeedsPerPart || (steps > leastStepsPerPart && coverage.thinCells(leastPerCellAndPart).length === 0),
  });
}

type SoFar = Omit<SeedRun, 'broken'>;

interface Choice {
  readonly isWanted: (seed: number, soFar: SoFar) => boolean;
  readonly isEnough: (soFar: SoFar) => boolean;
}

function run(first: number, { isWanted, isEnough }: Choice): SeedRun {
  const sum = { seeds: 0, steps: 0, coverage: new Coverage() };
  for (let seed = first; !isEnough(sum); seed += 1) {
    if (!isWanted(seed, sum)) continue;
    const scenario = scenarioOf(seed);
    const report = simulate(scenario);
    sum.seeds += 1;
    sum.steps += report.steps;
    sum.coverage.add(report.coverage);
    if (report.violation !== null) return { ...sum, broken: tell(shrink(scenario)) };
  }
  return { ...sum, broken: null };
}
