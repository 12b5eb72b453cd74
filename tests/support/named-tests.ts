/** Tests that documents name: by a file below the package and the beginning of the test's name. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { NamedTest } from '../../scripts/claude/contract.ts';
import { packageRoot } from './cli.ts';
import { blankComments } from './tidy-source.ts';

/**
 * Whether the file is there and some text in it begins so, outside of comments. Names may stand in tables and lists, so
 * only what cannot be one is left out: what is handed to a method, as what is expected, and the value of a field.
 */
export function isThere({ file, begin }: NamedTest): boolean {
  const path = join(packageRoot, file);
  return existsSync(path) && hasName(blankComments(readFileSync(path, 'utf8')), begin);
}

/** The same of such a source. */
export function hasName(source: string, begin: string): boolean {
  return new RegExp(`(?<!\\.\\w+\\(\\s*|\\w:\\s+)['"\`]${RegExp.escape(begin)}`).test(source);
}
