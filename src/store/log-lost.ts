/** What ends a writer whose log is no longer there: nothing can be recorded any more, and so nothing may be done. */
import type { Failure } from '../core/failure.ts';

export class LogLost extends Error {
  readonly failure: Failure;

  constructor(failure: Failure) {
    super(failure.message);
    this.failure = failure;
  }
}
