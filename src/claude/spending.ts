/**
 * What one process has cost so far, from three sources of different worth: claude's own totals (in `result` and in
 * answers to `get_usage`), and, for messages seen since the last of them, their input tokens times the price table.
 */
import { addTokens, type ModelUsage, noTokens, type PriceTable, type Tokens } from '../core/group.ts';
import { estimateCost } from './pricing.ts';

export interface Spending {
  readonly costUsd: number;
  readonly tokens: Tokens;
  readonly models: Readonly<Record<string, ModelUsage>>;
  /** True when more than claude's own figures is in it. */
  readonly estimated: boolean;
  /** The highest total that claude named. */
  readonly claimed: { readonly costUsd: number; readonly models: Readonly<Record<string, ModelUsage>> };
}

export const emptySpending: Spending = {
  costUsd: 0,
  tokens: noTokens,
  models: {},
  estimated: false,
  claimed: { costUsd: 0, models: {} },
};

/** Sums of money differ in the last digits; less than this is the same amount. */
const sameUsd = 1e-9;

/**
 * claude named a total for this process. Totals only grow, so a lower one is an older one: the result of a turn that
 * waited for a background agent is printed late, with the total of its time beside newer figures per model. What was
 * estimated above claude's total stays as well: claude counts an aborted answer as nothing, the API bills its input.
 */
export function spendClaimed(s: Spending, totalUsd: number, models: Readonly<Record<string, ModelUsage>>): Spending {
  const perModelUsd = Object.values(models).reduce((sum, usage) => sum + usage.costUsd, 0);
  const costUsd = perModelUsd > totalUsd + sameUsd ? perModelUsd : totalUsd;
  if (costUsd < s.claimed.costUsd) return s;
  const claimed = { costUsd, models: Object.keys(models).length > 0 ? models : s.claimed.models };
  if (costUsd < s.costUsd - sameUsd) return { ...s, claimed };
  const tokens = Object.values(claimed.models).reduce((sum, usage) => addTokens(sum, usage.tokens), noTokens);
  return { costUsd: Math.max(costUsd, s.costUsd), tokens, models: claimed.models, estimated: false, claimed };
}

/**
 * A message began, with this usage. claude adds it to its total when the message ends, after this line: an answer to
 * `get_usage` that comes later may or may not hold it, one that came before does not.
 */
export function spendSeen(s: Spending, model: string, usage: Tokens, prices: PriceTable): Spending {
  const usd = estimateCost(model, usage, prices);
  if (usd === 0) return s;
  const before = s.models[model] ?? { costUsd: 0, tokens: noTokens };
  const after = { costUsd: before.costUsd + usd, tokens: addTokens(before.tokens, usage) };
  return {
    costUsd: s.costUsd + usd,
    tokens: addTokens(s.tokens, usage),
    models: Object.fromEntries([...Object.entries(s.models).filter(([name]) => name !== model), [model, after]]),
    estimated: true,
    claimed: s.claimed,
  };
}
