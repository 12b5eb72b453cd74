/**
 * Ends at once all that runs of a group whose log is gone, or takes nothing any more: nobody could say afterwards what
 * became of it.
 */
import type { SessionId } from '../core/group.ts';
import type { GroupState } from '../core/state.ts';
import type { GroupWriter } from '../store/group-writer.ts';
import { LogLost } from '../store/log-lost.ts';
import type { Worker } from '../worker/attempt/worker.ts';
import type { HostedAttempt } from '../worker/host.ts';
import { runningAttempt } from './decision-events.ts';

/** Throws LogLost when nothing can be recorded any more, also when there is nothing to record just now. */
export function assertLog({ lost }: GroupWriter): void {
  if (lost !== null) throw lost;
}

/**
 * Resolves when no process of a running attempt is left, to what is to be said of it. The workers report nothing any
 * more.
 */
export async function endWorkers(
  state: GroupState,
  workers: ReadonlyMap<SessionId, { readonly worker: Worker }>,
  hosted: (sessionId: SessionId, attemptId: string) => HostedAttempt,
  { failure }: LogLost,
): Promise<LogLost> {
  const endings = [...state.running].map((sessionId) => {
    const ended = workers.get(sessionId)?.worker ?? hosted(sessionId, runningAttempt(state, sessionId).id);
    return ended.endNow();
  });
  const isAllGone = (await Promise.all(endings)).every(Boolean);
  const rest = isAllGone ? 'Its workers were ended.' : 'Some of its workers could not be ended.';
  return new LogLost({ ...failure, message: `${failure.message} ${rest}` });
}
