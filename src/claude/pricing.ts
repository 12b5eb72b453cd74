/**
 * What tokens cost, for the time before claude has said it itself. claude's own figures always win.
 */
import type { Tokens } from '../core/group.ts';

/** US dollars per million tokens. */
export interface Price {
  readonly input: number;
  readonly output: number;
  readonly cacheCreation: number;
  readonly cacheRead: number;
}

/** Price by the word that every model id of a family contains. */
export type PriceTable = Readonly<Record<string, Price>>;

/** The families claude knows, and the prices it uses for its own figures. */
export const prices: PriceTable = {
  opus: { input: 5, output: 25, cacheCreation: 6.25, cacheRead: 0.5 },
  sonnet: { input: 3, output: 15, cacheCreation: 3.75, cacheRead: 0.3 },
  haiku: { input: 1, output: 5, cacheCreation: 1.25, cacheRead: 0.1 },
  fable: { input: 10, output: 50, cacheCreation: 12.5, cacheRead: 1 },
};

/** True when the price of the model is a guess. */
export function isUnknownModel(model: string, table: PriceTable = prices): boolean {
  return findPrice(model, table) === undefined;
}

/**
 * US dollars for these tokens. An unknown model counts as the dearest known one: a cap must not be passed because a
 * name is new.
 */
export function estimateCost(model: string, tokens: Tokens, table: PriceTable = prices): number {
  const price = findPrice(model, table) ?? dearest(table);
  const millionths =
    tokens.input * price.input +
    tokens.output * price.output +
    tokens.cacheCreation * price.cacheCreation +
    tokens.cacheRead * price.cacheRead;
  return millionths / 1_000_000;
}

function findPrice(model: string, table: PriceTable): Price | undefined {
  const name = model.toLowerCase();
  const family = Object.keys(table).find((word) => name.includes(word.toLowerCase()));
  return family === undefined ? undefined : table[family];
}

function dearest(table: PriceTable): Price {
  return Object.values(table).reduce((a, b) => (b.output > a.output ? b : a), free);
}

const free: Price = { input: 0, output: 0, cacheCreation: 0, cacheRead: 0 };
