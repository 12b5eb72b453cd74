/** What could not be done, as an exception: the library's callers expect one where commands print a sentence. */
import { adviceText, type CommandLine } from '../core/advice.ts';
import type { Failure, FailureReason, Result } from '../core/failure.ts';

export class SessionGroupError extends Error {
  override readonly name = 'SessionGroupError';
  /** The code that commands show as well, such as `busy`, `usage` or `not-found`. */
  readonly reason: FailureReason;
  /** What can be done about it; may be empty. */
  readonly next: string;
  /** The commands among it: their words, without the name of the program. */
  readonly commands: readonly CommandLine[];

  constructor(failure: Failure) {
    super(failure.message);
    this.reason = failure.reason;
    this.next = adviceText(failure.next);
    this.commands = failure.next.commands;
  }
}

/** The value; throws a SessionGroupError where there is none. */
export function unwrap<T>(result: Result<T>): T {
  if (result.ok) return result.value;
  throw new SessionGroupError(result.failure);
}
