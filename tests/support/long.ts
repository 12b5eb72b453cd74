/** What `npm run test:long` (which sets TEST_LONG=1) tries beyond `npm test`. */
import { test } from 'bun:test';

/** Whether the long run was asked for: everything is tried more often. */
export const isLongRun = process.env.TEST_LONG === '1';

/** A test of the long run, for what other tests promise too in a cheaper way; skipped and counted otherwise. */
export const longTest = test.if(isLongRun);

/** Every row in a long run, otherwise the first and every `step`th after it. */
export function sampled<T>(rows: readonly T[], step: number): readonly T[] {
  return isLongRun ? rows : rows.filter((_, index) => index % step === 0);
}
