/**
 * Which variables of the caller hold credentials of claude, and to which login each of them belongs. A worker gets
 * those of its own login, the user's own commands get none.
 */
import type { Login } from './login.ts';
import { isOn, type providerSwitches } from './variables.ts';

type Caller = Readonly<Record<string, string | undefined>>;

/** Keys of these providers. Those of a cloud, such as AWS_BEARER_TOKEN_BEDROCK, its other programs take as well. */
const providerKeys: Readonly<Record<string, readonly (typeof providerSwitches)[number][]>> = {
  ANTHROPIC_FOUNDRY_API_KEY: ['CLAUDE_CODE_USE_FOUNDRY'],
  ANTHROPIC_AWS_API_KEY: ['CLAUDE_CODE_USE_ANTHROPIC_AWS'],
  ANTHROPIC_BEDROCK_MANTLE_API_KEY: ['CLAUDE_CODE_USE_MANTLE'],
};

/** claude looks at these before it looks into the user's store, so they stay when nothing else was chosen. */
const besideStore: ReadonlySet<string> = new Set([
  'ANTHROPIC_IDENTITY_TOKEN',
  'ANTHROPIC_IDENTITY_TOKEN_FILE',
  'CLAUDE_CODE_API_KEY_FILE_DESCRIPTOR',
  'CLAUDE_CODE_OAUTH_TOKEN_FILE_DESCRIPTOR',
]);

/** The tokens with which a surrounding claude reports to its cloud; no request to a model is made with them. */
const ofSurroundingClaude: ReadonlySet<string> = new Set([
  'CLAUDE_CODE_SESSION_ACCESS_TOKEN',
  'CLAUDE_SESSION_INGRESS_TOKEN_FILE',
]);

/** True for a credential of another login than the chosen one. What may belong to the chosen one is none. */
export function isOfOtherLogin(name: string, login: Login, caller: Caller): boolean {
  if (ofSurroundingClaude.has(name)) return true;
  if (Object.hasOwn(providerKeys, name)) return !providerKeys[name]?.some((provider) => isOn(caller[provider]));
  // Renews a login by OAuth, in a variable or in the store.
  if (name === 'CLAUDE_CODE_OAUTH_REFRESH_TOKEN') return login.kind === 'api-key' || login.kind === 'provider';
  // What stands behind a gateway is not known here.
  return besideStore.has(name) && login.kind !== 'store' && login.source !== 'CLAUDE_CODE_USE_GATEWAY';
}

/** By the end of its name, so that a limit such as CLAUDE_CODE_MAX_OUTPUT_TOKENS is none. */
const credentialName =
  /^(ANTHROPIC|CLAUDE)_(\w+_)?(KEY|TOKEN|SECRET|PASSPHRASE|HEADERS|EXTRA_BODY|TOKEN_FILE|FILE_DESCRIPTOR)$/;

/** True for whatever lets somebody speak to a model, or to claude's cloud, at the user's expense. */
export function isCredential(name: string): boolean {
  return Object.hasOwn(providerKeys, name) || credentialName.test(name);
}
