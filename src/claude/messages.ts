/** Parses one line of claude's stream-json leniently: missing or unknown parts become defaults. Never throws. */
import { addTokens, type ModelUsage, noTokens, type Tokens } from '../core/group.ts';
import type { ItemRequest } from '../core/item.ts';
import { wordPattern } from '../core/setting-values.ts';
import { isObject, type JsonObject, parseJson } from '../store/json.ts';
import { count, list, mapped, number, object, objects, optional, secondsAsMs, text, usd } from './lenient.ts';
import type { PricedTokens } from './pricing.ts';
import { callIn } from './questions.ts';
import { clip } from './text.ts';

export type InitMessage = ReturnType<typeof readInit>;
export type AssistantMessage = ReturnType<typeof readAssistant>;
export type UserMessage = ReturnType<typeof readUser>;
/** The end of one turn. A process may print several. */
export type ResultMessage = ReturnType<typeof readResult>;
export type ApiRetryMessage = ReturnType<typeof readRetry>;
export type RateLimitMessage = ReturnType<typeof readRateLimit>;
export type ControlResponseMessage = ReturnType<typeof readControlResponse>;
export type HookMessage = ReturnType<typeof readHook>;
export type DeniedToolCall = ReturnType<typeof denialOf>;

export function isAborted({ terminalReason }: ResultMessage): boolean {
  return terminalReason?.startsWith('aborted') === true;
}

type Body =
  | InitMessage
  | AssistantMessage
  | UserMessage
  | ResultMessage
  | ApiRetryMessage
  | RateLimitMessage
  | HookMessage
  | ControlResponseMessage
  | TaskMessage
  /** A warning that claude would show a user at a terminal. */
  | { readonly kind: 'notice'; readonly text: string }
  | ({ readonly kind: 'denied' } & DeniedToolCall)
  /**
   * claude is idle when it waits for input. It is busy from the start of a turn, also between a turn's result and the
   * turn that a finished workflow starts. It is idle while a Monitor runs.
   */
  | { readonly kind: 'state'; readonly isIdle: boolean }
  | { readonly kind: 'compact-boundary' }
  | { readonly kind: 'other-model'; readonly asked: string; readonly answered: string }
  | { readonly kind: 'notification'; readonly key: string }
  /**
   * A request of claude to its host program. It waits for the answer. `call`: a tool call that waits for a permission
   * or an answer.
   */
  | {
      readonly kind: 'control-request';
      readonly requestId: string;
      readonly asked: string;
      readonly call?: ItemRequest;
    }
  /** claude no longer waits for that answer. */
  | { readonly kind: 'control-cancel'; readonly requestId: string }
  | { readonly kind: 'other'; readonly type: string }
  | { readonly kind: 'malformed'; readonly text: string };

export type ClaudeMessage = Body & { readonly claudeSessionId?: string };

const toolResultChars = 500;
const malformedChars = 200;
const hookOutputChars = 10_000;

/** Parses one line (without its newline). Blank lines are `other`; anything but a JSON object is `malformed`. */
export function parseLine(line: string): ClaudeMessage {
  return parseObject(line).message;
}

export function parseObject(line: string): { readonly message: ClaudeMessage; readonly value: JsonObject | null } {
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch {
    if (line.length < 100 && line.trim() === '') return { message: { kind: 'other', type: 'blank' }, value: null };
    return { message: { kind: 'malformed', text: clip(line, malformedChars) }, value: null };
  }
  if (!isObject(value)) return { message: { kind: 'malformed', text: clip(line, malformedChars) }, value: null };
  const body = readBody(value);
  const id = sessionIdOf(value);
  return { message: id === undefined ? body : { ...body, claudeSessionId: id }, value };
}

/** Used in paths and command lines, so anything not of claude's form is dropped. */
function sessionIdOf(value: JsonObject): string | undefined {
  const id = text(value.session_id);
  return id !== undefined && /^[A-Za-z0-9][A-Za-z0-9_-]{0,99}$/.test(id) ? id : undefined;
}

