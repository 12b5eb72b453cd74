/** The environment of a worker: the caller's without variables of claude or git and without other logins. */
import { attemptMark } from './attempt-mark.ts';
import type { Login } from './login.ts';
import { isOfPayer } from './settings.ts';
import {
  deniedVariables,
  type Environment,
  hostLoginVariable,
  isOn,
  keptVariables,
  loginVariables,
  managedSwitch,
  memoryVariable,
  noLoginHere,
  type providerSwitches,
  repositoryVariables,
  untrustedSwitch,
} from './variables.ts';

export { attemptMark } from './attempt-mark.ts';

/** claude's temporary folder, one per session; all its child processes have it too. */
export const tmpVariable = 'CLAUDE_CODE_TMPDIR';

export interface WorkerEnvironmentInput {
  readonly caller: Readonly<Record<string, string | undefined>>;
  readonly attemptId: string;
  readonly configDir: string;
  /** Absolute path of the session's folder for scratch files and output of background tasks. */
  readonly tmpDir: string;
  readonly login: Login;
  readonly untrusted?: boolean | undefined;
  readonly memoryBytes?: number | undefined;
  /** A user is attached, so it must not exit when idle. */
  readonly isAttended?: boolean | undefined;
  /** The scripted API on loopback and a separate, empty home. */
  readonly rehearsal?: { readonly baseUrl: string; readonly home: string };
}

/** Milliseconds after which an idle worker without a runner exits. */
const idleExitMs = 60_000;
/** The runner's grace period after SIGTERM is slightly longer. */
const sessionEndHooksMs = 5_000;
/** With claude's default of 10, a wrong key is reported only after three minutes. */
const maxRetries = 6;

export function workerEnvironment(input: WorkerEnvironmentInput): Environment {
  const { caller, login, rehearsal } = input;
  const isOther = (name: string) => isOfOtherLogin(name, login, caller);
  const base = rehearsal === undefined ? cleaned(caller, isOther) : rehearsalBase(caller, rehearsal.home);
  const chosen =
    rehearsal === undefined
      ? login.variables
      : { ANTHROPIC_BASE_URL: rehearsal.baseUrl, ANTHROPIC_API_KEY: 'rehearsal' };
  return {
    ...base,
    ...chosen,
    ...fixedVariables(input, base.CLAUDE_CODE_MAX_RETRIES),
  };
}

/** The environment of the user's own commands: like a worker's, without logins and claude's own variables. */
export function commandEnvironment(caller: WorkerEnvironmentInput['caller']): Environment {
  return cleaned(caller, isCredential);
}

/** Set for every worker, whatever the caller's environment; `--settings` states it again. */
function fixedVariables(input: WorkerEnvironmentInput, callersRetries: string | undefined): Environment {
  // Set for a login in the user's own store; every other session reads its own, empty store.
  const store = input.rehearsal === undefined ? input.login.storeDir : undefined;
  const isHelper = input.rehearsal === undefined && input.login.kind === 'helper';
  return {
    [attemptMark]: input.attemptId,
    // With the switch claude runs no helper either.
    ...(store === undefined && !isHelper ? { [managedSwitch]: '1' } : { [hostLoginVariable]: noLoginHere }),
    CLAUDE_CONFIG_DIR: input.configDir,
    CLAUDE_SECURESTORAGE_CONFIG_DIR: store ?? input.configDir,
    [tmpVariable]: input.tmpDir,
    CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
    DISABLE_AUTOUPDATER: '1',
    CLAUDE_CODE_MAX_RETRIES: callersRetries ?? String(maxRetries),
    // Closing stdin silently kills background shells.
    CLAUDE_CODE_DISABLE_BACKGROUND_TASKS: '1',
    // Further turns may follow a result line, after a Workflow or from a Monitor. Only `idle` means the end.
    CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS: '1',
    // Newer models have no task list without this. It is used to warn about forgotten tasks.
    CLAUDE_CODE_ENABLE_TODO_TOOLS: '1',
    ...(input.isAttended === true ? {} : { CLAUDE_CODE_EXIT_AFTER_STOP_DELAY: String(idleExitMs) }),
    CLAUDE_CODE_SESSIONEND_HOOKS_TIMEOUT_MS: String(sessionEndHooksMs),
    ...(input.untrusted === true ? { [untrustedSwitch]: '1' } : {}),
    ...(input.memoryBytes === undefined ? {} : { [memoryVariable]: String(input.memoryBytes) }),
  };
}

/** The caller's environment without claude's variables, other logins, and names for which `isForeign` is true. */
function cleaned(
  caller: WorkerEnvironmentInput['caller'],
  isForeign: (name: string) => boolean,
): Record<string, string> {
  const kept: Record<string, string> = {};
  for (const [name, value] of Object.entries(caller)) {
    if (value !== undefined && !isTrace(name, caller) && !isForeign(name)) kept[name] = value;
  }
  return kept;
}

