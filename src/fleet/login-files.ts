/**
 * Logins that a machine holds by name, each a private file of lines `NAME=value`. An order names one; the login itself
 * never leaves the machine, and no message shows anything of it.
 */
import { join } from 'node:path';
import { fail, ok, type Result } from '../core/failure.ts';
import { plainNamePattern } from '../core/values.ts';
import type { Files } from '../system/world.ts';
import { fleetPaths, readPrivateText } from './fleet-files.ts';

const suffix = '.env';

function loginPath(root: string, name: string): string {
  return join(fleetPaths(root).logins, `${name}${suffix}`);
}

/** The names of the logins that are kept here. */
export function loginNames(files: Files, root: string): string[] {
  const names = files.list(fleetPaths(root).logins).filter((name) => name.endsWith(suffix));
  return names.map((name) => name.slice(0, -suffix.length)).filter((name) => plainNamePattern.test(name));
}

/** Its variables; undefined when there is no such login here. Fails with `usage` when it cannot be used. */
export function readLogin(files: Files, root: string, name: string): Result<Record<string, string> | undefined> {
  // What comes with an order must not name another file.
  if (!plainNamePattern.test(name)) return ok(undefined);
  const path = loginPath(root, name);
  const read = readPrivateText(files, path);
  if (!read.ok || read.value === null) return read.ok ? ok(undefined) : read;
  return parseLogin(read.value, path);
}

/** Blank lines and those that begin with # say nothing; a value goes to the end of its line. */
export function parseLogin(text: string, path: string): Result<Record<string, string>> {
  const variables: Record<string, string> = {};
  for (const [index, line] of text.split(/\r?\n/).entries()) {
    if (line.trim() === '' || line.trimStart().startsWith('#')) continue;
    const parts = /^(?:export )?([A-Za-z_]\w*)=(.*)$/.exec(line);
    if (parts === null || line.includes('\0')) {
      return fail(
        'usage',
        `Line ${index + 1} of ${path} is not NAME=value.`,
        'Correct it; nothing of it is shown here.',
      );
    }
    variables[parts[1] as string] = parts[2] as string;
  }
  const isEmpty = Object.keys(variables).length === 0;
  return isEmpty
    ? fail('usage', `${path} names no variable.`, 'Put in a line such as ANTHROPIC_API_KEY=…')
    : ok(variables);
}

/** What `parseLogin` understands. */
export function loginText(variables: Readonly<Record<string, string>>): string {
  return Object.entries(variables)
    .map(([name, value]) => `${name}=${value}\n`)
    .join('');
}
