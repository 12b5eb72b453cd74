/** The amount held for a killed claude. */
import { estimateCost, shippedPrices } from '../../src/claude/pricing.ts';
import { noTokens } from '../../src/core/group.ts';

/** US dollars; held for a message of unknown length, at the highest price of a model. */
export const firstMessageUsd = Math.max(
  ...Object.keys(shippedPrices).map((model) =>
    estimateCost(model, { ...noTokens, output: 8_000, cacheCreation: 50_000 }),
  ),
);
