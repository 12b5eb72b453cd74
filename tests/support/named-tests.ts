/** Tests that documents name: by a file below the package and the beginning of the test's name. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { NamedTest } from '../../scripts/claude/contract.ts';
import { checkoutRoot } from './cli.ts';
import { blankComments } from './tidy-source.ts';

/**
 * Whether the file exists and one of its strings begins so, outside comments. Names may be in tables and lists, so only
 * impossible positions are excluded: method arguments, expected values and field values.
 */
export function isThere({ file, begin }: NamedTest): boolean {
  const path = join(checkoutRoot, file);
  return existsSync(path) && hasName(blankComments(readFileSync(path, 'utf8')), begin);
}

/** The same for a source text. */
export function hasName(source: string, begin: string): boolean {
  return new RegExp(`(?<!\\.\\w+\\(\\s*|\\w:\\s+)['"\`]${RegExp.escape(begin)}`).test(source);
}