/** A model name that is safe on a command line: it is passed again when the session is resumed. */
function modelOf(value: unknown): string | undefined {
  const name = text(value);
  return name !== undefined && wordPattern.test(name) ? name : undefined;
}

function readBody(value: JsonObject): Body {
  const type = text(value.type) ?? '';
  switch (type) {
    case 'assistant':
      return readAssistant(value);
    case 'user':
      return readUser(value);
    case 'result':
      return readResult(value);
    case 'system':
      return readSystem(value);
    case 'rate_limit_event':
      return readRateLimit(value);
    case 'control_response':
      return readControlResponse(value);
    case 'control_request': {
      const asked = text(object(value.request).subtype) ?? '';
      const requestId = text(value.request_id) ?? '';
      return { kind: 'control-request', requestId, asked, ...optional('call', callIn(requestId, value.request)) };
    }
    case 'control_cancel_request':
      return { kind: 'control-cancel', requestId: text(value.request_id) ?? '' };
    default:
      return { kind: 'other', type };
  }
}

function readSystem(value: JsonObject): Body {
  const subtype = text(value.subtype) ?? '';
  switch (subtype) {
    case 'init':
      return readInit(value);
    case 'api_retry':
      return readRetry(value);
    case 'hook_started':
    case 'hook_response':
      return readHook(value);
    case 'informational':
      return noticeOf(value);
    case 'compact_boundary':
      return { kind: 'compact-boundary' };
    case 'session_state_changed':
      return { kind: 'state', isIdle: value.state === 'idle' };
    case 'model_fallback':
    case 'model_refusal_fallback':
    case 'model_consent_fallback':
      return {
        kind: 'other-model',
        asked: text(value.original_model) ?? '',
        answered: text(value.fallback_model) ?? '',
      };
    case 'notification':
      return { kind: 'notification', key: text(value.key) ?? '' };
    case 'permission_denied':
      return { kind: 'denied', ...denialOf(value) };
    default:
      return readTaskMessage(subtype, value) ?? noticeIn(subtype, value);
  }
}

function readInit(value: JsonObject) {
  return {
    kind: 'init' as const,
    sessionId: sessionIdOf(value) ?? '',
    tools: list(value.tools).filter((tool) => typeof tool === 'string'),
    servers: objects(value.mcp_servers).map(({ name, status }) => ({
      name: text(name) ?? '',
      status: text(status) ?? '',
    })),
    ...optional('model', modelOf(value.model)),
    ...optional('claudeVersion', text(value.claude_code_version)),
    ...optional('cwd', text(value.cwd)),
  };
}

function readRetry(value: JsonObject) {
  return {
    kind: 'api-retry' as const,
    attempt: count(value.attempt),
    ...optional('attemptsMax', number(value.max_retries)),
    error: text(value.error) ?? 'unknown',
    errorStatus: number(value.error_status) ?? null,
  };
}

function readHook(value: JsonObject) {
  return {
    kind: 'hook' as const,
    phase: value.subtype === 'hook_started' ? ('started' as const) : ('response' as const),
    hookName: text(value.hook_name) ?? '',
    hookEvent: text(value.hook_event) ?? '',
    ...optional('outcome', text(value.outcome)),
    ...optional(
      'stdout',
      mapped(text(value.stdout), (out) => clip(out, hookOutputChars)),
    ),
    // Why the hook stopped claude, or kept it from continuing or ending.
    ...optional('objection', objectionIn(value)),
    ...optional('failure', hookFailure(value)),
  };
}

