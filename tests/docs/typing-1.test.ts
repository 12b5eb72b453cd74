/** Promises: what the README and a third of the other documents show can be typed, see commands.test.ts. */
import { test } from 'bun:test';
import { longTest } from '../support/long.ts';
import { typeAll, typedIn } from './reader.ts';

const first = 'README.md';
const isFirst = (name: string): boolean => name === first;

test.each(typedIn(1).filter(isFirst))('what %s shows can be typed', typeAll, 120_000);

longTest.each(typedIn(1).filter((name) => !isFirst(name)))('what %s shows can be typed', typeAll, 120_000);
