/** Promises: usage adds up in any order and grouping, for each model, and a sum with an estimate is an estimate. */
import { expect, test } from 'bun:test';
import { addUsage, defaultGroupConfig, noUsage, type Usage } from '../../../src/core/group.ts';
import { cases, fc } from '../../support/core-check.ts';

const counts = fc.nat({ max: 1e6 });
const tokens = fc.record({ input: counts, output: counts, cacheRead: counts, cacheCreation: counts });
/** Costs are whole numbers here, so that sums are exact. */
const modelUsages = fc.record({ costUsd: counts, tokens });
const usages: fc.Arbitrary<Usage> = fc
  .record({
    costUsd: counts,
    tokens,
    durationMs: counts,
    turns: counts,
    estimated: fc.boolean(),
    models: fc.dictionary(fc.constantFrom('opus', 'sonnet', 'haiku'), modelUsages),
  })
  .map(({ estimated, ...usage }) => ({ ...usage, ...(estimated ? { estimated: true as const } : {}) }));

test('group settings have the defaults of the specification', () => {
  expect(defaultGroupConfig).toEqual({
    maxConcurrentSessions: 3,
    respectDependencies: true,
    pauseOnError: true,
    errorThreshold: 2,
    onBudgetExceeded: 'pause',
    warningThreshold: 0.8,
  });
});

test('usage sums do not depend on order or grouping', () => {
  fc.assert(
    fc.property(usages, usages, (a, b) => expect(addUsage(a, b)).toEqual(addUsage(b, a))),
    cases,
  );
  fc.assert(
    fc.property(usages, usages, usages, (a, b, c) =>
      expect(addUsage(addUsage(a, b), c)).toEqual(addUsage(a, addUsage(b, c))),
    ),
    cases,
  );
});

test('usage is summed for each model, and a sum with an estimate is an estimate', () => {
  const one = (costUsd: number) => ({ costUsd, tokens: { input: costUsd, output: 1, cacheRead: 0, cacheCreation: 0 } });
  const a: Usage = { ...noUsage, ...one(3), turns: 1, durationMs: 10, models: { opus: one(1), haiku: one(2) } };
  const b: Usage = { ...noUsage, ...one(4), turns: 2, durationMs: 20, estimated: true, models: { opus: one(4) } };
  expect(addUsage(a, b)).toEqual({
    costUsd: 7,
    tokens: { input: 7, output: 2, cacheRead: 0, cacheCreation: 0 },
    durationMs: 30,
    turns: 3,
    estimated: true,
    models: { opus: { ...one(5), tokens: { ...one(5).tokens, output: 2 } }, haiku: one(2) },
  });
});

test('sums of money are exact to the sixth digit in any order', () => {
  const one = (costUsd: number): Usage => ({
    ...noUsage,
    costUsd,
    models: { opus: { costUsd, tokens: noUsage.tokens } },
  });
  expect(addUsage(one(0.1), one(0.2)).costUsd).toBe(0.3);
  const micros = fc.array(fc.nat({ max: 1e9 }), { maxLength: 50 });
  fc.assert(
    fc.property(micros, (parts) => {
      const sum = parts.reduce((usage, part) => addUsage(usage, one(part / 1e6)), noUsage);
      const usd = parts.reduce((a, b) => a + b, 0) / 1e6;
      expect([sum.costUsd, sum.models.opus?.costUsd ?? 0]).toEqual([usd, usd]);
    }),
    cases,
  );
});
