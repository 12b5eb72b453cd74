/**
 * The cost of an attempt whose process is gone. claude's final totals are exact. Without them, the cost is the larger
 * of the last total and the messages in claude's files, and money is held for requests in flight.
 */
import { defined } from '../core/defined.ts';
import { roundUsd, type Usage } from '../core/group.ts';

import { type KeptMessage, modelsIn } from './conversation.ts';
import { heldAfterKill, tokensOf } from './spending.ts';
import { type AttemptStream, runningAgents, usageOf } from './stream.ts';

export interface EndedAttempt {
  readonly stream: AttemptStream;
  /** The log, or the exit code, shows that claude had started to work. */
  readonly hasBegun: boolean;
  /** ms since 1970. */
  readonly startedAtMs: number;
  /** Its `--max-budget-usd`; absent = no cap. */
  readonly reservedUsd?: number;
  /** Messages in the files of the session's conversations and of these; read only when needed. */
  readonly kept: (claudeSessionIds: readonly string[]) => readonly KeptMessage[];
  /** The conversation files exist but are empty, as on a full disk. */
  readonly isBlank: (stream: AttemptStream) => boolean;
}

export function finalUsage(attempt: EndedAttempt, durationMs: number): Usage {
  const { stream, startedAtMs, reservedUsd } = attempt;
  const { isAtWork, sawInit, model, prices } = stream;
  const usage = usageOf(stream, durationMs);
  const isCounted = sawInit && !isAtWork;
  if (isCounted || (stream.hasFinalTotals && stream.openTasks.size === 0)) return usage;
  const kept = attempt.kept(stream.claudeSessionIds);
  const own = kept.filter(({ id, atMs }) => stream.spoken.has(id) || atMs >= startedAtMs);
  // The output is lost if the disk was full or the file was removed.
  const isOutputLost = !sawInit && (attempt.hasBegun || own.length > 0 || attempt.isBlank(stream));
  if (!isAtWork && !isOutputLost) return usage;
  const seen = withKept(usage, own);
  if (stream.hasFinalTotals) return seen;
  const isUnknown = isOutputLost && own.length === 0;
  const heldUsd = heldAfterKill({
    seenUsd: seen.costUsd,
    mostExpensiveUsd: kept.reduce((most, { usd }) => Math.max(most, usd), 0),
    ...defined({ reservedUsd, model }),
    requests: isUnknown ? Number.POSITIVE_INFINITY : 1 + runningAgents(stream),
    prices,
  });
  return withHeldUsd(seen, heldUsd);
}

export function withHeldUsd(usage: Usage, heldUsd: number): Usage {
  if (heldUsd <= 0) return usage;
  return { ...usage, costUsd: roundUsd(usage.costUsd + heldUsd), estimated: true, heldUsd };
}

/** The larger of the reported usage and the stored messages. */
function withKept(usage: Usage, messages: readonly KeptMessage[]): Usage {
  const costUsd = roundUsd(messages.reduce((sum, { usd }) => sum + usd, 0));
  if (costUsd <= usage.costUsd) return usage;
  const models = modelsIn(messages);
  return { ...usage, costUsd, tokens: tokensOf(models), models, estimated: true };
}
