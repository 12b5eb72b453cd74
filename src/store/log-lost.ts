/** What ends a writer whose log is no longer there: nothing can be recorded any more, and so nothing may be done. */
import type { Failure } from '../core/failure.ts';
import { errorCode } from '../system/system-error.ts';
import type { World } from '../system/world.ts';
import { writeFailure } from '../system/write-failure.ts';

export class LogLost extends Error {
  readonly failure: Failure;

  constructor(failure: Failure) {
    super(failure.message);
    this.failure = failure;
  }
}

/** What a disk says that takes nothing any more: it has become read-only after an error, or does not answer. */
const refusals: ReadonlySet<string> = new Set(['EROFS', 'EIO']);

/** Why nothing more could be written at `path`; null when it could, also where nobody can tell just now. */
export function refusalAt({ files }: Pick<World, 'files'>, path: string): LogLost | null {
  try {
    files.openAppend(path).close();
    return null;
  } catch (error) {
    return refusals.has(errorCode(error)) ? new LogLost(writeFailure(path, error)) : null;
  }
}

/** Nothing could be recorded at all, whatever it was: the log is lost, or its disk takes nothing. */
export function isLogTrouble(error: unknown): boolean {
  return error instanceof LogLost || errorCode(error) !== '';
}
