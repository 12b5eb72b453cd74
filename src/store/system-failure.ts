/** Errors of the operating system as failures; bugs of our own go on as exceptions. */
import type { Failure } from '../core/failure.ts';
import { writeFailure } from '../system/write-failure.ts';
import { LogLost } from './log-lost.ts';

/** `write-failed` for a system error at `path`, or the failure of LogLost; throws every other error again. */
export function systemFailure(path: string, error: unknown): Failure {
  if (error instanceof LogLost) return error.failure;
  if (typeof (error as { code?: unknown } | null)?.code !== 'string') throw error;
  return writeFailure(path, error);
}
