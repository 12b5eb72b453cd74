/** The library: what a program of one's own imports from `claude-code-agent` (docs/library.md). */
export type { GroupEvent } from './core/event.ts';
export type { SessionConfig } from './core/group.ts';
export type { GroupProgress, SessionProgress } from './core/progress.ts';
export type { GroupStatus, SessionStatus } from './core/status.ts';
export type {
  BudgetConfig,
  ConcurrencyConfig,
  GroupResult,
  GroupSession,
  NewGroupSession,
  NewSessionGroup,
  PauseResult,
  RetryOptions,
  SessionGroupConfig,
} from './library/session-group.ts';
export {
  type GroupSurroundings,
  type RunnerOptions,
  type RunSettings,
  SessionGroup,
  SessionGroupError,
  type SessionGroupRun,
  SessionGroupRunner,
} from './library/session-group.ts';
