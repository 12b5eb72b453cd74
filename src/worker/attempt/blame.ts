/** What cannot be recorded of one attempt ends that attempt as `internal`, and no other. */
import { usageOf } from '../../claude/stream.ts';
import type { EventBody, GroupEvent } from '../../core/event.ts';
import { noUsage, type SessionId, type Usage } from '../../core/group.ts';
import type { GroupWriter } from '../../store/group-writer.ts';
import { isLogTrouble } from '../../store/log-lost.ts';
import type { Clock } from '../../system/world.ts';
import type { WorkerFact } from '../facts.ts';
import type { HostedAttempt } from '../host.ts';
import { unexpectedEnd, unexpectedFailure } from './outcomes.ts';
import type { Worker } from './worker.ts';

export interface ActiveWorker {
  readonly worker: Worker;
  /** Begin of the attempt, ms since 1970. */
  readonly startedAtMs: number;
}

/** Of this fact nothing was recorded, and its worker has to be ended. */
export interface Blamed {
  readonly fact: WorkerFact;
  readonly error: unknown;
}

export interface RecordedFacts {
  readonly events: GroupEvent[];
  readonly blamed: readonly Blamed[];
}

/**
 * Records `bodies` and what the facts mean, by one fsync where all of it can be recorded. Throws the trouble of a disk
 * or a log, which is nobody's fault.
 */
export function recordFacts(
  writer: GroupWriter,
  bodies: readonly EventBody[],
  facts: readonly WorkerFact[],
  meaning: (fact: WorkerFact) => readonly EventBody[],
): RecordedFacts {
  try {
    return { events: writer.record([...bodies, ...facts.flatMap(meaning)]), blamed: [] };
  } catch (error) {
    if (facts.length === 0 || isLogTrouble(error)) throw error;
  }
  const events = writer.record(bodies);
  const blamed: Blamed[] = [];
  for (const fact of facts) {
    try {
      events.push(...writer.record(meaning(fact)));
    } catch (error) {
      if (isLogTrouble(error)) throw error;
      const end = endInstead(fact, error);
      if (end === null) blamed.push({ fact, error });
      else events.push(...writer.record(meaning(end)));
    }
  }
  return { events, blamed };
}

/** Only the sums: what is odd about an attempt may stand in any text of it. */
function sumsOf({ costUsd, tokens, durationMs, turns }: Usage): Usage {
  return { costUsd, tokens, durationMs, turns, estimated: true, models: {} };
}

/**
 * The end of the attempt of whose `fact` something cannot be recorded; null when its worker has to be ended first. What
 * it has cost stays counted.
 */
function endInstead(fact: WorkerFact, error: unknown): WorkerFact | null {
  const { sessionId, attemptId } = fact;
  if (fact.kind === 'ended') {
    const { usage, progressed } = fact;
    const outcome = unexpectedEnd(error);
    return { kind: 'ended', sessionId, attemptId, outcome, usage: sumsOf(usage), progressed, unread: [] };
  }
  if (fact.kind !== 'judged') return null;
  const verdict = { status: 'failed', failure: unexpectedFailure(error), warnings: [] } as const;
  return { kind: 'judged', sessionId, attemptId, verdict };
}

/** Ends its worker; resolves to the end of the attempt when nothing of it is left. */
export async function endBlamed(
  clock: Clock,
  workers: ReadonlyMap<SessionId, ActiveWorker>,
  hosted: (sessionId: SessionId, attemptId: string) => HostedAttempt,
  { fact, error }: Blamed,
): Promise<WorkerFact> {
  const { sessionId, attemptId } = fact;
  const active = workers.get(sessionId);
  await (active?.worker ?? hosted(sessionId, attemptId)).endNow();
  const durationMs = Math.max(0, Math.round(clock.now() - (active?.startedAtMs ?? clock.now())));
  const usage = active === undefined ? noUsage : sumsOf(usageOf(active.worker.stream, durationMs));
  return { kind: 'ended', sessionId, attemptId, outcome: unexpectedEnd(error), usage, progressed: false, unread: [] };
}
