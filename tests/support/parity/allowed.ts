/** The list of allowed differences: the tables in docs/parity.md, whose first column is what the test sees. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

export interface Allowed {
  /** The heading above its table. */
  readonly where: string;
  /** As in `differences`, with `*` for any text. */
  readonly patterns: readonly string[];
  readonly reason: string;
  readonly told: string;
}

export function allowedDifferences(packageRoot: string): Allowed[] {
  const sections = readFileSync(join(packageRoot, 'docs/parity.md'), 'utf8').split(/^### /m).slice(1);
  return sections.flatMap((section) => {
    const [where = '', ...lines] = section.split('\n');
    return lines.filter((line) => line.startsWith('| `')).map((line) => rowOf(where, line));
  });
}

function rowOf(where: string, line: string): Allowed {
  const [seen = '', reason = '', told = ''] = line
    .split('|')
    .slice(1)
    .map((cell) => cell.trim());
  return { where, reason, told, patterns: [...seen.matchAll(/`([^`]+)`/g)].map(([, pattern = '']) => pattern) };
}

export function fits(pattern: string, difference: string): boolean {
  const source = pattern.split('*').map(RegExp.escape).join('.*');
  return new RegExp(`^${source}$`, 's').test(difference);
}
