/** claude's environment variables by effect. Project settings override the environment. */
export type Environment = Readonly<Record<string, string>>;

/**
 * Tells claude that its host program has chosen the provider: settings files, whatever their source, then cannot change
 * provider, endpoint, credentials or proxy, and a refused key is reported at once instead of being retried. claude then
 * reads no stored login, so it works with a key, a token or a provider only.
 */
export const managedSwitch = 'CLAUDE_CODE_PROVIDER_MANAGED_BY_HOST';

/**
 * Names the variable in which claude's host program keeps a login. For a stored login it does the same: provider,
 * endpoint, key, model names and headers are dropped from every settings file, and the store is still read. Proxies and
 * certificates are not dropped; `--settings` states those.
 */
export const hostLoginVariable = 'CLAUDE_CODE_HOST_AUTH_ENV_VAR';

/** The value of `hostLoginVariable` for a stored login: a variable that is never set. */
export const noLoginHere = 'CLAUDE_CODE_AGENT_NO_LOGIN_HERE';

/**
 * Tells claude that the project is not trusted: its hooks do not run, and only harmless ones of its variables have an
 * effect. The option of the same name is an error in programs that do not know it, the variable is not.
 */
export const untrustedSwitch = 'CLAUDE_CODE_IGNORE_PERSISTED_TRUST';

/**
 * Memory limit of all Bash tool commands together, bytes; a command beyond it is killed. claude makes one control group
 * for it, which all claudes in the same control group share, with the limit of the last one.
 */
export const memoryVariable = 'CLAUDE_CODE_TOOL_MEMORY_LIMIT';

export const providerSwitches = [
  'CLAUDE_CODE_USE_BEDROCK',
  'CLAUDE_CODE_USE_VERTEX',
  'CLAUDE_CODE_USE_FOUNDRY',
  'CLAUDE_CODE_USE_ANTHROPIC_AWS',
  'CLAUDE_CODE_USE_ANTHROPIC_GOOGLE_CLOUD',
  'CLAUDE_CODE_USE_MANTLE',
  'CLAUDE_CODE_USE_GATEWAY',
] as const;

/** Logins of which one is chosen; the others are removed from a worker's environment. The rest: environment.ts. */
export const loginVariables = ['ANTHROPIC_API_KEY', 'ANTHROPIC_AUTH_TOKEN', 'CLAUDE_CODE_OAUTH_TOKEN'] as const;

/** Where requests go; settings cannot change them once `managedSwitch` is on. */
export const proxyVariables = [
  'HTTP_PROXY',
  'HTTPS_PROXY',
  'NO_PROXY',
  'http_proxy',
  'https_proxy',
  'no_proxy',
] as const;

/**
 * Decide who pays; settings cannot change them once `managedSwitch` is on. With `hostLoginVariable` that holds for all
 * except the proxies and the certificates.
 */
export const managedVariables: readonly string[] = [
  ...providerSwitches,
  ...loginVariables,
  'ANTHROPIC_BASE_URL',
  'ANTHROPIC_BEDROCK_BASE_URL',
  'ANTHROPIC_VERTEX_BASE_URL',
  'ANTHROPIC_FOUNDRY_BASE_URL',
  'ANTHROPIC_AWS_BASE_URL',
  'ANTHROPIC_GOOGLE_CLOUD_BASE_URL',
  'ANTHROPIC_BEDROCK_MANTLE_BASE_URL',
  'ANTHROPIC_FOUNDRY_RESOURCE',
  'ANTHROPIC_VERTEX_PROJECT_ID',
  'ANTHROPIC_AWS_WORKSPACE_ID',
  'AWS_BEARER_TOKEN_BEDROCK',
  'ANTHROPIC_FOUNDRY_API_KEY',
  'ANTHROPIC_FOUNDRY_AUTH_TOKEN',
  'ANTHROPIC_AWS_API_KEY',
  'ANTHROPIC_BEDROCK_MANTLE_API_KEY',
  'CLAUDE_CODE_SKIP_BEDROCK_AUTH',
  'CLAUDE_CODE_SKIP_VERTEX_AUTH',
  'CLAUDE_CODE_SKIP_FOUNDRY_AUTH',
  'CLAUDE_CODE_SKIP_ANTHROPIC_AWS_AUTH',
  'CLAUDE_CODE_SKIP_MANTLE_AUTH',
  hostLoginVariable,
  'CLAUDE_CODE_GATEWAY_TOKEN',
  'CLAUDE_CODE_HOST_CREDS_FILE',
  'CLAUDE_CODE_CERT_STORE',
  ...proxyVariables,
];