function noticeIn(subtype: string, value: JsonObject): Body {
  const { name, error, compact_error: uncompacted, total_chars: chars, total_limit_chars: limit } = value;
  if (subtype === 'status' && value.compact_result === 'failed') {
    return {
      kind: 'notice',
      text: `The conversation could not be compacted: ${text(uncompacted) ?? 'no reason given'}`,
    };
  }
  if (subtype === 'plugin_install') {
    if (value.status !== 'failed') return { kind: 'other', type: subtype };
    return { kind: 'notice', text: `${text(name) ?? 'A plugin'} could not be installed: ${text(error) ?? ''}` };
  }
  if (subtype === 'instruction_size_warning') {
    const most = `claude advises at most ${count(limit)}`;
    return { kind: 'notice', text: `CLAUDE.md and rules have ${count(chars)} characters together; ${most}` };
  }
  return { kind: 'other', type: `system/${subtype}` };
}

/** A hook objects by its JSON output, or with exit code 2 and its reason on stderr. */
function objectionIn(value: JsonObject): string | undefined {
  if (value.exit_code === 2) return text(value.stderr)?.trim();
  const said = object(parseJson(text(value.stdout) ?? ''));
  const own = object(said.hookSpecificOutput);
  if (said.continue === false) return text(said.stopReason) ?? '';
  if (said.decision === 'block') return text(said.reason) ?? '';
  const decision = text(own.permissionDecision);
  return decision === undefined || decision === 'allow' ? undefined : (text(own.permissionDecisionReason) ?? '');
}

function hookFailure(value: JsonObject) {
  if (value.outcome !== 'error') return undefined;
  const { hook_name: name, exit_code: code, stderr } = value;
  return { hookName: text(name) ?? '', exitCode: number(code) ?? -1, stderr: text(stderr) ?? '' };
}

function noticeOf(value: JsonObject): Body {
  const isWarning = value.level === 'warning' || value.level === 'error';
  const isKnown = value.tag === 'hook_no_verdict' && object(value.hook_no_verdict).timed_out !== true;
  if (!isWarning || isKnown) return { kind: 'other', type: 'system/informational' };
  return { kind: 'notice', text: text(value.content) ?? '' };
}

function readAssistant(value: JsonObject) {
  const message = object(value.message);
  const usage = message.usage;
  return {
    kind: 'assistant' as const,
    // claude prints one line per content block; the lines of one message share this id.
    messageId: text(message.id) ?? '',
    blocks: blocksOf(message.content),
    // The API's usage at the start of the message: the output count is not final.
    ...optional('usage', isObject(usage) ? apiTokens(usage) : undefined),
    ...optional('model', text(message.model)),
    // Of a message that claude itself wrote to report an error, for example `authentication_failed`.
    ...optional('error', text(value.error)),
    ...optional('parentToolUseId', text(value.parent_tool_use_id)),
  };
}

type ContentBlock =
  | { readonly kind: 'text' | 'thinking'; readonly text: string }
  | { readonly kind: 'tool-use'; readonly id: string; readonly name: string; readonly input: JsonObject }
  | { readonly kind: 'other'; readonly type: string };

function blocksOf(content: unknown): readonly ContentBlock[] {
  if (typeof content === 'string') return [{ kind: 'text', text: content }];
  return objects(content).map((block): ContentBlock => {
    const type = text(block.type) ?? '';
    if (type === 'text') return { kind: 'text', text: text(block.text) ?? '' };
    if (type === 'thinking') return { kind: 'thinking', text: text(block.thinking) ?? '' };
    if (type !== 'tool_use') return { kind: 'other', type };
    const name = text(block.name) ?? '';
    return { kind: 'tool-use', id: text(block.id) ?? '', name, input: object(block.input) };
  });
}

function readUser(value: JsonObject) {
  const results = objects(object(value.message).content).filter((block) => block.type === 'tool_result');
  return {
    kind: 'user' as const,
    toolResults: results.map((block) => ({
      toolUseId: text(block.tool_use_id) ?? '',
      isError: block.is_error === true,
      text: clip(contentText(block.content), toolResultChars),
    })),
    ...optional('taskList', taskListChange(value.tool_use_result)),
    ...optional('parentToolUseId', text(value.parent_tool_use_id)),
  };
}

