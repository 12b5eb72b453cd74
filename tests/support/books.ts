/** What is counted against what the scripted API served. */
import { expect } from 'bun:test';
import { estimateCost, shippedPrices } from '../../src/claude/pricing.ts';
import { noTokens, type Usage } from '../../src/core/group.ts';

/** US dollars; held for a message of unknown length, at the highest price of a model. */
export const firstMessageUsd = Math.max(
  ...Object.keys(shippedPrices).map((model) =>
    estimateCost(model, { ...noTokens, output: 8_000, cacheCreation: 50_000 }),
  ),
);

/**
 * Not a cent is lost, and none is counted that was not served. Of each of the `ended` attempts one message
 * may be held: those that were ended before claude reported its totals.
 */
export function expectServed({ costUsd, heldUsd = 0 }: Usage, servedUsd: number, ended = 0): void {
  const tolerance = 5e-7;
  expect(heldUsd).toBeLessThanOrEqual(ended * firstMessageUsd + tolerance);
  expect(costUsd).toBeGreaterThanOrEqual(servedUsd - tolerance);
  expect(costUsd - heldUsd).toBeLessThanOrEqual(servedUsd + tolerance);
}
