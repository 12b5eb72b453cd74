/**
 * What tokens cost, for the time before claude has said it itself. claude's own figures always win.
 */
import type { Price, PriceTable, Tokens } from '../core/group.ts';

/** The families claude knows, and the prices it uses for its own figures. */
export const prices: PriceTable = {
  opus: { input: 5, output: 25, cacheCreation: 6.25, cacheRead: 0.5 },
  sonnet: { input: 3, output: 15, cacheCreation: 3.75, cacheRead: 0.3 },
  haiku: { input: 1, output: 5, cacheCreation: 1.25, cacheRead: 0.1 },
  fable: { input: 10, output: 50, cacheCreation: 12.5, cacheRead: 1 },
};

/** True when the price of the model is a guess. `own` are prices of the user's. */
export function isUnknownModel(model: string, own: PriceTable = {}): boolean {
  return findPrice(model, own) === undefined;
}

/**
 * US dollars for these tokens. An unknown model counts as the dearest known one: a cap must not be passed because a
 * name is new.
 */
export function estimateCost(model: string, tokens: Tokens, own: PriceTable = {}): number {
  const price = findPrice(model, own) ?? dearest({ ...prices, ...own });
  const millionths =
    tokens.input * price.input +
    tokens.output * price.output +
    tokens.cacheCreation * price.cacheCreation +
    tokens.cacheRead * price.cacheRead;
  return millionths / 1_000_000;
}

function findPrice(model: string, own: PriceTable): Price | undefined {
  const name = model.toLowerCase();
  const found = [...Object.entries(own), ...Object.entries(prices)].find(([word]) => name.includes(word.toLowerCase()));
  return found?.[1];
}

function dearest(table: PriceTable): Price {
  return Object.values(table).reduce((a, b) => (b.output > a.output ? b : a), free);
}

const free: Price = { input: 0, output: 0, cacheCreation: 0, cacheRead: 0 };