interface ListedTask {
  readonly id: string;
  readonly subject?: string;
  readonly status: string;
}

/** A change of claude's own task list, from the results of TaskCreate, TaskUpdate and TaskList. */
function taskListChange(value: unknown): { isWhole: boolean; tasks: readonly ListedTask[] } | undefined {
  const { task, taskId, statusChange, tasks } = object(value);
  const created = listedTask(object(task), 'pending');
  if (created !== undefined) return { isWhole: false, tasks: [created] };
  const [id, status] = [text(taskId), text(object(statusChange).to)];
  if (id !== undefined && status !== undefined) return { isWhole: false, tasks: [{ id, status }] };
  if (!Array.isArray(tasks)) return undefined;
  return { isWhole: true, tasks: objects(tasks).flatMap((one) => listedTask(one, '') ?? []) };
}

function listedTask({ id, subject, status }: JsonObject, otherwise: string): ListedTask | undefined {
  if (typeof id !== 'string' || typeof subject !== 'string') return undefined;
  return { id, subject, status: text(status) ?? otherwise };
}

/** The text of a tool result, which is a string or a list of blocks. */
export function contentText(content: unknown): string {
  if (typeof content === 'string') return content;
  return objects(content)
    .map((block) => text(block.text) ?? '')
    .filter((part) => part !== '')
    .join('\n');
}

function readResult(value: JsonObject) {
  const models = modelsOf(value.modelUsage);
  const perModel: Tokens[] = Object.values(models).map((usage) => usage.tokens);
  return {
    kind: 'result' as const,
    subtype: text(value.subtype) ?? '',
    // A result without `is_error` is not trusted to be a success.
    isError: value.is_error !== false,
    numTurns: count(value.num_turns),
    // US dollars of this process so far.
    costUsd: usd(value.total_cost_usd),
    tokens: (perModel.length > 0 ? perModel : [apiTokens(object(value.usage))]).reduce(addTokens, noTokens),
    models,
    unpriced: unpricedIn(value.modelUsage),
    denials: objects(value.permission_denials).map(denialOf),
    errors: list(value.errors).filter((error) => typeof error === 'string'),
    durationMs: count(value.duration_ms),
    ...optional('result', text(value.result)),
    ...optional('structured', writable(value.structured_output)),
    ...optional('apiErrorStatus', number(value.api_error_status)),
    ...optional('terminalReason', text(value.terminal_reason)),
    // Why the model ended its last message.
    ...optional('stopReason', text(value.stop_reason)),
    // The tool call that a hook deferred.
    ...optional('deferred', mapped(value.deferred_tool_use, deferredOf)),
  };
}

/** A value nested too deeply to be serialised counts as no answer. */
function writable(value: unknown): unknown {
  try {
    return JSON.stringify(value) === undefined ? undefined : value;
  } catch {
    return undefined;
  }
}

function denialOf(value: JsonObject) {
  return { tool: text(value.tool_name) ?? '', id: text(value.tool_use_id) ?? '', input: object(value.tool_input) };
}

function deferredOf(value: unknown): DeniedToolCall {
  const { name, id, input } = object(value);
  return { tool: text(name) ?? '', id: text(id) ?? '', input: object(input) };
}

function readRateLimit(value: JsonObject) {
  const info = object(value.rate_limit_info);
  return {
    kind: 'rate-limit' as const,
    status: text(info.status) ?? '',
    // claude uses seconds here.
    ...optional('resetsAtMs', secondsAsMs(info.resetsAt)),
    ...optional('limitType', text(info.rateLimitType)),
    // Used share of the limit, 0..1.
    ...optional('utilization', number(info.utilization)),
  };
}

