/** Converts operating system errors to failures and rethrows all others. */
import type { Failure } from '../core/failure.ts';
import { errorCode, writeFailure } from '../system/system-error.ts';
import type { World } from '../system/world.ts';

/** `write-failed` for a system error at `path`, or the failure of LogLost; throws every other error again. */
export function systemFailure(path: string, error: unknown): Failure {
  if (error instanceof LogLost) return error.failure;
  if (typeof (error as { code?: unknown } | null)?.code !== 'string') throw error;
  return writeFailure(path, error);
}

/** Below this, almost nothing can be written, and an interrupt would lose the work. */
export const fullDiskBytes = 16 * 1000 ** 2;

/** Nothing more can be written below this folder. */
export function isDiskFull({ files }: Pick<World, 'files'>, folder: string): boolean {
  return files.freeBytes(folder) < fullDiskBytes;
}

/** Ends a writer whose log cannot be written any more: it was removed, or its disk is read-only. */
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
