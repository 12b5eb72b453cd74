/**
 * The cost of one process so far, from claude's own totals (in `result` and in answers to `get_usage`) and, for
 * messages whose tokens they do not include, input tokens times the price table. Tokens show what is missing, never
 * dollars: our prices may be higher than claude's.
 */
import {
  addModels,
  addTokens,
  type ModelUsage,
  noTokens,
  type PriceTable,
  roundUsd,
  type Tokens,
} from '../core/group.ts';
import { estimateCost, isUnknownModel, type PricedTokens } from './pricing.ts';

type Models = Readonly<Record<string, ModelUsage>>;

type UnclaimedTokens = Readonly<Record<string, ModelUsage & { readonly tokens: PricedTokens }>>;

export interface ReportedTotals {
  readonly costUsd: number;
  readonly models: Models;
  /** Tokens of models without a price known to claude. */
  readonly unpriced?: readonly string[];
}

export const noTotals: ReportedTotals = { costUsd: 0, models: {} };

export interface EarlierSpending {
  /**
   * Finds the baseline of claude's totals; called once, when claude reports a total without having reported a baseline.
   */
  readonly findBase: () => ReportedTotals;
  /** Their recorded cost, with what is held; absent = unknown. */
  readonly booked?: ReportedTotals;
}

export interface ClaudeSpending {
  readonly costUsd: number;
  readonly tokens: Tokens;
  readonly models: Models;
  readonly estimated: boolean;
  /** claude's totals before this process did anything; subtracted from every total. */
  readonly base: ReportedTotals;
  /** Cost of this process's conversations that ended before the present one. */
  readonly settled: ReportedTotals & { readonly estimated: boolean };
  /** The highest total that claude reported, without the baseline. */
  readonly claimed: ReportedTotals;
  /** Seen usage per model that is not in that total, by our prices; a model stays in it for ever. */
  readonly unclaimed: UnclaimedTokens;
}

/** The instructions and tools at the start of every conversation, and a long answer. */
const firstMessage: Tokens = { input: 0, output: 8_000, cacheRead: 0, cacheCreation: 50_000 };

/** An attempt whose process ended during its work without reporting its totals. */
export interface KilledAttempt {
  readonly seenUsd: number;
  readonly reservedUsd?: number;
  readonly mostExpensiveUsd: number;
  readonly model?: string;
  /** Requests that may have been in flight; Infinity if the attempt's record is lost. */
  readonly requests: number;
  readonly prices: PriceTable;
}

/** US dollars beyond what was seen: one more message per request in flight, at most the unspent reservation. */
export function heldAfterKill(attempt: KilledAttempt): number {
  const { seenUsd, reservedUsd, mostExpensiveUsd, model = '', requests, prices } = attempt;
  const messageUsd = Math.max(mostExpensiveUsd, estimateCost(model, firstMessage, prices));
  if (reservedUsd === undefined) return roundUsd(messageUsd * (Number.isFinite(requests) ? requests : 1));
  // A user's own model may cost nothing; then no number of messages reaches the reservation.
  const inFlightUsd = Number.isFinite(requests) ? requests * messageUsd : Number.POSITIVE_INFINITY;
  return roundUsd(Math.max(0, Math.min(reservedUsd - seenUsd + messageUsd, inFlightUsd)));
}

/** A process whose totals start at `base`. Cost that claude recorded and no attempt did counts for this process. */
export function initialSpending(base: ReportedTotals, booked: ReportedTotals = base): ClaudeSpending {
  const begun = emptySpending(base);
  // claude's guess for a model without a known price differs from our recorded cost for the same tokens.
  const isGuess = Object.keys(base.models).some((model) => isUnknownModel(model));
  const unrecordedCostUsd = base.costUsd - booked.costUsd;
  if (isGuess || unrecordedCostUsd < unrecordedMinUsd) return begun;
  const own = ownPart(base, booked);
  // Model names may differ, and estimates may be of others.
  const models = Math.abs(own.costUsd - unrecordedCostUsd) < unrecordedMinUsd ? own.models : {};
  return summed({ ...begun, settled: { costUsd: unrecordedCostUsd, models, estimated: false } }, noTotals, {});
}

export function tokensOf(models: Models): Tokens {
  return Object.values(models).reduce((sum, { tokens }) => addTokens(sum, tokens), noTokens);
}

