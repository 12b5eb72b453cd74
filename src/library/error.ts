/** What could not be done, as an exception: the library's callers expect one where commands print a sentence. */
import { describeFailure, type Failure, type FailureReason, type Result } from '../core/failure.ts';

export class SessionGroupError extends Error {
  override readonly name = 'SessionGroupError';
  /** The code that commands show as well, such as `busy`, `usage` or `not-found`. */
  readonly reason: FailureReason;
  /** What can be done about it; may be empty. */
  readonly next: string;

  constructor(failure: Failure) {
    super(describeFailure(failure));
    this.reason = failure.reason;
    this.next = failure.next;
  }
}

/** The value; throws a SessionGroupError where there is none. */
export function unwrap<T>(result: Result<T>): T {
  if (result.ok) return result.value;
  throw new SessionGroupError(result.failure);
}