/** Decide who pays or who can read the requests; only `--settings` protects them. */
export const restatedVariables: readonly string[] = [
  'ANTHROPIC_CUSTOM_HEADERS',
  'ANTHROPIC_CONFIG_DIR',
  'ANTHROPIC_PROFILE',
  'ANTHROPIC_IDENTITY_TOKEN',
  'ANTHROPIC_IDENTITY_TOKEN_FILE',
  'CLAUDE_CODE_OAUTH_REFRESH_TOKEN',
  'CLAUDE_CODE_OAUTH_CLIENT_ID',
  'CLAUDE_CODE_OAUTH_TOKEN_FILE_DESCRIPTOR',
  'CLAUDE_CODE_API_KEY_FILE_DESCRIPTOR',
  'CLAUDE_CODE_SESSION_ACCESS_TOKEN',
  'CLAUDE_CODE_API_BASE_URL',
  'CLAUDE_CODE_CUSTOM_OAUTH_URL',
  'CLAUDE_CODE_EXTRA_BODY',
  'CLAUDE_CODE_CLIENT_CERT',
  'CLAUDE_CODE_CLIENT_KEY',
  'CLAUDE_CODE_CLIENT_KEY_PASSPHRASE',
  'ALL_PROXY',
  'all_proxy',
  'NODE_EXTRA_CA_CERTS',
  'NODE_TLS_REJECT_UNAUTHORIZED',
  'NODE_OPTIONS',
  'BUN_OPTIONS',
];

/**
 * Without one of the first two no session data reaches a telemetry collector, whatever the others say. The last two
 * send it by a separate channel. Seen: prompts, answers and whole requests.
 */
export const telemetrySwitches: readonly string[] = [
  'CLAUDE_CODE_ENABLE_TELEMETRY',
  'CLAUDE_CODE_ENHANCED_TELEMETRY_BETA',
  'ENABLE_ENHANCED_TELEMETRY_BETA',
  'ENABLE_BETA_TRACING_DETAILED',
  'BETA_TRACING_ENDPOINT',
];

const signals = ['', 'LOGS_', 'METRICS_', 'TRACES_', 'PROFILES_'];

/** What is collected, and where it goes. An empty value does not replace an unset one. */
export const telemetryVariables: readonly string[] = [
  ...['LOGS', 'METRICS', 'TRACES'].map((signal) => `OTEL_${signal}_EXPORTER`),
  ...signals.flatMap((signal) =>
    ['ENDPOINT', 'HEADERS', 'PROTOCOL', 'INSECURE', 'CERTIFICATE', 'CLIENT_CERTIFICATE', 'CLIENT_KEY'].map(
      (part) => `OTEL_EXPORTER_OTLP_${signal}${part}`,
    ),
  ),
  'OTEL_EXPORTER_PROMETHEUS_HOST',
  'OTEL_EXPORTER_PROMETHEUS_PORT',
  'OTEL_LOG_USER_PROMPTS',
  'OTEL_LOG_ASSISTANT_RESPONSES',
  'OTEL_LOG_TOOL_DETAILS',
  'OTEL_LOG_TOOL_CONTENT',
  'OTEL_LOG_RAW_API_BODIES',
];

/**
 * Variables in which git tells its hooks and aliases the calling repository: `git rev-parse --local-env-vars` without
 * the configuration, and GIT_QUARANTINE_PATH. A command for another repository must not inherit them.
 */
export const repositoryVariables: ReadonlySet<string> = new Set([
  'GIT_DIR',
  'GIT_COMMON_DIR',
  'GIT_WORK_TREE',
  'GIT_IMPLICIT_WORK_TREE',
  'GIT_INDEX_FILE',
  'GIT_PREFIX',
  'GIT_NAMESPACE',
  'GIT_OBJECT_DIRECTORY',
  'GIT_ALTERNATE_OBJECT_DIRECTORIES',
  'GIT_QUARANTINE_PATH',
  'GIT_GRAFT_FILE',
  'GIT_SHALLOW_FILE',
]);

/** Decide what code runs in every program that claude starts, including our hook. */
export const loaderVariables: readonly string[] = [
  'LD_PRELOAD',
  'LD_AUDIT',
  'LD_LIBRARY_PATH',
  'LD_DEBUG',
  'DYLD_INSERT_LIBRARIES',
  'DYLD_LIBRARY_PATH',
  'DYLD_FRAMEWORK_PATH',
  'DYLD_FALLBACK_LIBRARY_PATH',
  'DYLD_FALLBACK_FRAMEWORK_PATH',
];

/**
 * Remove our instructions, our hook, the record of the conversation, its tools or its compaction, or send additional
 * API requests. The last one prints every request to stderr, including the key.
 */
export const steeringVariables: readonly string[] = [
  'CLAUDE_CODE_SIMPLE',
  'CLAUDE_CODE_SAFE_MODE',
  'CLAUDE_CODE_DISABLE_CLAUDE_MDS',
  'CLAUDE_CODE_SKIP_PROMPT_HISTORY',
  'CLAUDE_CODE_RESUME_INTERRUPTED_TURN',
  'CLAUDE_CODE_COORDINATOR_MODE',
  'CLAUDE_CODE_REPL',
  'CLAUDE_CODE_BRIEF',
  'CLAUDE_CODE_PROACTIVE',
  'CLAUDE_CODE_SESSION_KIND',
  'DISABLE_COMPACT',
  'DISABLE_AUTO_COMPACT',
  'CLAUDE_AUTOCOMPACT_PCT_OVERRIDE',
  'API_TIMEOUT_MS',
  'BUN_CONFIG_VERBOSE_FETCH',
];

