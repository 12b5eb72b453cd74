/** Advice for whoever hands work over; git is run for others as well, to whom other things are open. */
import type { Result } from '../core/failure.ts';

/** The session has worked already, so where it works is no choice any more. */
const isolation = /, or work in the (?:checkout|folder) itself with --isolate none/g;

/** The same result; a failure has only such next steps as help when work is handed over. */
export function whenMerging<T>(result: Result<T>): Result<T> {
  if (result.ok) return result;
  const { reason, message, next } = result.failure;
  const fit = (text: string): string => text.replace(isolation, ', then try again');
  return { ok: false, failure: { reason, message: fit(message), next: fit(next) } };
}
