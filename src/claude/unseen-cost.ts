/**
 * What an attempt cost that its stream does not tell, because it broke off in the middle of a turn, or told figures
 * that cannot be true. claude's own file of the conversation knows how long its answers have become. What was being
 * answered when the machine went down, and what an impossible figure stands for, is written nowhere: for that the most
 * is held that it can have been.
 */
import { addTokens, negativeTokens, noTokens, roundUsd, type Tokens, type Usage } from '../core/group.ts';
import { whoAsks } from './at-work.ts';
import type { KeptMessage } from './conversation.ts';
import { estimateCost } from './pricing.ts';
import { isOddMessage, uncovered } from './spending.ts';
import { type AttemptStream, usageOf } from './stream.ts';

/** How an attempt broke off. */
export interface BrokenOff {
  readonly stream: AttemptStream;
  /** The machine has gone down since its worker was started. */
  readonly machineWentDown: boolean;
  /** The log knows that claude had said who it is, or it ended as one does that has answered. */
  readonly hasBegun: boolean;
  /** ms since 1970. */
  readonly startedAtMs: number;
  /** Its `--max-budget-usd`; absent = no cap. */
  readonly reservedUsd?: number;
  /** What claude has kept of the session's conversations and of these; asked for only when it is needed. */
  readonly kept: (claudeSessionIds: readonly string[]) => readonly KeptMessage[];
  /**
   * Ids of the messages that attempts before it have told of: where a clock was set back, times do not tell which are
   * its own.
   */
  readonly toldBefore: () => ReadonlySet<string>;
  /**
   * Whose last message is missing in the conversation that claude has kept, by the keys of `lastMessages`; the main
   * loop also where nothing at all stands there.
   */
  readonly unwritten: (stream: AttemptStream) => readonly string[];
  /** The sub-agents that were waiting for an answer when claude had ended, by its own files: the ids of their tasks. */
  readonly agentsAsking: (stream: AttemptStream) => readonly string[];
}

/** The instructions and tools that every conversation begins with, and a long answer. */
const firstMessage: Tokens = { input: 0, output: 8_000, cacheRead: 0, cacheCreation: 50_000 };

/** The usage of the attempt with all that; `durationMs` as in `usageOf`. */
export function usageWithUnseen(broken: BrokenOff, durationMs: number): Usage {
  const { stream, hasBegun, machineWentDown, reservedUsd } = broken;
  const { isAtWork } = stream;
  const usage = usageOf(stream, durationMs);
  // The turn was over, and sub-agents were ended by a signal.
  const areAgentsEnded = isAtWork && !stream.inTurn;
  if (stream.isToldAtEnd && !areAgentsEnded) return usage;
  if (!isAtWork && stream.sawInit && stream.unbelieved === undefined) return usage;
  const kept = broken.kept(stream.claudeSessionIds).filter(({ tokens }) => !isOddMessage(tokens));
  // What sub-agents say at last, and whatever they say after a result, is not printed.
  const isOwn = notToldBefore(broken, kept);
  const ofAttempt = kept.filter(({ id }) => stream.spoken.has(id) || isOwn.has(id));
  const agentsAsking = areAgentsEnded ? broken.agentsAsking(stream) : [];
  const answerUsd = (loop: string): number => dearestFor(loop, stream, kept);
  const sumFor = (loops: readonly string[]): number => loops.reduce((sum, loop) => sum + answerUsd(loop), 0);
  if (stream.isToldAtEnd) return withHeldFor(withMessages(usage, untold(usage, ofAttempt)), sumFor(agentsAsking));
  // What it printed is lost: the disk was full or has lost it, or the file was removed. As a rule claude that printed
  // nothing asked nothing; how it ended, what it has kept or wanted to keep, or the log, says otherwise.
  const unwritten = broken.unwritten(stream);
  const isBlank = unwritten.length > 0 && !machineWentDown;
  const isShort = !stream.sawInit && (hasBegun || ofAttempt.length > 0 || isBlank);
  if (!isAtWork && !isShort && stream.unbelieved === undefined) return usage;
  const seen = withKept(usage, ofAttempt);
  const isOdd = stream.unbelieved === 'own';
  // It was told how its answer began, but not how long it has become: claude was killed before it wrote that down. Or
  // not even that: the disk was full, and of the line there is a part; or the answer had only been asked for.
  const asked = [...new Set([...whoAsks(stream), ...agentsAsking, ...unwritten])];
  const isLong = isAtWork && (stream.malformed > 0 || asked.length > 0);
  if (!machineWentDown && !isShort && !isOdd && !isLong) return seen;
  const left = reservedUsd === undefined ? Number.POSITIVE_INFINITY : Math.max(0, reservedUsd - seen.costUsd);
  const first = Math.min(estimateCost(stream.model ?? '', firstMessage, stream.prices), left);
  // Of a file that is gone nothing tells how far it went; where claude's own is there, it does.
  const isTold = !isOdd && (!isShort || ofAttempt.length > 0);
  const isBounded = isTold || reservedUsd === undefined;
  // The cap may be passed by an answer of each that asks: claude looks at it when an answer has come.
  const isKept = dearest(kept) > 0;
  const answersUsd = isKept ? sumFor(asked.length > 0 ? asked : ['']) : first;
  const longerUsd = unwritten.reduce(
    (sum, loop) => sum + Math.max(0, printedUsd(stream, loop) - (isKept ? answerUsd(loop) : first)),
    0,
  );
  return withHeldFor({ ...seen, estimated: true }, isBounded ? answersUsd + longerUsd : left);
}

