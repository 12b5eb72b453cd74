/** Tests that documents name: by a file below the package and the beginning of the test's name. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { NamedTest } from '../../scripts/claude/contract.ts';
import { packageRoot } from './cli.ts';
import { blankComments } from './tidy-source.ts';

/** Whether the file is there and some text in it, outside of comments, begins so. */
export function isThere({ file, begin }: NamedTest): boolean {
  const path = join(packageRoot, file);
  if (!existsSync(path)) return false;
  const source = blankComments(readFileSync(path, 'utf8'));
  return ["'", '"', '`'].some((quote) => source.includes(quote + begin));
}
