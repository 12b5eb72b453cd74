/**
 * Promises: present and past models have the prices that claude uses. A new name counts as the most expensive model
 * and is reported as unknown. Whether claude still uses these prices is not tested, because its own figures take
 * precedence.
 */
import { describe, expect, test } from 'bun:test';
import { estimateCost, isUnknownModel } from '../../../src/claude/pricing.ts';
import { noTokens } from '../../../src/core/group.ts';

describe('prices', () => {
  const tokens = { input: 1e6, output: 1e6, cacheRead: 1e6, cacheCreation: 1e6 };

  test.each([
    ['claude-opus-4-8[1m]', 36.75],
    ['claude-opus-5-5', 29.2],
    ['claude-opus-5', 36.75],
    ['us.anthropic.claude-sonnet-5', 14.7],
    ['claude-sonnet-5-5[1m]', 14.6],
    ['claude-haiku-4-5-20251001', 7.35],
    ['claude-haiku-5-5', 3.675],
    ['claude-fable-5', 73.5],
    ['claude-opus-4-20250514', 110.25],
  ])('a million tokens of each kind on %s cost $%p', (model, usd) => {
    expect(estimateCost(model, tokens)).toBeCloseTo(usd, 6);
    expect(isUnknownModel(model)).toBe(false);
  });

  test.each(['brand-new', 'claude-opus-5-7', 'claude-opus-6', 'claude-haiku-5', 'constructor', '__proto__', ''])(
    'the model %p is unknown and counts as the most expensive',
    (model) => {
      expect(estimateCost(model, tokens)).toBeCloseTo(110.25, 6);
      expect(isUnknownModel(model)).toBe(true);
    },
  );

  test('a short prompt is cheaper on models that claude charges less for', () => {
    const usd = (input: number) => estimateCost('claude-haiku-5-5', { ...noTokens, input });
    expect([usd(100_000), usd(100_001)]).toEqual([0.01, expect.closeTo(0.0500005, 9)]);
  });

  test('tokens written to the one-hour cache cost twice the input price on every model', () => {
    const usd = (model: string, table?: object) =>
      estimateCost(model, { ...noTokens, cacheCreation: 1e6, hourly: 4e5 }, table as undefined);
    expect([usd('claude-opus-4-8'), usd('claude-opus-5-5')]).toEqual([7.75, 6.2]);
    // One-hour writes are part of all writes; a price set by the user is never lowered.
    expect(estimateCost('claude-opus-4-8', { ...noTokens, cacheCreation: 1, hourly: 9e9 })).toBe(1e-5);
    expect(usd('mine', { mine: { input: 1, output: 0, cacheCreation: 3, cacheRead: 0 } })).toBe(3);
  });

  test('prices set by the user replace those of the table', () => {
    const table = { mine: { input: 2, output: 0, cacheCreation: 0, cacheRead: 0 } };
    expect(estimateCost('mine-1', { ...noTokens, input: 1e6 }, table)).toBe(2);
  });
});
