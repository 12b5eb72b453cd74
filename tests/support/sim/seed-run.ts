/** Many seeds in a row: sums and the first broken promise, shrunk and reported. */
import { aimOf } from './aims.ts';
import { aimedCells, applicableCells, type Cell, Coverage } from './coverage.ts';
import type { Scenario } from './scenario.ts';
import { nameOf, scenarioOf } from './scenario-of-seed.ts';
import { shrink, tell } from './shrink.ts';
import { simulate } from './simulation.ts';

/** The minimum of a part: this many steps, and each cell filled this often. */
export interface SeedRange {
  readonly firstSeed: number;
  readonly stepsMin: number;
  readonly perCellMin: number;
}

/**
 * A plain test run has an eighth of the first part, the long run and CI all of it and the second one: they make a
 * million steps and fill every cell a hundredfold. The seeds decide how many scenarios that takes, up to a limit that
 * reveals a cell that has become hard to hit.
 */
export const plainPart: SeedRange = { firstSeed: 0, stepsMin: 27_000, perCellMin: 2 };
// Not from 0: in scenario 181 the disk is full while claude starts and its runner is killed, two faults at once.
export const firstPart: SeedRange = { firstSeed: 200, stepsMin: 220_000, perCellMin: 20 };
/** Far beyond the last seed of the first part. */
export const longPart: SeedRange = { firstSeed: 500_000, stepsMin: 780_000, perCellMin: 80 };
export const mostSeedsPerPart = 8_000;

/** This share of the steps is made by purely random scenarios, before cells that are still thin are examined. */
const shareAtRandom = 0.4;
/** A scenario that passes all of these thin cells is interrupted in this many of them. */
const cutsMax = 12;
/** Additional steps by the crashes, about. */
const stepsOfRestarts = 300;

export interface SeedRun {
  /** Number of simulated seeds. */
  readonly seeds: number;
  readonly steps: number;
  readonly coverage: Coverage;
  /** The report of the first seed that broke a promise; null without one. */
  readonly broken: string | null;
}

/** A finished scenario, and the cells that its runners passed and survived. */
interface Base {
  readonly seed: number;
  readonly steps: number;
  readonly passed: ReadonlySet<Cell>;
  uses: number;
}

class Run {
  seeds = 0;
  steps = 0;
  readonly coverage = new Coverage();
  broken: string | null = null;
  readonly #bases: Base[] = [];
  readonly #told = new Set<string>();

  /** Simulates one scenario; false when it breaks a promise. */
  take(scenario: Scenario): boolean {
    const report = simulate(scenario);
    this.seeds += 1;
    this.steps += report.steps;
    this.coverage.add(report.coverage);
    if (report.violation !== null) this.broken = tell(shrink(scenario));
    const { seed, cuts } = scenario;
    const passed = new Set(report.coverage.passed);
    if (cuts.length === 0) this.#bases.push({ seed, steps: report.steps, passed, uses: 0 });
    return this.broken === null;
  }

  /**
   * A scenario that certainly hits the first of these cells and probably others of them; null without a known one. Up
   * to the first crash it equals an earlier one.
   */
  variantFor(thin: readonly Cell[], tries = 20): Scenario | null {
    const [first] = thin;
    let best: { readonly base: Base; readonly wanted: readonly Cell[]; readonly worth: number } | null = null;
    for (const base of this.#bases) {
      if (first === undefined || !base.passed.has(first)) continue;
      const wanted = thin.filter((cell) => base.passed.has(cell));
      const worth = Math.min(cutsMax, wanted.length) / ((base.steps + stepsOfRestarts) * (1 + base.uses));
      if (worth > (best?.worth ?? 0)) best = { base, wanted, worth };
    }
    if (best === null) return null;
    best.base.uses += 1;
    const scenario = scenarioOf(best.base.seed, placesOf(best.wanted, best.base.uses));
    if (this.#told.has(nameOf(scenario))) return tries > 0 ? this.variantFor(thin, tries - 1) : null;
    this.#told.add(nameOf(scenario));
    return scenario;
  }
}

/** The first of the cells and some of the others, first one per decision; different ones for another `turn`. */
function placesOf(cells: readonly Cell[], turn: number): number[] {
  const [first, ...others] = cells;
  const turned = others.map((_, index) => others[(index + turn) % others.length] as Cell);
  const seen = new Set([first?.decision]);
  const fresh = turned.filter(({ decision }) => !seen.has(decision) && seen.add(decision));
  const chosen = [first as Cell, ...fresh, ...turned.filter((cell) => !fresh.includes(cell))];
  return chosen.slice(0, cutsMax).map((cell) => applicableCells.indexOf(cell));
}

/** Runs the seeds `first`, `first` + 1, … and stops at the first one that breaks a promise. */
export function runSeeds(first: number, count: number): SeedRun {
  const run = new Run();
  while (run.seeds < count && run.take(scenarioOf(first + run.seeds)));
  return run;
}

/** Runs the seeds of one part, and variants of them for unfilled cells, until the part is complete. */
export function runPart({ firstSeed, stepsMin, perCellMin }: SeedRange): SeedRun {
  const run = new Run();
  let next = firstSeed;
  while (run.seeds < mostSeedsPerPart) {
    const thin = run.steps < stepsMin * shareAtRandom ? [] : run.coverage.thinCells(perCellMin);
    if (thin.length === 0 && run.steps > stepsMin) break;
    const variant = thin.length === 0 ? null : run.variantFor(thin);
    const aim = thin.find((cell) => aimedCells.includes(cell));
    while (variant === null && aim !== undefined && aimOf(next) !== aim) next += 1;
    if (!run.take(variant ?? scenarioOf(next))) break;
    if (variant === null) next += 1;
  }
  return run;
}
