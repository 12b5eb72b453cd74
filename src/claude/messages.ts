/** Parses one line of claude's stream-json leniently: missing or unknown parts become defaults. Never throws. */
import { addTokens, type ModelUsage, noTokens, sanityLimits, type Tokens } from '../core/group.ts';
import type { ItemRequest } from '../core/item.ts';
import { wordPattern } from '../core/values.ts';
import { isObject, type JsonObject, parseJson } from '../store/json.ts';
import type { HookFailure } from './complaints.ts';
import { quietLines } from './endings.ts';
import { count, list, mapped, number, object, objects, optional, secondsAsMs, text, usd } from './lenient.ts';
import type { PricedTokens } from './pricing.ts';
import { callIn } from './questions.ts';
import { type TaskListChange, taskListChange } from './task-list.ts';
import { clip } from './text.ts';

export type ContentBlock =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'tool-use'; readonly id: string; readonly name: string; readonly input: JsonObject }
  | { readonly kind: 'other'; readonly type: string };

/** The answer to one tool call. `text` is cut to 500 characters. */
export interface ToolResult {
  readonly toolUseId: string;
  readonly isError: boolean;
  readonly text: string;
}

export interface DeniedToolCall {
  readonly tool: string;
  readonly id: string;
  readonly input: JsonObject;
}

export interface InitMessage {
  readonly kind: 'init';
  readonly sessionId: string;
  readonly model?: string;
  readonly claudeVersion?: string;
  readonly cwd?: string;
  readonly tools: readonly string[];
  readonly servers: readonly { readonly name: string; readonly status: string }[];
}

export interface AssistantMessage {
  readonly kind: 'assistant';
  /** claude prints one line per content block; the lines of one message share this id. */
  readonly messageId: string;
  readonly blocks: readonly ContentBlock[];
  /** The API's usage at the start of the message: the output count is not final. */
  readonly usage?: PricedTokens;
  readonly model?: string;
  /** Set on messages that claude itself wrote to report an error, for example `authentication_failed`. */
  readonly error?: string;
  readonly parentToolUseId?: string;
}

export interface UserMessage {
  readonly kind: 'user';
  readonly toolResults: readonly ToolResult[];
  readonly taskList?: TaskListChange;
  readonly parentToolUseId?: string;
}

/** The end of one turn. A process may print several. */
export interface ResultMessage {
  readonly kind: 'result';
  readonly subtype: string;
  readonly isError: boolean;
  readonly numTurns: number;
  readonly result?: string;
  readonly structured?: unknown;
  /** US dollars of this process so far. */
  readonly costUsd: number;
  /** Sum over `models`, or the turn's own usage without models. */
  readonly tokens: Tokens;
  readonly models: Readonly<Record<string, ModelUsage>>;
  /** Models without a price known to claude: their dollars are its guess. */
  readonly unpriced: readonly string[];
  readonly denials: readonly DeniedToolCall[];
  readonly apiErrorStatus?: number;
  readonly terminalReason?: string;
  /** Why the model ended its last message. */
  readonly stopReason?: string;
  /** The tool call that a hook deferred. */
  readonly deferred?: DeniedToolCall;
  readonly errors: readonly string[];
  readonly durationMs: number;
}

export function isAborted({ terminalReason }: ResultMessage): boolean {
  return terminalReason?.startsWith('aborted') === true;
}

export interface ApiRetryMessage {
  readonly kind: 'api-retry';
  readonly attempt: number;
  readonly attemptsMax?: number;
  readonly error: string;
  readonly errorStatus: number | null;
}

export interface RateLimitMessage {
  readonly kind: 'rate-limit';
  readonly status: string;
  /** Milliseconds since 1970. */
  readonly resetsAtMs?: number;
  readonly limitType?: string;
  /** Used share of the limit, 0..1. */
  readonly utilization?: number;
}

export interface ControlResponseMessage {
  readonly kind: 'control-response';
  readonly requestId: string;
  readonly ok: boolean;
  readonly error?: string;
  readonly costUsd?: number;
  readonly models?: Readonly<Record<string, ModelUsage>>;
  readonly unpriced?: readonly string[];
}

/** A request of claude to its host program. It waits for the answer. */
interface ControlRequestMessage {
  readonly kind: 'control-request';
  readonly requestId: string;
  readonly asked: string;
  /** For a tool call that waits for a permission or an answer. */
  readonly call?: ItemRequest;
}

export interface HookMessage {
  readonly kind: 'hook';
  readonly phase: 'started' | 'response';
  readonly hookName: string;
  readonly hookEvent: string;
  readonly outcome?: string;
  /** Cut to 10,000 characters, which the model gets as well. */
  readonly stdout?: string;
  /** Why the hook stopped claude, or kept it from continuing or ending. */
  readonly objection?: string;
  /** Present for a hook that failed. */
  readonly failure?: HookFailure;
}

/** A warning that claude would show a user at a terminal. */
export interface NoticeMessage {
  readonly kind: 'notice';
  readonly text: string;
  readonly code?: 'unknown-line';
}

export interface DeniedMessage extends DeniedToolCall {
  readonly kind: 'denied';
}

/**
 * claude is idle when it waits for input. It is busy from the start of a turn, also between a turn's result and the
 * turn that a finished workflow starts. It is idle while a Monitor runs.
 */
export interface StateMessage {
  readonly kind: 'state';
  readonly isIdle: boolean;
}

