/** For `--output quiet`: nothing but one closing line. */
import type { GroupState } from '../core/state.ts';
import { formatDuration, formatMoney, plural } from './format.ts';
import type { LiveView, Reporter } from './reporter.ts';

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
      write(`${state.group.id} ${state.status}: ${done}, ${money}, ${formatDuration(elapsed)}\n`);
    },
  };
}
