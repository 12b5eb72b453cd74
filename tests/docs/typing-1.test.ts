/** Promises: what the README and a third of the other documents show can be typed, see commands.test.ts. */
import { test } from 'bun:test';
import { longTest } from '../support/long.ts';
import { typeAll, typedIn } from './reader.ts';

const first = 'README.md';

test('what the first quarter of README.md shows can be typed', () => typeAll(first, 0.25), 120_000);

longTest('what README.md shows can be typed', () => typeAll(first), 120_000);

longTest.each(typedIn(1).filter((name) => name !== first))(
  'what %s shows can be typed',
  (name) => typeAll(name),
  120_000,
);
