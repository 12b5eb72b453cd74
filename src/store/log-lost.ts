/** Ends a writer whose log cannot be written any more: it was removed, or its disk is read-only. */
import type { Failure } from '../core/failure.ts';
import { errorCode } from '../system/system-error.ts';

export class LogLost extends Error {
  readonly failure: Failure;

  constructor(failure: Failure) {
    super(failure.message);
    this.failure = failure;
  }
}

/** Nothing could be recorded: the log is lost, or its disk is full. */
export function isLogFailure(error: unknown): boolean {
  return error instanceof LogLost || errorCode(error) !== '';
}
