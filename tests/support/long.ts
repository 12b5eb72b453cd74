/** More cases of the same tests: `TEST_LONG=1 npm run test:system`. */

/** Whether the long run was requested. */
export const isLongRun = process.env.TEST_LONG === '1';

/** Every row in a long run, otherwise the first and every `step`th after it. */
export function sampled<T>(rows: readonly T[], step: number): readonly T[] {
  return isLongRun ? rows : rows.filter((_, index) => index % step === 0);
}
