/** Promises: what the README and a third of the documents show can be typed, see commands.test.ts. */
import { longTest } from '../support/long.ts';
import { typeAll, typedIn } from './reader.ts';

longTest.each(typedIn(1))('what %s shows can be typed', (name) => typeAll(name), 120_000);