/** Nothing spent yet, in a process whose totals start at `base`. */
export function emptySpending(base: ReportedTotals = noTotals): ClaudeSpending {
  return {
    costUsd: 0,
    tokens: noTokens,
    models: {},
    estimated: false,
    base,
    settled: { ...noTotals, estimated: false },
    claimed: noTotals,
    unclaimed: {},
  };
}

/** A new conversation restarts its totals at zero; a total that is no lower continues the old ones. */
export function startNewConversation(s: ClaudeSpending, totalUsd: number): ClaudeSpending {
  if (totalUsd > s.base.costUsd + s.claimed.costUsd - sameUsd) return s;
  const { costUsd, models, tokens, estimated } = s;
  return { ...emptySpending(), costUsd, models, tokens, estimated, settled: { costUsd, models, estimated } };
}

/** Sums of money differ in the last digits; a smaller difference is equality. */
const sameUsd = 1e-9;
/** US dollars; the largest rounding error of the sums of a hundred attempts. */
const unrecordedMinUsd = 1e-6;

/**
 * claude reported a total for this process. Totals only grow, so a lower one is older: the result of a turn that waited
 * for a background agent is printed late, with its old total next to newer figures per model. Its token increase covers
 * that many seen tokens: claude counts an aborted answer as zero, but the API bills its input, so that one stays in our
 * estimate.
 */
export function addReportedTotal(s: ClaudeSpending, total: ReportedTotals, prices: PriceTable): ClaudeSpending {
  const { costUsd, models } = withoutGuesses(ownPart(total, s.base), total.unpriced ?? [], prices);
  if (costUsd < s.claimed.costUsd) return s;
  const claimed = { costUsd, models: Object.keys(models).length > 0 ? models : s.claimed.models };
  if (Object.values(models).some(({ tokens }) => hasAny(tokens))) {
    const rest = uncovered(s.unclaimed, s.claimed.models, models);
    const left = Object.fromEntries([...rest].map(([name, tokens]) => [name, estimate(name, tokens, prices)]));
    return summed(s, claimed, left);
  }
  // Without tokens only the dollars can show whether the seen usage is included.
  if (costUsd < s.costUsd - s.settled.costUsd - sameUsd) return s;
  const none = Object.keys(s.unclaimed).map((model) => [model, { costUsd: 0, tokens: noTokens }]);
  return summed(s, claimed, Object.fromEntries(none));
}

/** claude's guess for a model without a known price is too low to enforce a cap. */
function withoutGuesses(own: ReportedTotals, unpriced: readonly string[], prices: PriceTable): ReportedTotals {
  const models = new Map(Object.entries(own.models));
  let costUsd = own.costUsd;
  for (const model of unpriced) {
    const guess = models.get(model);
    if (guess === undefined) continue;
    const byTable = estimateCost(model, guess.tokens, prices);
    const usd = isUnknownModel(model, prices) ? Math.max(byTable, guess.costUsd) : byTable;
    models.set(model, { ...guess, costUsd: usd });
    costUsd += usd - guess.costUsd;
  }
  return { costUsd, models: Object.fromEntries(models) };
}

/**
 * The part of a total that belongs to this process: without the baseline, and with the figures per model where those
 * are newer.
 */
function ownPart(total: ReportedTotals, base: ReportedTotals): ReportedTotals {
  const models = new Map<string, ModelUsage>();
  for (const [model, { costUsd, tokens }] of Object.entries(total.models)) {
    const before = usageIn(base.models, model);
    const hourly = hourlyOf(tokens) - hourlyOf(before.tokens);
    const own = { costUsd: Math.max(0, costUsd - before.costUsd), tokens: priced(less(tokens, before.tokens), hourly) };
    if (own.costUsd > sameUsd || hasAny(own.tokens)) models.set(model, own);
  }
  const perModelUsd = [...models.values()].reduce((sum, usage) => sum + usage.costUsd, 0);
  const ownUsd = Math.max(0, total.costUsd - base.costUsd);
  return { costUsd: perModelUsd > ownUsd + sameUsd ? perModelUsd : ownUsd, models: Object.fromEntries(models) };
}

/**
 * A message started with this usage. claude adds it to its total when the message ends, after this line: a later answer
 * to `get_usage` may or may not include it, an earlier one does not.
 */