function withHeldFor(usage: Usage, usd: number): Usage {
  const heldUsd = roundUsd(usd);
  if (heldUsd <= 0) return usage;
  return { ...usage, costUsd: roundUsd(usage.costUsd + heldUsd), estimated: true, heldUsd };
}

/**
 * The newest messages that are missing in claude's totals, by their tokens. An answer that comes to a sub-agent while
 * claude ends is written down, and may be no more counted. What else the same model was asked can hide it.
 */
function untold({ models }: Usage, messages: readonly KeptMessage[]): readonly KeptMessage[] {
  const ofModels = [...Map.groupBy(messages, ({ model }) => model)];
  const seen = ofModels.map(([model, some]) => [model, { costUsd: 0, tokens: sumOf(some) }] as const);
  const missing = new Map<string, Tokens>(uncovered(Object.fromEntries(seen), {}, models));
  return messages
    .toSorted((a, b) => b.atMs - a.atMs)
    .filter(({ model, tokens, usd }) => {
      const rest = addTokens(missing.get(model) ?? noTokens, negativeTokens(tokens));
      const isMissing = usd > 0 && Object.values(rest).every((count) => count >= 0);
      if (isMissing) missing.set(model, rest);
      return isMissing;
    });
}

function sumOf(messages: readonly KeptMessage[]): Tokens {
  return messages.reduce((sum, { tokens }) => addTokens(sum, tokens), noTokens);
}

/**
 * What an answer may cost that is written nowhere: as much as the dearest that the same loop was given, where it is
 * known and has spoken.
 */
function dearestFor(loop: string, { lastMessages }: AttemptStream, kept: readonly KeptMessage[]): number {
  const own = dearest(kept.filter(({ agent }) => agent === loop));
  const ofAgents = loop !== '' && lastMessages.has(loop) ? dearest(kept.filter(({ agent }) => agent !== undefined)) : 0;
  return own || ofAgents || dearest(kept);
}

const dearest = (some: readonly KeptMessage[]): number => some.reduce((most, { usd }) => Math.max(most, usd), 0);

/** At least what the printed part of its last message costs: claude, too, counts so when it is interrupted. */
function printedUsd({ lastMessages, prices }: AttemptStream, loop: string): number {
  const { model = '', chars = 0 } = lastMessages.get(loop) ?? {};
  return estimateCost(model, { ...noTokens, output: Math.ceil(chars / charsPerToken) }, prices);
}

const charsPerToken = 3;

/** The ids of those that were kept since it began, and that no attempt before it has told of. */
function notToldBefore({ startedAtMs, toldBefore }: BrokenOff, kept: readonly KeptMessage[]): ReadonlySet<string> {
  const since = kept.filter(({ atMs }) => atMs >= startedAtMs);
  const told = since.length > 0 ? toldBefore() : new Set();
  return new Set(since.map(({ id }) => id).filter((id) => !told.has(id)));
}

/** At least what these messages cost. */
function withKept(usage: Usage, messages: readonly KeptMessage[]): Usage {
  const kept = withMessages({ ...usage, costUsd: 0, tokens: noTokens, models: {} }, messages);
  return kept.costUsd > usage.costUsd ? kept : usage;
}

function withMessages(usage: Usage, messages: readonly KeptMessage[]): Usage {
  if (messages.length === 0) return usage;
  const models = new Map(Object.entries(usage.models));
  for (const { model, tokens, usd } of messages) {
    const before = models.get(model) ?? { costUsd: 0, tokens: noTokens };
    models.set(model, { costUsd: before.costUsd + usd, tokens: addTokens(before.tokens, tokens) });
  }
  const costUsd = roundUsd(messages.reduce((sum, { usd }) => sum + usd, usage.costUsd));
  const rounded = [...models].map(([model, one]) => [model, { ...one, costUsd: roundUsd(one.costUsd) }]);
  const tokens = addTokens(usage.tokens, sumOf(messages));
  return { ...usage, costUsd, tokens, models: Object.fromEntries(rounded), estimated: true };
}