type Body =
  | InitMessage
  | AssistantMessage
  | UserMessage
  | ResultMessage
  | ApiRetryMessage
  | RateLimitMessage
  | HookMessage
  | NoticeMessage
  | DeniedMessage
  | StateMessage
  | TaskMessage
  | { readonly kind: 'compact-boundary' }
  | { readonly kind: 'other-model'; readonly asked: string; readonly answered: string }
  | { readonly kind: 'notification'; readonly key: string }
  | ControlResponseMessage
  | ControlRequestMessage
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
      return {
        kind: 'init',
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
    case 'api_retry':
      return {
        kind: 'api-retry',
        attempt: count(value.attempt),
        ...optional('attemptsMax', number(value.max_retries)),
        error: text(value.error) ?? 'unknown',
        errorStatus: number(value.error_status) ?? null,
      };
    case 'hook_started':
    case 'hook_response':
      return {
        kind: 'hook',
        phase: subtype === 'hook_started' ? 'started' : 'response',
        hookName: text(value.hook_name) ?? '',
        hookEvent: text(value.hook_event) ?? '',
        ...optional('outcome', text(value.outcome)),
        ...optional(
          'stdout',
          mapped(text(value.stdout), (out) => clip(out, hookOutputChars)),
        ),
        ...optional('objection', objectionIn(value)),
        ...optional('failure', hookFailure(value)),
      };
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

/** A notice for the user. */
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
  const type = `system/${subtype}`;
  if (quietLines.has(subtype)) return { kind: 'other', type };
  return { kind: 'notice', code: 'unknown-line', text: `an unknown notice (${type})` };
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

function hookFailure(value: JsonObject): HookFailure | undefined {
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

function readAssistant(value: JsonObject): AssistantMessage {
  const message = object(value.message);
  const usage = message.usage;
  return {
    kind: 'assistant',
    messageId: text(message.id) ?? '',
    blocks: blocksOf(message.content),
    ...optional('usage', isObject(usage) ? apiTokens(usage) : undefined),
    ...optional('model', text(message.model)),
    ...optional('error', text(value.error)),
    ...optional('parentToolUseId', text(value.parent_tool_use_id)),
  };
}

function blocksOf(content: unknown): ContentBlock[] {
  if (typeof content === 'string') return [{ kind: 'text', text: content }];
  return objects(content).map((block): ContentBlock => {
    const type = text(block.type) ?? '';
    if (type === 'text') return { kind: 'text', text: text(block.text) ?? '' };
    if (type !== 'tool_use') return { kind: 'other', type };
    const name = text(block.name) ?? '';
    return { kind: 'tool-use', id: text(block.id) ?? '', name, input: object(block.input) };
  });
}

function readUser(value: JsonObject): UserMessage {
  const results = objects(object(value.message).content).filter((block) => block.type === 'tool_result');
  return {
    kind: 'user',
    toolResults: results.map((block) => ({
      toolUseId: text(block.tool_use_id) ?? '',
      isError: block.is_error === true,
      text: clip(contentText(block.content), toolResultChars),
    })),
    ...optional('taskList', taskListChange(value.tool_use_result) ?? undefined),
    ...optional('parentToolUseId', text(value.parent_tool_use_id)),
  };
}

/** The text of a tool result, which is a string or a list of blocks. */
export function contentText(content: unknown): string {
  if (typeof content === 'string') return content;
  return objects(content)
    .map((block) => text(block.text) ?? '')
    .filter((part) => part !== '')
    .join('\n');
}

function readResult(value: JsonObject): ResultMessage {
  const models = modelsOf(value.modelUsage);
  const perModel = Object.values(models).map((usage) => usage.tokens);
  return {
    kind: 'result',
    subtype: text(value.subtype) ?? '',
    // A result without `is_error` is not trusted to be a success.
    isError: value.is_error !== false,
    numTurns: count(value.num_turns),
    costUsd: claimedUsd(value.total_cost_usd),
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
    ...optional('stopReason', text(value.stop_reason)),
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

function denialOf(value: JsonObject): DeniedToolCall {
  return { tool: text(value.tool_name) ?? '', id: text(value.tool_use_id) ?? '', input: object(value.tool_input) };
}

function deferredOf(value: unknown): DeniedToolCall {
  const { name, id, input } = object(value);
  return { tool: text(name) ?? '', id: text(id) ?? '', input: object(input) };
}

function readRateLimit(value: JsonObject): RateLimitMessage {
  const info = object(value.rate_limit_info);
  return {
    kind: 'rate-limit',
    status: text(info.status) ?? '',
    // claude uses seconds here.
    ...optional('resetsAtMs', secondsAsMs(info.resetsAt)),
    ...optional('limitType', text(info.rateLimitType)),
    ...optional('utilization', number(info.utilization)),
  };
}

function readControlResponse(value: JsonObject): ControlResponseMessage {
  const response = object(value.response);
  const session = object(object(response.response).session);
  const models = session.model_usage;
  return {
    kind: 'control-response',
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

/** US dollars. An invalid amount, such as NaN, counts as implausibly large, never as zero. */
function claimedUsd(value: unknown): number {
  return value === undefined || (typeof value === 'number' && value >= 0) ? usd(value) : sanityLimits.usd;
}

function modelUsage(usage: JsonObject): ModelUsage & { readonly tokens: PricedTokens } {
  const hourly = count(usage.cacheCreationEphemeral1hInputTokens);
  return {
    costUsd: claimedUsd(usage.costUSD),
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

export type TaskMessage =
  | { readonly kind: 'task'; readonly phase: 'started'; readonly task: BackgroundTask }
  | { readonly kind: 'task'; readonly phase: 'ended'; readonly taskId: string }
  /** All open background tasks; claude prints the list after each change. */
  | { readonly kind: 'background'; readonly tasks: readonly BackgroundTask[] };

/** Undefined when the line changes nothing. */
export function readTaskMessage(subtype: string, value: JsonObject): TaskMessage | undefined {
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
