/**
 * What one process has cost so far, from three sources of different worth: claude's own totals (in `result` and in
 * answers to `get_usage`), and, for messages whose tokens are not in them, their input tokens times the price table.
 * Tokens say what is missing, and never dollars: our prices may be higher than claude's.
 */
import {
  addTokens,
  type ModelUsage,
  noTokens,
  type PriceTable,
  roundUsd,
  sanityLimits,
  type Tokens,
} from '../core/group.ts';
import { estimateCost, isUnknownModel, type PricedTokens } from './pricing.ts';

type Models = Readonly<Record<string, ModelUsage>>;

type Seen = Readonly<Record<string, ModelUsage & { readonly tokens: PricedTokens }>>;

export interface ReportedTotals {
  readonly costUsd: number;
  readonly models: Models;
  /** Those of the models whose price claude does not know. */
  readonly unpriced?: readonly string[];
}

export const noTotals: ReportedTotals = { costUsd: 0, models: {} };

export interface EarlierSpending {
  /** Finds what claude's totals begin with; asked once, when claude names a total and has not said that. */
  readonly findBase: () => ReportedTotals;
  /** What is booked for them, with what is held; absent = not known. */
  readonly booked?: ReportedTotals;
}

export interface ClaudeSpending {
  readonly costUsd: number;
  readonly tokens: Tokens;
  readonly models: Models;
  readonly estimated: boolean;
  /** What claude's totals held before this process did anything; taken off every total. */
  readonly base: ReportedTotals;
  /** What conversations of this process cost that ended before the present one began. */
  readonly settled: ReportedTotals & { readonly estimated: boolean };
  /** The highest total that claude named, without the base. */
  readonly claimed: ReportedTotals;
  /** What was seen of each model and is not in that total, by our prices; a model that was ever seen stays in it. */
  readonly unclaimed: Seen;
}

/** More than a message of any model can have. */
export function isImplausibleMessage(tokens: Tokens): boolean {
  return Object.values(tokens).some((count) => count > sanityLimits.messageTokens);
}

/** The instructions and tools that every conversation begins with, and a long answer. */
const firstMessage: Tokens = { input: 0, output: 8_000, cacheRead: 0, cacheCreation: 50_000 };

/** An attempt whose process ended while it worked and did not report its totals. */
export interface KilledAttempt {
  readonly seenUsd: number;
  readonly reservedUsd?: number;
  readonly mostExpensiveUsd: number;
  readonly model?: string;
  /** Requests that may have been in flight; Infinity where the record of the attempt is lost. */
  readonly requests: number;
  readonly prices: PriceTable;
}

/** US dollars beyond what was seen: one more message for each request in flight, at most the reserved rest. */
export function heldAfterKill(attempt: KilledAttempt): number {
  const { seenUsd, reservedUsd, mostExpensiveUsd, model = '', requests, prices } = attempt;
  const messageUsd = Math.max(mostExpensiveUsd, estimateCost(model, firstMessage, prices));
  if (reservedUsd === undefined) return roundUsd(messageUsd * (Number.isFinite(requests) ? requests : 1));
  // A model of the user's own may cost nothing, and no number of its messages is then all that is reserved.
  const inFlightUsd = Number.isFinite(requests) ? requests * messageUsd : Number.POSITIVE_INFINITY;
  return roundUsd(Math.max(0, Math.min(reservedUsd - seenUsd + messageUsd, inFlightUsd)));
}

/** A figure in it was cut to the most that is read of one. */
export function isImplausibleTotal({ costUsd, models }: ReportedTotals): boolean {
  const isOdd = (usage: ModelUsage) =>
    usage.costUsd >= sanityLimits.usd || Object.values(usage.tokens).some((count) => count >= sanityLimits.count);
  return costUsd >= sanityLimits.usd || Object.values(models).some(isOdd);
}

/** A process whose totals begin with `base`. What claude wrote down and no attempt booked counts for this process. */
export function initialSpending(
  base: ReportedTotals,
  booked: ReportedTotals = base,
  prices: PriceTable = {},
): ClaudeSpending {
  const begun = emptySpending(base);
  // Of what it goes on with claude does not say that it guesses.
  const unpriced = Object.keys(base.models).filter((model) => isUnknownModel(model));
  const own = withoutGuesses(ownPart(base, booked), unpriced, prices);
  // What claude guesses and what was booked for the same are different sums: only tokens tell whether there is more.
  const isMore = unpriced.length === 0 || hasAny(less(tokensOf(base), tokensOf(booked)));
  const unrecordedCostUsd = unpriced.length === 0 ? base.costUsd - booked.costUsd : own.costUsd;
  if (!isMore || unrecordedCostUsd < unbookedMinUsd || isImplausibleTotal(base)) return begun;
  // Names of models may differ, and estimates may be of others.
  const models = Math.abs(own.costUsd - unrecordedCostUsd) < unbookedMinUsd ? own.models : {};
  return summed({ ...begun, settled: { costUsd: unrecordedCostUsd, models, estimated: false } }, noTotals, {});
}

function tokensOf({ models }: ReportedTotals): Tokens {
  return Object.values(models).reduce((sum, { tokens }) => addTokens(sum, tokens), noTokens);
}

