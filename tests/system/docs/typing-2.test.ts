/** Promises: what a third of the documents shows can be typed, see commands.test.ts. */
import { test } from 'bun:test';
import { typeAll, typedIn } from '../../support/docs/reader.ts';

test.each(typedIn(2))('what %s shows can be typed', (name) => typeAll(name), 120_000);