/** Whose cloud account pays when a provider is used. Tools of the session read them too, and fail on empty values. */
export const cloudVariables: readonly string[] = [
  'AWS_PROFILE',
  'AWS_REGION',
  'AWS_DEFAULT_REGION',
  'AWS_CONFIG_FILE',
  'AWS_SHARED_CREDENTIALS_FILE',
  'AWS_ACCESS_KEY_ID',
  'AWS_SECRET_ACCESS_KEY',
  'AWS_SESSION_TOKEN',
  'CLOUD_ML_REGION',
  'GOOGLE_APPLICATION_CREDENTIALS',
  'GOOGLE_CLOUD_PROJECT',
  'GCLOUD_PROJECT',
];

const secretName = /KEY|TOKEN|SECRET|HEADERS|PASSPHRASE|EXTRA_BODY/;

/** True for values that must not be written into a file: secrets by name, and addresses with a password. */
export function isSecret(name: string, value: string): boolean {
  return secretName.test(name) || /:\/\/[^/]*@/.test(value);
}

/** As claude reads its switches: only these words mean yes. */
export function isOn(value: string | undefined): boolean {
  return ['1', 'true', 'yes', 'on'].includes((value ?? '').toLowerCase().trim());
}

/** Variables of claude that would disable what sessions need. The user is warned when one is dropped. */
export const deniedVariables: readonly string[] = [
  ...steeringVariables,
  untrustedSwitch,
  managedSwitch,
  // It changes the permission mode.
  'CLAUDE_CODE_SUBPROCESS_ENV_SCRUB',
];

/** `CLAUDE_CODE_*` variables that users set: these also apply when this program runs inside a claude. */
export const keptVariables: ReadonlySet<string> = new Set([
  ...[...managedVariables, ...restatedVariables].filter((name) => name !== 'CLAUDE_CODE_OAUTH_TOKEN'),
  'CLAUDE_CODE_API_KEY_HELPER_TTL_MS',
  'CLAUDE_CODE_ATTRIBUTION_HEADER',
  'CLAUDE_CODE_AUTO_COMPACT_WINDOW',
  'CLAUDE_CODE_DISABLE_1M_CONTEXT',
  'CLAUDE_CODE_DISABLE_ADAPTIVE_THINKING',
  'CLAUDE_CODE_DISABLE_AUTO_MEMORY',
  'CLAUDE_CODE_DISABLE_EXPERIMENTAL_BETAS',
  'CLAUDE_CODE_DISABLE_FAST_MODE',
  'CLAUDE_CODE_DISABLE_FILE_CHECKPOINTING',
  'CLAUDE_CODE_DISABLE_GIT_INSTRUCTIONS',
  'CLAUDE_CODE_DISABLE_THINKING',
  'CLAUDE_CODE_EFFORT_LEVEL',
  'CLAUDE_CODE_ENABLE_TELEMETRY',
  'CLAUDE_CODE_FILE_READ_MAX_OUTPUT_TOKENS',
  'CLAUDE_CODE_GIT_BASH_PATH',
  'CLAUDE_CODE_GLOB_HIDDEN',
  'CLAUDE_CODE_GLOB_NO_IGNORE',
  'CLAUDE_CODE_MAX_CONTEXT_TOKENS',
  'CLAUDE_CODE_MAX_OUTPUT_TOKENS',
  'CLAUDE_CODE_MAX_RETRIES',
  'CLAUDE_CODE_MAX_TOOL_USE_CONCURRENCY',
  'CLAUDE_CODE_MCP_TOOL_IDLE_TIMEOUT',
  'CLAUDE_CODE_OTEL_FLUSH_TIMEOUT_MS',
  'CLAUDE_CODE_OTEL_HEADERS_HELPER_DEBOUNCE_MS',
  'CLAUDE_CODE_OTEL_SHUTDOWN_TIMEOUT_MS',
  'CLAUDE_CODE_PROMPT_CACHE_TTL',
  'CLAUDE_CODE_PROXY_RESOLVES_HOSTS',
  'CLAUDE_CODE_RETRY_WATCHDOG',
  'CLAUDE_CODE_SHELL',
  'CLAUDE_CODE_SHELL_PREFIX',
  'CLAUDE_CODE_SUBAGENT_EFFORT',
  'CLAUDE_CODE_SUBAGENT_MODEL',
  memoryVariable,
  // Our own, for a session that calls this program itself.
  'CLAUDE_CODE_AGENT_HOME',
  'CLAUDE_CODE_AGENT_CLAUDE',
  'CLAUDE_CODE_AGENT_TEMPLATES',
  'CLAUDE_CODE_AGENT_BUN',
  'CLAUDE_CODE_AGENT_DEBUG',
]);
