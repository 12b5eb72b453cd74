/** What came of pausing a group. */
import type { GroupId } from '../../core/group.ts';
import type { GroupStatus } from '../../core/status.ts';
import type { PauseRequestMode } from '../../store/requests.ts';

export type PauseMode = PauseRequestMode;

export type PauseOutcome =
  /** Nobody had to do anything: it was in this status before. */
  | { readonly kind: 'unchanged'; readonly status: GroupStatus }
  /** It is not running any more. `had`: who ran it until now; `start` = a run that was about to begin. */
  | { readonly kind: 'settled'; readonly status: GroupStatus; readonly had: 'runner' | 'workers' | 'start' }
  /** Everything is halted where it stood; ISO 8601, when that becomes a pause. */
  | { readonly kind: 'frozen'; readonly until: string }
  /** Nobody is there to wait for the sessions that still run; nothing was done. */
  | { readonly kind: 'runner-gone' };

/** What is said of a group whose run was ended before it began. */
export function endedStartText(id: GroupId): string {
  return `Ended the run of ${id} before it began; nothing was started.`;
}
