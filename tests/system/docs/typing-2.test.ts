/** A third of the documents: every command that they show runs and succeeds. See commands.test.ts. */
import { test } from 'bun:test';
import { typeAll, typedIn } from '../../support/docs/reader.ts';

test.each(typedIn(2))('docs: the commands of %s run and succeed', (name) => typeAll(name), 120_000);
