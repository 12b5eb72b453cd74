/**
 * Promises: claude's own figures win over an estimate as soon as they hold the tokens it was made from, whatever the
 * price table says; what they do not hold is not lost. Not covered: what claude names in which message, see stream.
 */
import { expect, test } from 'bun:test';
import { emptySpending, type Spending, spendClaimed, spendSeen } from '../../src/claude/spending.ts';
import { noTokens, type Tokens } from '../../src/core/group.ts';

const dear = { nonsense: { input: 50, output: 50, cacheCreation: 50, cacheRead: 50 } };
const input = (count: number): Tokens => ({ ...noTokens, input: count });
const seen = (before: Spending, tokens: Tokens): Spending => spendSeen(before, 'nonsense', tokens, dear);
const claim = (before: Spending, costUsd: number, tokens: Tokens, model = 'nonsense'): Spending =>
  spendClaimed(before, costUsd, { [model]: { costUsd, tokens } }, dear);

test('an estimate that was too high gives way to what claude says of the same tokens', () => {
  const guessed = seen(seen(emptySpending(), input(1_000)), input(1_000));
  expect(guessed).toMatchObject({ costUsd: 0.1, estimated: true });
  const told = claim(guessed, 0.02, { ...input(2_000), output: 400 });
  expect(told).toMatchObject({ costUsd: 0.02, estimated: false, tokens: { input: 2_000, output: 400 } });
});

test('tokens that claude does not count, of an answer that was aborted, stay paid', () => {
  const aborted = seen(claim(seen(emptySpending(), input(1_000)), 0.01, input(1_000)), input(1_000));
  const told = claim(aborted, 0.01, input(1_000));
  expect(told.costUsd).toBeCloseTo(0.06);
  expect(told).toMatchObject({ estimated: true, tokens: { input: 2_000 } });
});

test.each(['cacheRead', 'cacheCreation'] as const)('%s that is missing is as good as missing input', (kind) => {
  const told = claim(seen(emptySpending(), { ...input(100), [kind]: 1_000 }), 0.001, input(5_000));
  expect(told.costUsd).toBeCloseTo(0.051);
  expect(told).toMatchObject({ estimated: true, tokens: { input: 5_000, [kind]: 1_000 } });
});

test('what was written for an hour keeps its price until claude counts it, and is no part of what is told', () => {
  const list = { nonsense: { input: 10, output: 0, cacheCreation: 12.5, cacheRead: 1 } };
  const hourly = { ...noTokens, cacheCreation: 1_000, hourly: 1_000 };
  const once = spendSeen(emptySpending(), 'nonsense', hourly, list);
  const twice = spendSeen(once, 'nonsense', hourly, list);
  expect([once.costUsd, twice.costUsd]).toEqual([0.02, 0.04]);
  expect([twice.tokens, twice.models.nonsense?.tokens]).toEqual(Array(2).fill({ ...noTokens, cacheCreation: 2_000 }));
  const counted = { ...noTokens, cacheCreation: 500 };
  const told = spendClaimed(twice, 0.01, { nonsense: { costUsd: 0.01, tokens: counted } }, list);
  expect(told.costUsd).toBeCloseTo(0.01 + 0.03, 9);
});

test('what was missing is counted once, when claude counts it later', () => {
  const partly = claim(seen(emptySpending(), input(1_000)), 0.001, input(200));
  expect(partly.costUsd).toBeCloseTo(0.041);
  const told = claim(partly, 0.02, input(1_000));
  expect(told).toMatchObject({ costUsd: 0.02, estimated: false, tokens: { input: 1_000 } });
});

test('what was aborted stays in the sum when claude counts further answers', () => {
  const aborted = seen(claim(seen(emptySpending(), input(1_000)), 0.01, input(1_000)), input(1_000));
  const more = claim(seen(claim(aborted, 0.01, input(1_000)), input(500)), 0.02, input(1_500));
  expect(more.costUsd).toBeCloseTo(0.07);
});
