/**
 * Named logins of a host, each a private file of lines `NAME=value`. `host join` chooses one; it never leaves the host,
 * and no message shows any of it.
 */

import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { workerEnvironment } from '../claude/launch/environment.ts';
import { chooseLogin, loginIdentity } from '../claude/launch/login.ts';
import { loginOf } from '../claude/launch/user-claude.ts';
import { loginVariables, managedVariables, proxyVariables, restatedVariables } from '../claude/launch/variables.ts';
import { advise } from '../core/advice.ts';
import { defined } from '../core/defined.ts';
import { errorText, fail, ok, type Result } from '../core/failure.ts';
import { quoted } from '../core/id.ts';
import { plainNamePattern } from '../core/setting-values.ts';
import type { SessionPaths } from '../store/paths.ts';
import type { Files } from '../system/world.ts';
import { fleetPaths, readPrivateText } from './fleet-files.ts';
import type { Order } from './wire.ts';

const suffix = '.env';

function loginPath(root: string, name: string): string {
  return join(fleetPaths(root).logins, `${name}${suffix}`);
}

export function loginNames(files: Files, root: string): string[] {
  const names = files.list(fleetPaths(root).logins).filter((name) => name.endsWith(suffix));
  return names.map((name) => name.slice(0, -suffix.length)).filter((name) => plainNamePattern.test(name));
}

/** Its variables; undefined without such a login here. Fails with `usage` when it cannot be used. */
export function readLogin(files: Files, root: string, name: string): Result<Record<string, string> | undefined> {
  if (!plainNamePattern.test(name)) return ok(undefined);
  const path = loginPath(root, name);
  const read = readPrivateText(files, path);
  if (!read.ok || read.value === null) return read.ok ? ok(undefined) : read;
  return parseLogin(read.value, path);
}

/** Blank lines and those that begin with # are ignored; a value extends to the end of its line. */
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

export function loginText(variables: Readonly<Record<string, string>>): string {
  return Object.entries(variables)
    .map(([name, value]) => `${name}=${value}\n`)
    .join('');
}

// The environment of a session from another host: this host's, with its login.

type Environment = Readonly<Record<string, string | undefined>>;

const ofMachine: ReadonlySet<string> = new Set([
  ...proxyVariables,
  ...['ALL_PROXY', 'all_proxy', 'NODE_EXTRA_CA_CERTS', 'CLAUDE_CODE_CERT_STORE'],
]);

/** Decide who pays: a session with a named login must not inherit these from the agent. */
const ofLogins: ReadonlySet<string> = new Set(
  [
    ...loginVariables,
    ...managedVariables,
    ...restatedVariables,
    'CLAUDE_CONFIG_DIR',
    'CLAUDE_SECURESTORAGE_CONFIG_DIR',
  ].filter((name) => !ofMachine.has(name)),
);

export interface EnvironmentInput {
  readonly root: string;
  readonly agentEnv: Environment;
  /** Absent = the agent's own. */
  readonly ownLogin: string | undefined;
  readonly order: Order;
  readonly paths: SessionPaths;
  readonly programs: string;
}

/** Fails with `not-logged-in` when this host has no such login, or one that other users can read. */
export function environmentFor(files: Files, input: EnvironmentInput): Result<Readonly<Record<string, string>>> {
  const { root, agentEnv, ownLogin, order, paths, programs } = input;
  const caller = environmentWith(files, root, agentEnv, ownLogin);
  if (!caller.ok) return caller;
  const env = workerEnvironment({
    caller: caller.value,
    attemptId: order.attemptId,
    configDir: paths.config,
    tmpDir: paths.tmp,
    login: chooseLogin(caller.value),
    ...(order.untrusted ? { untrusted: true } : {}),
    ...defined({ memoryBytes: order.memoryBytes }),
  });
  return ok({ ...env, PATH: `${env.PATH ?? '/usr/bin:/bin'}:${programs}` });
}

/** The agent's environment, with the named login instead of its own. Fails as `environmentFor`. */
export function environmentWith(
  files: Files,
  root: string,
  env: Environment,
  name: string | undefined,
): Result<Environment> {
  if (name === undefined) return ok(defined(loginOf({ files }, env).caller) as Environment);
  const login = readLogin(files, root, name);
  if (!login.ok) return { ok: false, failure: { ...login.failure, reason: 'not-logged-in' } };
  if (login.value === undefined) {
    const next = advise('Name one that it has', ['host', 'list']);
    return fail('not-logged-in', `The host has no login ${quoted(name)}.`, next);
  }
  return ok({ ...Object.fromEntries(Object.entries(env).filter(([key]) => !ofLogins.has(key))), ...login.value });
}

/** Identifies the login by everything that can be changed to make it work; `salt` hides the content. */
export function loginKey(
  files: Files,
  { root, agentEnv, ownLogin }: Pick<EnvironmentInput, 'root' | 'agentEnv' | 'ownLogin'>,
  salt: string,
): string {
  const caller = environmentWith(files, root, agentEnv, ownLogin);
  const what = caller.ok ? [loginIdentity(caller.value), ownStore(files, caller.value)] : [caller.failure.message];
  return createHash('sha256')
    .update([salt, ...what].join('\0'))
    .digest('hex')
    .slice(0, 32);
}

function ownStore(files: Files, caller: Environment): string {
  const { storeDir } = chooseLogin(caller);
  if (storeDir === undefined) return '';
  const folder = storeDir === '' ? join(caller.HOME ?? '/', '.claude') : storeDir;
  try {
    return files.readText(join(folder, '.credentials.json')) ?? '';
  } catch (error) {
    // The host joins anyway: the first session shows whether claude can log in.
    return errorText(error);
  }
}
