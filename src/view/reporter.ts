/** view/: events to people. A reporter is told of events and of changes between them, and decides nothing. */
import type { GroupEvent } from '../core/event.ts';
import type { SessionId } from '../core/group.ts';
import type { Verdicts } from '../core/plan/decision.ts';
import type { FleetStanding, LiveSession } from '../core/progress.ts';
import type { GroupState } from '../core/state.ts';
import { formatDuration, formatMoney, plural } from './format.ts';

export type LiveView = ReadonlyMap<SessionId, LiveSession>;

export interface Reporter {
  /** Contract: quick, must not throw. `state` already contains the event. */
  event(event: GroupEvent, state: GroupState, live: LiveView): void;
  /** Something of a running session changed that is not an event; may be called often, may be ignored. */
  progress(sessionId: SessionId, state: GroupState, live: LiveView): void;
  /** These sessions do not run for another reason than was told last; in large groups only after a while. */
  resting?(sessionIds: readonly SessionId[], state: GroupState, verdicts: Verdicts): void;
  /** Nothing can start for now; told once for each reason. `message` is a full sentence. */
  waiting(reason: string, message: string, state: GroupState): void;
  /** The machines of the fleet stand otherwise than was told last; undefined = there is nothing to be told any more. */
  machines?(standing: FleetStanding | undefined, state: GroupState): void;
  /** Nothing that happened, but worth knowing: some of it will not be done as things are. A full sentence. */
  warning?(message: string, state: GroupState): void;
  /** Once, after the last event. `atMs` is ms since 1970. */
  summarize(state: GroupState, live: LiveView, atMs: number): void;
}

export function createQuietReporter(write: (text: string) => void): Reporter {
  const ignore = (): void => {};
  return {
    event: ignore,
    progress: ignore,
    waiting: ignore,
    summarize(state: GroupState, _live: LiveView, atMs: number) {
      const { counts, sessions, usage } = state;
      const elapsed = state.elapsedBeforeMs + (state.runStartedAt ? atMs - Date.parse(state.runStartedAt) : 0);
      const done = `${counts.completed} of ${plural(sessions.size, 'session')} completed`;
      const money = formatMoney(usage.costUsd, usage.estimated);
      const status = state.reason === 'deleted' ? 'deleted' : state.status;
      write(`${state.group.id} ${status}: ${done}, ${money}, ${formatDuration(elapsed)}\n`);
    },
  };
}
