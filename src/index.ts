/** The library: what a program of one's own imports from `claude-code-agent` (docs/library.md). */
export type { GroupEvent } from './core/event.ts';
export type { SessionConfig } from './core/group.ts';
export type { GroupProgress, SessionProgress } from './core/progress.ts';
export type { GroupStatus, SessionStatus } from './core/status.ts';
export { type GroupSurroundings, SessionGroup } from './library/session-group.ts';
export {
  type RunnerOptions,
  type RunSettings,
  type SessionGroupRun,
  SessionGroupRunner,
} from './library/session-group-runner.ts';
export type {
  BudgetConfig,
  ConcurrencyConfig,
  GroupResult,
  GroupSession,
  NewGroupSession,
  NewSessionGroup,
  PauseResult,
  SessionGroupConfig,
} from './library/types.ts';
export { SessionGroupError } from './library/types.ts';
