/**
 * Promises: claude's own figures replace an estimate as soon as they cover the same tokens, whatever the price. Tokens
 * missing from them stay counted. Which message names which figures is tested in `stream.test.ts`.
 */
import { expect, test } from 'bun:test';
import { estimateCost } from '../../../src/claude/pricing.ts';
import {
  addReportedTotal,
  addSeenMessage,
  type ClaudeSpending,
  emptySpending,
  initialSpending,
} from '../../../src/claude/spending.ts';
import { noTokens, type Tokens } from '../../../src/core/group.ts';

const dear = { nonsense: { input: 50, output: 50, cacheCreation: 50, cacheRead: 50 } };
const input = (count: number): Tokens => ({ ...noTokens, input: count });
const seen = (before: ClaudeSpending, tokens: Tokens): ClaudeSpending =>
  addSeenMessage(before, 'nonsense', tokens, dear);
const claim = (before: ClaudeSpending, costUsd: number, tokens: Tokens, model = 'nonsense'): ClaudeSpending =>
  addReportedTotal(before, { costUsd, models: { [model]: { costUsd, tokens } } }, dear);

test('an estimate that was too high is replaced by claude’s figures for the same tokens', () => {
  const guessed = seen(seen(emptySpending(), input(1_000)), input(1_000));
  expect(guessed).toMatchObject({ costUsd: 0.1, estimated: true });
  const told = claim(guessed, 0.02, { ...input(2_000), output: 400 });
  expect(told).toMatchObject({ costUsd: 0.02, estimated: false, tokens: { input: 2_000, output: 400 } });
});

test('where claude guesses the price, the table or the highest known price counts', () => {
  const tokens = { ...noTokens, input: 100_000, output: 10_000 };
  const guessed = (costUsd: number, model: string, base = 0) => {
    const before = { costUsd: base, models: { [model]: { costUsd: base, tokens: input(base * 1_000) } } };
    const total = { costUsd: base + costUsd, models: { [model]: { costUsd: base + costUsd, tokens: { ...tokens } } } };
    total.models[model] = { costUsd: base + costUsd, tokens: { ...tokens, input: tokens.input + base * 1_000 } };
    return addReportedTotal(emptySpending(before), { ...total, unpriced: [model, 'other'] }, dear).costUsd;
  };
  const dearestUsd = estimateCost('quartz-9', tokens, dear);
  expect(dearestUsd).toBeGreaterThan(1);
  expect([guessed(0.6, 'quartz-9'), guessed(0.6, 'quartz-9', 3), guessed(40, 'quartz-9')]).toEqual([
    ...[dearestUsd, dearestUsd, 40],
  ]);
  expect(guessed(0.6, 'nonsense')).toBeCloseTo(110_000 * 50e-6, 9);
  expect(guessed(9, 'nonsense')).toBeCloseTo(110_000 * 50e-6, 9);
});

test('claude’s guess adds nothing to recorded spending', () => {
  const guess = (costUsd: number, tokens: Tokens) => ({
    ...{ costUsd, models: { 'quartz-9': { costUsd, tokens } } },
  });
  const booked = (costUsd: number) => ({ costUsd, models: { 'quartz-9': { costUsd, tokens: input(100_000) } } });
  // Booked at the user's price, and at the highest known price.
  expect(initialSpending(guess(0.4, input(100_000)), booked(0.1)).costUsd).toBe(0);
  expect(initialSpending(guess(0.4, input(100_000)), booked(1.5)).costUsd).toBe(0);
});

test('one-hour cache writes of a model with a guessed price are charged and not reported as claude’s', () => {
  const hourly = { ...noTokens, cacheCreation: 100_000, hourly: 100_000 };
  const claimed = { costUsd: 0.8, models: { 'quartz-9': { costUsd: 0.8, tokens: hourly } }, unpriced: ['quartz-9'] };
  const told = addReportedTotal(emptySpending(), claimed, {});
  expect(told.costUsd).toBeCloseTo(estimateCost('quartz-9', hourly), 9);
  expect(told.models['quartz-9']?.tokens).toEqual({ ...noTokens, cacheCreation: 100_000 });
});

test('a total of guesses never falls below the estimate, so a reached cap stays reached', () => {
  const tokens = { ...noTokens, input: 100_000 };
  const before = addSeenMessage(emptySpending(), 'quartz-9', tokens, {});
  const models = { 'quartz-9': { costUsd: 0.4, tokens } };
  expect(addReportedTotal(before, { costUsd: 0.4, models, unpriced: ['quartz-9'] }, {}).costUsd).toBe(before.costUsd);
});

test('tokens of an aborted answer, which claude does not count, stay counted', () => {
  const aborted = seen(claim(seen(emptySpending(), input(1_000)), 0.01, input(1_000)), input(1_000));
  const told = claim(aborted, 0.01, input(1_000));
  expect(told.costUsd).toBeCloseTo(0.06);
  expect(told).toMatchObject({ estimated: true, tokens: { input: 2_000 } });
});

test.each(['cacheRead', 'cacheCreation'] as const)('missing %s means the figures lack the input', (kind) => {
  const told = claim(seen(emptySpending(), { ...input(100), [kind]: 1_000 }), 0.001, input(5_000));
  expect(told.costUsd).toBeCloseTo(0.051);
  expect(told).toMatchObject({ estimated: true, tokens: { input: 5_000, [kind]: 1_000 } });
});

test('one-hour cache writes keep their price until claude counts them, and are not reported as claude’s', () => {
  const list = { nonsense: { input: 10, output: 0, cacheCreation: 12.5, cacheRead: 1 } };
  const hourly = { ...noTokens, cacheCreation: 1_000, hourly: 1_000 };
  const once = addSeenMessage(emptySpending(), 'nonsense', hourly, list);
  const twice = addSeenMessage(once, 'nonsense', hourly, list);
  expect([once.costUsd, twice.costUsd]).toEqual([0.02, 0.04]);
  expect([twice.tokens, twice.models.nonsense?.tokens]).toEqual(Array(2).fill({ ...noTokens, cacheCreation: 2_000 }));
  const counted = { ...noTokens, cacheCreation: 500 };
  const told = addReportedTotal(
    twice,
    { costUsd: 0.01, models: { nonsense: { costUsd: 0.01, tokens: counted } } },
    list,
  );
  expect(told.costUsd).toBeCloseTo(0.01 + 0.03, 9);
});

test('missing tokens are counted once when claude counts them later', () => {
  const partly = claim(seen(emptySpending(), input(1_000)), 0.001, input(200));
  expect(partly.costUsd).toBeCloseTo(0.041);
  const told = claim(partly, 0.02, input(1_000));
  expect(told).toMatchObject({ costUsd: 0.02, estimated: false, tokens: { input: 1_000 } });
});

test('an aborted answer stays in the sum when claude counts further answers', () => {
  const aborted = seen(claim(seen(emptySpending(), input(1_000)), 0.01, input(1_000)), input(1_000));
  const more = claim(seen(claim(aborted, 0.01, input(1_000)), input(500)), 0.02, input(1_500));
  expect(more.costUsd).toBeCloseTo(0.07);
});
