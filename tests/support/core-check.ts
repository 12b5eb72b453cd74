/**
 * fast-check with one setting for all: the same seed every time, so that a run that was green stays green.
 * TEST_SEED=N tries others; a failure prints the seed and the smallest example.
 */

import fc from 'fast-check';
import { isLongRun } from './long.ts';

fc.configureGlobal({
  seed: Number(process.env.TEST_SEED ?? 20_260_102),
  numRuns: isLongRun ? 5000 : 300,
});

export { fc };
