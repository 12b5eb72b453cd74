/**
 * Promises: in scenarios with questions and answers, whatever process dies: the model gets one answer per item, sends
 * no request while its session is parked, and caps hold.
 */
import { expect, test } from 'bun:test';
import { Coverage } from '../../support/sim/coverage.ts';
import { withQuestions } from '../../support/sim/scenario-of-seed.ts';
import { tell } from '../../support/sim/shrink.ts';
import { simulate } from '../../support/sim/simulation.ts';

const seeds = Number(process.env.TEST_SEEDS ?? 200);

test(`${seeds} scenarios with questions (TEST_SEEDS=N tries more)`, () => {
  const coverage = new Coverage();
  for (let seed = 3_000_000; seed < 3_000_000 + seeds; seed += 1) {
    const scenario = withQuestions(seed);
    const report = simulate(scenario);
    if (report.violation !== null) throw new Error(tell(scenario));
    coverage.add(report.coverage);
  }
  const count = (what: string) => coverage.counts.get(what) ?? 0;
  expect(count('answers told 1')).toBeGreaterThan(seeds / 2);
  expect(count('ended while it asks')).toBeGreaterThan(seeds / 4);
}, 600_000);
