/** Promises: what the README and a third of the documents show can be typed, see commands.test.ts. */
import { test } from 'bun:test';
import { typeAll, typedIn } from '../../support/docs/reader.ts';

test.each(typedIn(1))('what %s shows can be typed', (name) => typeAll(name), 120_000);
