/**
 * Which login a worker uses, and whether it works. A session's own config dir has no login; credentials are never
 * copied or symlinked into it, because claude replaces links and uses a refresh token once per copy.
 */

import { fail, ok, type Result } from '../../core/failure.ts';
import { parseJson } from '../../store/json.ts';
import type { World } from '../../system/world.ts';
import { object, text } from '../lenient.ts';
import { cleanLine } from '../text.ts';
import { type Environment, isOn, type loginVariables, providerSwitches } from './variables.ts';

export interface Login {
  /** `helper`: a program in the user's settings prints the key. */
  readonly kind: 'provider' | 'api-key' | 'oauth-token' | 'helper' | 'store';
  /** For users, without the secret: `ANTHROPIC_API_KEY`, `CLAUDE_CODE_USE_BEDROCK`, `claude auth login`. */
  readonly source: string;
  /** The login variables of a worker; all others are removed from its environment. */
  readonly variables: Readonly<Record<string, string>>;
  /** Value of CLAUDE_SECURESTORAGE_CONFIG_DIR: the folder of the user's own store, `''` = ~/.claude. */
  readonly storeDir?: string;
  /** The user's settings that name credential programs; the project's versions have no effect. */
  readonly helpers: Readonly<Record<string, string>>;
}

type Caller = Readonly<Record<string, string | undefined>>;

/**
 * Everything that decides who pays and whether the login works, including secrets; of the user's own store only its
 * path.
 */
export function loginIdentity(caller: Caller, login: Login = chooseLogin(caller)): string {
  const { kind, source, variables, storeDir, helpers } = login;
  const ofHelper = kind === 'helper' ? [helpers] : [];
  return JSON.stringify([kind, source, variables, storeDir, caller.ANTHROPIC_BASE_URL, ...ofHelper]);
}

/** `auth status` takes half a second, and many times that on a busy machine. */
const statusTimeoutMs = 20_000;

/**
 * A cloud provider, else an API key or gateway token, else an OAuth token, else a helper, else the user's own login.
 * `helpers`: those of the user's settings.
 */
export function chooseLogin(caller: Caller, helpers: Login['helpers'] = {}): Login {
  return { ...chosenOf(caller, helpers), helpers };
}

function chosenOf(caller: Caller, { apiKeyHelper = '' }: Login['helpers']): Omit<Login, 'helpers'> {
  const keys = setOnes(caller, ['ANTHROPIC_API_KEY', 'ANTHROPIC_AUTH_TOKEN']);
  const provider = providerSwitches.find((name) => isOn(caller[name]));
  // Gateways in front of a provider need a token, so keys stay.
  if (provider !== undefined) return { kind: 'provider', source: provider, variables: keys };
  const [key] = Object.keys(keys);
  if (key !== undefined) return { kind: 'api-key', source: key, variables: keys };
  const oauth = setOnes(caller, ['CLAUDE_CODE_OAUTH_TOKEN']);
  if (Object.keys(oauth).length > 0) {
    return { kind: 'oauth-token', source: 'CLAUDE_CODE_OAUTH_TOKEN', variables: oauth };
  }
  if (apiKeyHelper !== '') return { kind: 'helper', source: 'apiKeyHelper', variables: {} };
  const storeDir = caller.CLAUDE_SECURESTORAGE_CONFIG_DIR ?? caller.CLAUDE_CONFIG_DIR ?? '';
  return { kind: 'store', source: 'claude auth login', variables: {}, storeDir };
}

/** Runs `claude auth status` and returns the login method. Fails with `not-logged-in`, or when claude cannot run. */
export async function checkLogin(
  world: World,
  program: string,
  env: Environment,
  cwd: string,
): Promise<Result<{ readonly method: string }>> {
  const run = { program, args: ['auth', 'status', '--json'], cwd, env, timeoutMs: statusTimeoutMs };
  const ran = await world.processes.run(run);
  if (!ran.ok) {
    const isMissing = ran.failure.reason === 'not-found';
    return isMissing ? { ok: false, failure: { ...ran.failure, reason: 'claude-missing' } } : ran;
  }
  const { exitCode, stdout, stderr } = ran.value;
  const status = readStatus(stdout);
  if (status?.loggedIn === true) return ok({ method: status.method });
  if (status === undefined) {
    const said = cleanLine(stderr === '' ? stdout : stderr, 300);
    const how = exitCode === null ? 'timed out' : `ended with exit code ${exitCode}`;
    const message = `\`claude auth status\` ${how}${said === '' ? '' : `: ${said.replace(/\.$/, '')}`}.`;
    return fail('not-logged-in', message, `Run \`${program} auth status\` and fix what it reports.`);
  }
  const next =
    'Log in with `claude auth login`, or set ANTHROPIC_API_KEY or CLAUDE_CODE_OAUTH_TOKEN (from `claude setup-token`).';
  return fail('not-logged-in', 'claude is not logged in.', next);
}

function readStatus(stdout: string): { loggedIn: boolean; method: string } | undefined {
  const { loggedIn, authMethod } = object(parseJson(stdout));
  return typeof loggedIn === 'boolean' ? { loggedIn, method: text(authMethod) ?? 'unknown' } : undefined;
}

function setOnes(caller: Caller, names: readonly (typeof loginVariables)[number][]): Record<string, string> {
  return Object.fromEntries(names.flatMap((name) => (caller[name] ? [[name, caller[name]]] : [])));
}