const logins: ReadonlySet<string> = new Set(loginVariables);
/** Set by claude for its children and hooks; a worker is neither. */
const traces: ReadonlySet<string> = new Set([
  'AI_AGENT',
  'CLAUDE_EFFORT',
  'CLAUDE_ENV_FILE',
  'CLAUDE_PROJECT_DIR',
  'CLAUDE_PLUGIN_ROOT',
  'CLAUDE_PLUGIN_DATA',
  'CLAUDE_SESSION_ID',
  // claude is built with Bun and obeys its variables.
  'BUN_OPTIONS',
  'BUN_INSPECT',
  'BUN_INSPECT_CONNECT_TO',
  'BUN_INSPECT_NOTIFY',
  'BUN_INSPECT_PRELOAD',
  // It would log the key.
  'BUN_CONFIG_VERBOSE_FETCH',
  // Set for each worker.
  'CLAUDE_CONFIG_DIR',
  'CLAUDE_SECURESTORAGE_CONFIG_DIR',
]);

/** Set by claude for its children, or by an editor around it, and variables of this program. */
const ofSurroundings =
  /^CLAUDE_CODE_(?:(?:AGENT|SESSION|REMOTE)(?:_.*)?|ENTRYPOINT|EXECPATH|CHILD_SESSION|SSE_PORT|CONTAINER_ID)$/;

/** Inside a claude session, the user's own variables cannot be distinguished from claude's. */
function isTrace(name: string, caller: Caller): boolean {
  if (logins.has(name) || traces.has(name) || repositoryVariables.has(name)) return true;
  if (name === 'CLAUDECODE' || name.startsWith('CLAUDECODE_')) return true;
  if (!name.startsWith('CLAUDE_CODE_') || keptVariables.has(name)) return false;
  return caller.CLAUDECODE !== undefined || ofSurroundings.test(name) || deniedVariables.includes(name);
}

/** The user's claude variables that `worker` lacks or has changed. Login variables are reported elsewhere. */
export function droppedVariables(caller: Caller, worker: Environment): string[] {
  if (caller.CLAUDECODE !== undefined) return [];
  return Object.keys(caller).filter((name) => {
    if (!name.startsWith('CLAUDE_CODE_') || ofSurroundings.test(name) || isOfPayer(name)) return false;
    return caller[name] !== worker[name];
  });
}

const rehearsalNames = ['PATH', 'LANG', 'LC_ALL', 'LC_CTYPE', 'TERM', 'TZ', 'IS_SANDBOX'];

export function rehearsalBase(caller: WorkerEnvironmentInput['caller'], home: string): Record<string, string> {
  const kept = Object.entries(caller).filter(([name]) => rehearsalNames.includes(name));
  return { ...Object.fromEntries(kept), HOME: home };
}

type Caller = Readonly<Record<string, string | undefined>>;

/** Keys of these providers. Those of a cloud, such as AWS_BEARER_TOKEN_BEDROCK, are used by other programs as well. */
const providerKeys: Readonly<Record<string, readonly (typeof providerSwitches)[number][]>> = {
  ANTHROPIC_FOUNDRY_API_KEY: ['CLAUDE_CODE_USE_FOUNDRY'],
  ANTHROPIC_AWS_API_KEY: ['CLAUDE_CODE_USE_ANTHROPIC_AWS'],
  ANTHROPIC_BEDROCK_MANTLE_API_KEY: ['CLAUDE_CODE_USE_MANTLE'],
};

/** claude reads these before the user's store, so they stay when nothing else was chosen. */
const besideStore: ReadonlySet<string> = new Set([
  'ANTHROPIC_IDENTITY_TOKEN',
  'ANTHROPIC_IDENTITY_TOKEN_FILE',
  'CLAUDE_CODE_API_KEY_FILE_DESCRIPTOR',
  'CLAUDE_CODE_OAUTH_TOKEN_FILE_DESCRIPTOR',
]);

/** Tokens of a surrounding claude for its cloud, which do not pay for requests. */
const ofSurroundingClaude: ReadonlySet<string> = new Set([
  'CLAUDE_CODE_SESSION_ACCESS_TOKEN',
  'CLAUDE_SESSION_INGRESS_TOKEN_FILE',
]);

/** True for a credential of another login than the chosen one; false if it may belong to the chosen one. */
function isOfOtherLogin(name: string, login: Login, caller: Caller): boolean {
  if (ofSurroundingClaude.has(name)) return true;
  if (Object.hasOwn(providerKeys, name)) return !providerKeys[name]?.some((provider) => isOn(caller[provider]));
  // Renews an OAuth login in a variable or in the store.
  if (name === 'CLAUDE_CODE_OAUTH_REFRESH_TOKEN') return login.kind === 'api-key' || login.kind === 'provider';
  // What a gateway forwards to is unknown here.
  return besideStore.has(name) && login.kind !== 'store' && login.source !== 'CLAUDE_CODE_USE_GATEWAY';
}

/** By the end of the name, so that a limit such as CLAUDE_CODE_MAX_OUTPUT_TOKENS does not match. */
const credentialName =
  /^(ANTHROPIC|CLAUDE)_(\w+_)?(KEY|TOKEN|SECRET|PASSPHRASE|HEADERS|EXTRA_BODY|TOKEN_FILE|FILE_DESCRIPTOR)$/;

/** True for a variable that gives access to a model, or to claude's cloud, at the user's expense. */
function isCredential(name: string): boolean {
  return Object.hasOwn(providerKeys, name) || credentialName.test(name);
}
