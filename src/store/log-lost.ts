/** What ends a writer whose log is no longer there: nothing can be recorded any more, and so nothing may be done. */
import type { Failure } from '../core/failure.ts';
import { errorCode } from '../world/system-error.ts';

export class LogLost extends Error {
  readonly failure: Failure;

  constructor(failure: Failure) {
    super(failure.message);
    this.failure = failure;
  }
}

/** Nothing could be recorded at all, whatever it was: the log is lost, or its disk takes nothing. */
export function isLogTrouble(error: unknown): boolean {
  return error instanceof LogLost || errorCode(error) !== '';
}
