/** What an attempt's place of work is made from, and what it is. */
import type { Loss } from '../../claude/launch/resume-prompt.ts';
import { fail } from '../../core/failure.ts';
import type { Workspace } from '../../core/group.ts';
import type { Attempt, SessionRecord } from '../../core/session-state.ts';
import type { GroupState } from '../../core/state.ts';
import type { SessionPaths } from '../../store/paths.ts';

export interface WorkplaceInput {
  readonly state: GroupState;
  readonly record: SessionRecord;
  readonly attempt: Attempt;
  readonly paths: SessionPaths;
  readonly env: Readonly<Record<string, string>>;
  /** Told as soon as the worktree exists, also when its set-up fails afterwards. */
  readonly isolated: (workspace: Workspace, notes: readonly string[]) => void;
  readonly isElsewhere?: boolean;
  /** Takes what ends early what is being prepared now. */
  readonly onStop: (stop: () => void) => void;
}

export interface Workplace {
  readonly folder: string;
  /** The folder was gone and was made again, and claude does not know that. */
  readonly loss?: Loss;
}

/** Read by nobody: whoever stops a preparation knows why. */
export const stoppedWaiting = fail(
  'busy',
  'The session was stopped while a command of it waited for its turn.',
  'Resume it.',
);
