/**
 * fast-check with the same cases in every `npm test`, so that a green run stays green. The long run draws new ones each
 * time, and TEST_SEED=N others; a failure prints its seed and the smallest example.
 */
import fc from 'fast-check';
import { testSeed } from './draw.ts';
import { isLongRun } from './long.ts';

const isDrawn = isLongRun && process.env.TEST_SEED === undefined;
fc.configureGlobal(isDrawn ? {} : { seed: testSeed });

export { fc };