export function addSeenMessage(
  s: ClaudeSpending,
  model: string,
  usage: PricedTokens,
  prices: PriceTable,
): ClaudeSpending {
  if (estimateCost(model, usage, prices) === 0) return s;
  const before: PricedTokens = usageIn(s.unclaimed, model).tokens;
  const tokens = priced(addTokens(before, usage), (before.hourly ?? 0) + (usage.hourly ?? 0));
  return summed(s, s.claimed, { ...s.unclaimed, [model]: estimate(model, tokens, prices) });
}

function summed(
  { base, settled }: ClaudeSpending,
  claimed: ReportedTotals,
  unclaimed: UnclaimedTokens,
): ClaudeSpending {
  const missing = Object.entries(unclaimed).filter(([, { tokens }]) => hasAny(tokens));
  const models = [settled.models, claimed.models, Object.fromEntries(missing)].reduce(addModels, {});
  const estimatedUsd = missing.reduce((sum, [, usage]) => sum + usage.costUsd, 0);
  const costUsd = settled.costUsd + claimed.costUsd + estimatedUsd;
  const estimated = settled.estimated || estimatedUsd > 0;
  return { costUsd, tokens: tokensOf(models), models, estimated, base, settled, claimed, unclaimed };
}

/**
 * The seen tokens of each model minus the increase in claude's count. claude may also count calls outside the stream (a
 * sub-agent, a compaction). If those use the same model, they hide as many tokens of an aborted answer.
 */
function uncovered(seen: UnclaimedTokens, before: Models, after: Models): ReadonlyMap<string, PricedTokens> {
  const grown = new Map<string, Tokens>();
  for (const [model, { tokens }] of Object.entries(after)) {
    const name = plainName(model);
    grown.set(name, addTokens(grown.get(name) ?? noTokens, less(tokens, usageIn(before, model).tokens)));
  }
  const rest = new Map(Object.entries(seen).map(([model, { tokens }]) => [model, tokens]));
  const cover = (model: string, name: string): void => {
    const tokens: PricedTokens = rest.get(model) ?? noTokens;
    const counted = grown.get(name) ?? noTokens;
    rest.set(model, priced(withInput(less(tokens, counted)), tokens.hourly ?? 0));
    if (grown.has(name)) grown.set(name, less(counted, tokens));
  };
  for (const model of rest.keys()) cover(model, plainName(model));
  // A gateway may answer with a model name that claude does not know. claude then counts it under a listed name that no
  // answer had.
  const listed = new Set(Object.keys(after).map(plainName));
  const seenNames = new Set([...rest.keys()].map(plainName));
  const unheard = [...listed].filter((name) => !seenNames.has(name));
  for (const model of rest.keys()) if (!listed.has(plainName(model))) for (const name of unheard) cover(model, name);
  return rest;
}

/** Model names are external: one that every object inherits is in no table. */
function usageIn(models: Models, model: string): ModelUsage {
  const usage = Object.hasOwn(models, model) ? models[model] : undefined;
  return usage ?? { costUsd: 0, tokens: noTokens };
}

/** Without the window size or the release date: the API's name has more, or fewer, of these than claude's. */
function plainName(model: string): string {
  return model.replace(/\[[^\]]*\]$/, '').replace(/-\d{8}$/, '');
}

function less(a: Tokens, b: Tokens): Tokens {
  return {
    input: Math.max(0, a.input - b.input),
    output: Math.max(0, a.output - b.output),
    cacheRead: Math.max(0, a.cacheRead - b.cacheRead),
    cacheCreation: Math.max(0, a.cacheCreation - b.cacheCreation),
  };
}

/** The output count at the start of a message is only a guess of the API; its input is exact. */
function withInput(tokens: Tokens): Tokens {
  return tokens.input + tokens.cacheRead + tokens.cacheCreation > 0 ? tokens : noTokens;
}

/** The remaining one-hour cache writes count as the more expensive part. */
function priced(tokens: Tokens, hourly: number): PricedTokens {
  const left = Math.min(hourly, tokens.cacheCreation);
  return left > 0 ? { ...tokens, hourly: left } : tokens;
}

function hourlyOf(tokens: PricedTokens): number {
  return tokens.hourly ?? 0;
}

function hasAny(tokens: Tokens): boolean {
  return Object.values(tokens).some((count) => count > 0);
}

function estimate(model: string, tokens: PricedTokens, prices: PriceTable): UnclaimedTokens[string] {
  return { costUsd: estimateCost(model, tokens, prices), tokens };
}
