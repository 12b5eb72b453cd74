/** Ends a writer whose log takes nothing any more: the log was removed, or its disk is read-only. */
import type { Failure } from '../core/failure.ts';
import { errorCode } from '../system/system-error.ts';

export class LogLost extends Error {
  readonly failure: Failure;

  constructor(failure: Failure) {
    super(failure.message);
    this.failure = failure;
  }
}

/** Nothing could be recorded at all, whatever it was: the log is lost, or its disk takes nothing. */
export function isLogFailure(error: unknown): boolean {
  return error instanceof LogLost || errorCode(error) !== '';
}
