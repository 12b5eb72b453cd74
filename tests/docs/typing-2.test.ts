/** Promises: what a third of the documents shows can be typed, see commands.test.ts. */
import { test } from 'bun:test';
import { typeAll, typedIn } from './reader.ts';

test.each(typedIn(2))('what %s shows can be typed', typeAll, 120_000);