/** Nothing spent yet, in a process whose totals begin with `base`. */
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

/** A new conversation begins its totals at nothing again; a total that is no lower goes on with the old ones. */
export function startNewConversation(s: ClaudeSpending, totalUsd: number): ClaudeSpending {
  if (totalUsd > s.base.costUsd + s.claimed.costUsd - sameUsd) return s;
  const { costUsd, models, tokens, estimated } = s;
  return { ...emptySpending(), costUsd, models, tokens, estimated, settled: { costUsd, models, estimated } };
}

/** Sums of money differ in the last digits; less than this is the same amount. */
const sameUsd = 1e-9;
/** US dollars; as much as the sums of a hundred attempts can be off. */
const unbookedMinUsd = 1e-6;

/**
 * claude named a total for this process. Totals only grow, so a lower one is an older one: the result of a turn that
 * waited for a background agent is printed late, with the total of its time beside newer figures per model. Its tokens
 * cover the messages that were seen, as many as they have become more: claude counts an aborted answer as nothing, and
 * the API bills its input, so that one stays in our estimate.
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
  // Without tokens only the dollars can tell whether what was seen is in it.
  if (costUsd < s.costUsd - s.settled.costUsd - sameUsd) return s;
  const none = Object.keys(s.unclaimed).map((model) => [model, { costUsd: 0, tokens: noTokens }]);
  return summed(s, claimed, Object.fromEntries(none));
}

/** Of a model whose price it does not know claude guesses one that is too low for a cap to be trusted with. */
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

/** What a total says of this process: without the base, and with the figures per model where those are newer. */
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
 * A message began, with this usage. claude adds it to its total when the message ends, after this line: an answer to
 * `get_usage` that comes later may or may not hold it, one that came before does not.
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

function summed({ base, settled }: ClaudeSpending, claimed: ReportedTotals, unclaimed: Seen): ClaudeSpending {
  // A map, so that a model called `__proto__` is only an odd name.
  const models = new Map<string, ModelUsage>();
  const add = (model: string, more: ModelUsage): void => {
    const told = models.get(model) ?? { costUsd: 0, tokens: noTokens };
    models.set(model, { costUsd: told.costUsd + more.costUsd, tokens: addTokens(told.tokens, more.tokens) });
  };
  for (const { models: told } of [settled, claimed])
    for (const [model, usage] of Object.entries(told)) add(model, usage);
  const missing = Object.entries(unclaimed).filter(([, { tokens }]) => hasAny(tokens));
  for (const [model, usage] of missing) add(model, usage);
  const estimatedUsd = missing.reduce((sum, [, usage]) => sum + usage.costUsd, 0);
  const costUsd = settled.costUsd + claimed.costUsd + estimatedUsd;
  const tokens = [...models.values()].reduce((sum, usage) => addTokens(sum, usage.tokens), noTokens);
  const estimated = settled.estimated || estimatedUsd > 0;
  return { costUsd, tokens, models: Object.fromEntries(models), estimated, base, settled, claimed, unclaimed };
}

/**
 * The tokens seen of each model less the increase in claude's own count. claude may also count calls that are not in
 * the stream (of a sub-agent, a compaction). Where those use the same model, they hide as many tokens of an answer that
 * was cut off.
 */
function uncovered(seen: Seen, before: Models, after: Models): ReadonlyMap<string, PricedTokens> {
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
  // A gateway may answer by a model name that claude does not know. claude then counts it under a listed name that no
  // answer had.
  const listed = new Set(Object.keys(after).map(plainName));
  const seenNames = new Set([...rest.keys()].map(plainName));
  const unheard = [...listed].filter((name) => !seenNames.has(name));
  for (const model of rest.keys()) if (!listed.has(plainName(model))) for (const name of unheard) cover(model, name);
  return rest;
}

/** Names of models come from outside: one that every object has by nature is in no table. */
function usageIn(models: Models, model: string): ModelUsage {
  const usage = Object.hasOwn(models, model) ? models[model] : undefined;
  return usage ?? { costUsd: 0, tokens: noTokens };
}

/** Without what tells the size of the window or the day of a release: the API says more, or less, than claude does. */
function plainName(model: string): string {
  return model.replace(/\[[^\]]*\]$/, '').replace(/-\d{8}$/, '');
}

/** `a - b`, of each kind at least none. */
function less(a: Tokens, b: Tokens): Tokens {
  return {
    input: Math.max(0, a.input - b.input),
    output: Math.max(0, a.output - b.output),
    cacheRead: Math.max(0, a.cacheRead - b.cacheRead),
    cacheCreation: Math.max(0, a.cacheCreation - b.cacheCreation),
  };
}

/** The output of a message that begins is only a guess of the API; a message whose input is counted is counted. */
function withInput(tokens: Tokens): Tokens {
  return tokens.input + tokens.cacheRead + tokens.cacheCreation > 0 ? tokens : noTokens;
}

/** What is left of tokens that were written for an hour is taken for the dearer part. */
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

function estimate(model: string, tokens: PricedTokens, prices: PriceTable): Seen[string] {
  return { costUsd: estimateCost(model, tokens, prices), tokens };
}