function readControlResponse(value: JsonObject) {
  const response = object(value.response);
  const session = object(object(response.response).session);
  const models = session.model_usage;
  return {
    kind: 'control-response' as const,
    requestId: text(response.request_id) ?? '',
    ok: response.subtype === 'success',
    ...optional('error', text(response.error)),
    ...optional('costUsd', typeof session.total_cost_usd === 'number' ? usd(session.total_cost_usd) : undefined),
    ...optional('models', isObject(models) ? modelsOf(models) : undefined),
    ...optional('unpriced', isObject(models) ? unpricedIn(models) : undefined),
  };
}

/** Models without a price known to claude, from its figures per model; their cost is a guess. */
function unpricedIn(value: unknown): string[] {
  return Object.entries(object(value)).flatMap(([model, usage]) =>
    object(usage).costBasis === 'unknown' ? [model] : [],
  );
}

/** claude's figures per model in a result, an answer to `get_usage` and its own files. */
export function modelsOf(value: unknown): Record<string, ModelUsage> {
  // fromEntries defines own properties, so that a model called `__proto__` is only an odd name.
  return Object.fromEntries(
    Object.entries(object(value)).map(([model, usage]): [string, ModelUsage] => [model, modelUsage(object(usage))]),
  );
}

function modelUsage(usage: JsonObject): ModelUsage & { readonly tokens: PricedTokens } {
  const hourly = count(usage.cacheCreationEphemeral1hInputTokens);
  return {
    costUsd: usd(usage.costUSD),
    tokens: {
      input: count(usage.inputTokens),
      output: count(usage.outputTokens),
      cacheRead: count(usage.cacheReadInputTokens),
      cacheCreation: count(usage.cacheCreationInputTokens),
      ...(hourly > 0 ? { hourly } : {}),
    },
  };
}

function apiTokens(usage: JsonObject): PricedTokens {
  const hourly = count(object(usage.cache_creation).ephemeral_1h_input_tokens);
  return {
    input: count(usage.input_tokens),
    output: count(usage.output_tokens),
    cacheRead: count(usage.cache_read_input_tokens),
    cacheCreation: count(usage.cache_creation_input_tokens),
    ...(hourly > 0 ? { hourly } : {}),
  };
}

// Lines about tasks: sub-agents and background commands. A session is not over while a task is open.

export interface BackgroundTask {
  readonly id: string;
  /** A sub-agent or a workflow of sub-agents; a task of an unknown kind counts as one. */
  readonly isAgent: boolean;
}

type TaskMessage =
  | { readonly kind: 'task'; readonly phase: 'started'; readonly task: BackgroundTask }
  | { readonly kind: 'task'; readonly phase: 'ended'; readonly taskId: string }
  /** All open background tasks; claude prints the list after each change. */
  | { readonly kind: 'background'; readonly tasks: readonly BackgroundTask[] };

/** Undefined when the line changes nothing. */
function readTaskMessage(subtype: string, value: JsonObject): TaskMessage | undefined {
  if (subtype === 'background_tasks_changed') {
    return { kind: 'background', tasks: objects(value.tasks).flatMap((task) => workingTask(task) ?? []) };
  }
  const taskId = text(value.task_id);
  if (taskId === undefined) return undefined;
  if (subtype === 'task_notification') return { kind: 'task', phase: 'ended', taskId };
  if (subtype === 'task_started') {
    const task = workingTask(value);
    return task && { kind: 'task', phase: 'started', task };
  }
  if (subtype !== 'task_updated') return undefined;
  const status = text(object(value.patch).status);
  const ended = status === 'completed' || status === 'failed' || status === 'killed';
  return ended ? { kind: 'task', phase: 'ended', taskId } : undefined;
}

/** Undefined for internal tasks of claude, such as file watches, and for remote ones. */
function workingTask(task: JsonObject): BackgroundTask | undefined {
  const isOther = task.ambient === true || task.skip_transcript === true || task.off_host === true;
  const id = text(task.task_id);
  const type = text(task.task_type);
  if (isOther || id === undefined) return undefined;
  return { id, isAgent: type === undefined || /agent|workflow/.test(type) };
}
