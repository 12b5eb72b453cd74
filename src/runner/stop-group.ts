/** Stops the workers of a group that has no runner. */
import type { StopReason } from '../core/event.ts';
import { noUsage, type SessionId } from '../core/group.ts';
import type { Attempt, SessionRecord } from '../core/session-state.ts';
import type { GroupState } from '../core/state.ts';
import type { GroupWriter } from '../store/group-writer.ts';
import { sessionPaths } from '../store/paths.ts';
import type { World } from '../system/world.ts';
import { Worker } from '../worker/attempt/worker.ts';
import { workerOptions } from '../worker/attempt/worker-options.ts';
import type { Fact } from '../worker/facts.ts';
import { LocalAttempt } from '../worker/local-attempt.ts';
import { reap } from '../worker/reap.ts';
import { eventsOf } from './fact-events.ts';

/**
 * Stops every worker of the group on this machine and logs how each attempt ended. Throws when an end cannot be logged.
 * The caller holds the group's lock.
 */
export async function stopGroup(world: World, writer: GroupWriter, reason: StopReason): Promise<void> {
  const here = [...writer.state.running].filter((sessionId) => machineOf(writer.state, sessionId) === null);
  await Promise.all(here.map((sessionId) => stopSession(world, writer, sessionId, reason)));
}

/** The other host that runs the session; null = none. */
export function machineOf({ sessions }: GroupState, sessionId: SessionId): string | null {
  const session = sessions.get(sessionId)?.state;
  return session?.status === 'running' ? (session.attempt.place?.host ?? null) : null;
}

export async function stopSession(
  world: World,
  writer: GroupWriter,
  sessionId: SessionId,
  reason: StopReason,
): Promise<void> {
  const record = writer.state.sessions.get(sessionId);
  if (record?.state.status !== 'running') return;
  const { attempt } = record.state;
  writer.record([{ type: 'session_stopping', sessionId, attemptId: attempt.id, reason }]);
  if (attempt.accepting === undefined) await stopWorker(world, writer, record, attempt, reason);
  // The worker may have just finished. The next run does the acceptance.
  if (record.state.status === 'running') await stopAcceptance(world, writer, sessionId, record.state.attempt, reason);
}

async function stopAcceptance(
  world: World,
  writer: GroupWriter,
  sessionId: SessionId,
  { id: attemptId, accepting: usage = noUsage }: Attempt,
  reason: StopReason,
): Promise<void> {
  await reap(world, attemptId);
  const message = 'Its work is done, but acceptance was interrupted. Resuming runs the acceptance again.';
  writer.record([{ type: 'session_paused', sessionId, attemptId, reason, message, usage }]);
}

async function stopWorker(
  world: World,
  writer: GroupWriter,
  record: SessionRecord,
  attempt: Attempt,
  reason: StopReason,
): Promise<void> {
  const sessionId = record.definition.id;
  const paths = sessionPaths(writer.paths, sessionId);
  const hosted = new LocalAttempt(world, { sessionId, attemptId: attempt.id, paths });
  const found = await hosted.takeOver(attempt);
  if (found.do === 'restart') {
    const message = 'Stopped before claude began to work.';
    writer.record([{ type: 'session_paused', sessionId, attemptId: attempt.id, reason, message, usage: noUsage }]);
    return;
  }
  await new Promise<void>((resolve, reject) => {
    const emit = (fact: Fact) => {
      if (!('sessionId' in fact) || fact.kind !== 'ended') return;
      // An error thrown in this callback would be lost.
      try {
        const context = { adopted: new Map(), nowMs: world.clock.now(), jitter: 0.5, isUnserved: () => false };
        writer.record(eventsOf(writer.state, fact, context));
        resolve();
      } catch (error) {
        reject(error);
      }
    };
    const options = workerOptions(world, writer.paths, writer.state, record, attempt);
    const worker = new Worker(world, hosted, { ...options, emit, expectHook: false });
    if (found.do === 'adopt') {
      worker.adopt(found.process, reason, found.signalled);
      // A process frozen by an earlier runner could not receive the stop.
      worker.halt(false);
    } else void worker.finalizeDead(reason, found.signalled);
  });
}
