/** view/: turns state and events into output. A reporter receives events and the changes between them. */
import type { GroupEvent } from '../core/event.ts';
import type { SessionId } from '../core/group.ts';
import type { Verdicts } from '../core/plan/decision.ts';
import type { LiveSession } from '../core/progress.ts';
import { elapsedMs, type GroupState } from '../core/state.ts';
import { formatDuration, formatMoney, plural } from './format.ts';

export type LiveView = ReadonlyMap<SessionId, LiveSession>;

export interface Reporter {
  /** Contract: quick, must not throw. `state` already contains the event. */
  event(event: GroupEvent, state: GroupState, live: LiveView): void;
  /** A running session changed without an event. May be called often. */
  progress(sessionId: SessionId, state: GroupState, live: LiveView): void;
  /** The reason for not running changed for these sessions; delayed in large groups. */
  resting?(sessionIds: readonly SessionId[], state: GroupState, verdicts: Verdicts): void;
  /** Nothing can start now; called once per reason. `message` is a full sentence. */
  waiting(reason: string, message: string, state: GroupState): void;
  /** A warning that is not an event. A full sentence. */
  warning?(message: string, state: GroupState): void;
  /** Called once, after the last event. `atMs`: ms since 1970. */
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
      const done = `${counts.completed} of ${plural(sessions.size, 'session')} completed`;
      const money = formatMoney(usage.costUsd, usage.estimated);
      const status = state.reason === 'deleted' ? 'deleted' : state.status;
      write(`${state.group.id} ${status}: ${done}, ${money}, ${formatDuration(elapsedMs(state, atMs))}\n`);
    },
  };
}
