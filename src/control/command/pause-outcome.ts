/** What came of pausing a group. */
import type { GroupStatus } from '../../core/status.ts';
import type { PauseRequestMode } from '../../store/requests.ts';

export type PauseMode = PauseRequestMode;

export type PauseOutcome =
  /** Nobody had to do anything: it was in this status before. */
  | { readonly kind: 'unchanged'; readonly status: GroupStatus }
  /** It is not running any more. `had`: who ran it until now. */
  | { readonly kind: 'settled'; readonly status: GroupStatus; readonly had: 'runner' | 'workers' }
  /** Everything is halted where it stood; ISO 8601, when that becomes a pause. */
  | { readonly kind: 'frozen'; readonly until: string }
  /** Nobody is there to wait for the sessions that still run; nothing was done. */
  | { readonly kind: 'runner-gone' };
