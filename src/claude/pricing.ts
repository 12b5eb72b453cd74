/**
 * The price of tokens until claude reports the cost. prices.json: US dollars per million tokens, with the date of the
 * source.
 */
import { type Price, type PriceTable, sanityLimits, type Tokens } from '../core/group.ts';
import list from './prices.json' with { type: 'json' };

interface ListPrice extends Price {
  /** For a message whose prompt has more than `above` tokens. */
  readonly longPrompt?: Price & { readonly above: number };
}

const listed = Object.entries<ListPrice>(list.models).map(([id, price]) => ({ price, pattern: idPattern(id) }));

/** Without long-prompt prices, which a user's prices do not have. */
export const shippedPrices: PriceTable = Object.fromEntries(
  Object.entries<ListPrice>(list.models).map(([id, { longPrompt: _longPrompt, ...price }]) => [id, price]),
);

/** Matches an id in a longer name: `opus-5` matches `us.anthropic.claude-opus-5[1m]` but not `claude-opus-5-5`. */
function idPattern(id: string): RegExp {
  return new RegExp(`(^|[^a-z0-9])${RegExp.escape(id)}(?![a-z0-9]|[-.]\\d{1,2}(?!\\d))`);
}

export interface PricedTokens extends Tokens {
  /** The part of `cacheCreation` written for an hour instead of five minutes, as with a subscription. */
  readonly hourly?: number;
}

/** A one-hour cache write costs this multiple of input, for every current model. */
const hourlyTimes = 2;

/** True when the price of the model is a guess. `own`: prices of the user. */
export function isUnknownModel(model: string, own: PriceTable = {}): boolean {
  return findPrice(model, own) === undefined;
}

/** US dollars of one message. An unknown model counts as the most expensive known one. */
export function estimateCost(model: string, tokens: PricedTokens, own: PriceTable = {}): number {
  const known = findPrice(model, own) ?? mostExpensive(own);
  const prompt = tokens.input + tokens.cacheCreation + tokens.cacheRead;
  const price = known.longPrompt !== undefined && prompt > known.longPrompt.above ? known.longPrompt : known;
  const hourly = Math.min(tokens.cacheCreation, tokens.hourly ?? 0);
  const millionths =
    tokens.input * price.input +
    tokens.output * price.output +
    (tokens.cacheCreation - hourly) * price.cacheCreation +
    hourly * Math.max(price.cacheCreation, hourlyTimes * price.input) +
    tokens.cacheRead * price.cacheRead;
  return Math.min(sanityLimits.usd, millionths / 1_000_000);
}

function findPrice(model: string, own: PriceTable): ListPrice | undefined {
  const name = model.toLowerCase();
  const ours = Object.entries(own).find(([word]) => name.includes(word.toLowerCase()));
  return ours?.[1] ?? listed.find(({ pattern }) => pattern.test(name))?.price;
}

function mostExpensive(own: PriceTable): ListPrice {
  const known: ListPrice[] = [...listed.map(({ price }) => price), ...Object.values(own)];
  return known.reduce((a, b) => (b.output > a.output ? b : a));
}
