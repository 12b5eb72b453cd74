/** What `npm run test:long` (which sets TEST_LONG=1) tries beyond `npm test`. */
import { test } from 'bun:test';

/** Whether the long run was asked for: everything is tried more often. */
export const isLongRun = process.env.TEST_LONG === '1';

/** Ends the name of a test that only waits for a long run; scripts/test.sh looks for it. */
const waits = '(in the long run)';

const inLongRun = test.if(isLongRun);

function waiting(name: string, ...rest: [() => Promise<void>, number?]): void {
  inLongRun(`${name} ${waits}`, ...rest);
}

function waitingEach(rows: readonly unknown[]) {
  return (name: string, ...rest: [() => void, number?]): void => {
    inLongRun.each([...rows])(`${name} ${waits}`, ...rest);
  };
}

/**
 * A test of the long run, for what other tests promise too in a cheaper way; skipped and counted otherwise, and in a
 * long run where it `can` not run.
 */
export function longTestIf(can: boolean): typeof test {
  if (isLongRun) return test.if(can) as typeof test;
  return Object.assign(waiting, { each: waitingEach }) as unknown as typeof test;
}

export const longTest = longTestIf(true);

/** Every row in a long run, otherwise the first and every `step`th after it. */
export function sampled<T>(rows: readonly T[], step: number): readonly T[] {
  return isLongRun ? rows : rows.filter((_, index) => index % step === 0);
}
