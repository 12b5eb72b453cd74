/** The stream-json lines of a virtual claude, as the real one prints them. */
import { estimateCost } from '../../../src/claude/pricing.ts';
import type { VirtualEnding } from './scenario.ts';

export const model = 'claude-opus-4-8';

/** One call of the model: what the API bills at its start, and by its end. */
export interface ModelCall {
  readonly input: number;
  readonly output: number;
}

/** claude's reported cost: US dollars, and the calls they cover. */
export interface Total {
  readonly usd: number;
  readonly calls: readonly ModelCall[];
}

/** US dollars billed with the first line of the message: its input and the placeholder output. */
export function firstUsd({ input }: ModelCall): number {
  return estimateCost(model, { input, output: 1, cacheRead: 0, cacheCreation: 0 });
}

export function wholeUsd({ input, output }: ModelCall): number {
  return estimateCost(model, { input, output, cacheRead: 0, cacheCreation: 0 });
}

/** Printed before any input arrived. */
export function firstLines(title: string): object[] {
  const hook = { type: 'system', hook_id: 'h', hook_name: 'SessionStart:startup', hook_event: 'SessionStart' };
  return [
    { type: 'system', subtype: 'session_title_changed', title },
    { ...hook, subtype: 'hook_started' },
    { ...hook, subtype: 'hook_response', stdout: '', exit_code: 0, outcome: 'success' },
  ];
}

export function initLine(cwd: string): object {
  return { type: 'system', subtype: 'init', cwd, model, tools: ['Bash'], claude_code_version: '2.1.332' };
}

/** As printed at its start, or in its final form as stored by claude. */
export function messageLine(id: string, { input }: ModelCall, toolId: string | null, output = 1): object {
  const text = { type: 'text', text: 'Looking at it – ça va – \u2028 done.' };
  const tool = { type: 'tool_use', id: toolId, name: 'Bash', input: { command: 'make' } };
  const usage = {
    input_tokens: input,
    output_tokens: output,
    cache_read_input_tokens: 0,
    cache_creation_input_tokens: 0,
  };
  return { type: 'assistant', message: { id, model, content: toolId === null ? [text] : [text, tool], usage } };
}

export function toolResultLine(toolId: string, isError: boolean): object {
  const content = [{ type: 'tool_result', tool_use_id: toolId, is_error: isError, content: 'ok' }];
  return { type: 'user', message: { role: 'user', content } };
}

/** A line of claude's conversation file. */
export function costStateLine({ usd, calls }: Total): object {
  return { type: 'cost-state', totalCostUSD: usd, modelUsage: modelUsage(usd, calls) };
}

/** The last total in the file, whose lines may be truncated by a power cut or a full disk. */
export function readTotal(conversation: string): Total | undefined {
  for (const line of conversation.split('\n').toReversed()) {
    if (!line.startsWith('{"type":"cost-state"')) continue;
    try {
      const { totalCostUSD: usd, modelUsage: usages } = JSON.parse(line);
      return { usd, calls: [{ input: usages[model].inputTokens, output: usages[model].outputTokens }] };
    } catch {}
  }
  return undefined;
}

export function virtualAnswerLine(requestId: string, usage?: Total): object {
  const session = usage && { total_cost_usd: usage.usd, model_usage: modelUsage(usage.usd, usage.calls) };
  const response = { subtype: 'success', request_id: requestId, ...(session ? { response: { session } } : {}) };
  return { type: 'control_response', response };
}

function modelUsage(usd: number, calls: readonly ModelCall[]): object {
  const sum = (pick: (call: ModelCall) => number) => calls.reduce((total, call) => total + pick(call), 0);
  const tokens = { inputTokens: sum(({ input }) => input), outputTokens: sum(({ output }) => output) };
  return { [model]: { ...tokens, cacheReadInputTokens: 0, cacheCreationInputTokens: 0, costUSD: usd } };
}

export type ResultKind =
  | Exclude<VirtualEnding, 'silent' | 'silent-code' | 'killed' | 'hangs' | 'exit-code' | 'stalls' | 'long-tool'>
  | 'budget'
  | 'interrupted'
  | 'no-conversation';

/** The fields in which the results differ from a plain success. */
const resultFields: Readonly<Record<ResultKind, object>> = {
  success: {},
  denied: {},
  'not-sent': { num_turns: 0 },
  limit: { is_error: true, api_error_status: 429, result: 'You’ve hit your session limit · resets 1:18am (UTC)' },
  'limit-unknown': { is_error: true, api_error_status: 429, result: 'API Error: 429 rate_limit_error' },
  unreachable: { is_error: true, result: 'API Error: Connection error.', num_turns: 1 },
  overloaded: { is_error: true, api_error_status: 529, result: 'API Error: 529 overloaded' },
  'not-logged-in': { is_error: true, result: 'Not logged in · Please run /login' },
  billing: { is_error: true, api_error_status: 400, result: 'Credit balance is too low' },
  'unknown-model': { is_error: true, api_error_status: 404, result: 'There’s an issue with the selected model' },
  'too-long': { is_error: true, terminal_reason: 'prompt_too_long', result: 'Prompt is too long · …' },
  'max-turns': { subtype: 'error_max_turns', is_error: true, result: '' },
  budget: { subtype: 'error_max_budget_usd', is_error: true },
  interrupted: { subtype: 'error_during_execution', is_error: true, terminal_reason: 'aborted_tools' },
  'no-conversation': {
    subtype: 'error_during_execution',
    is_error: true,
    errors: ['No conversation found with session ID'],
  },
};

export function virtualResultLine(
  kind: ResultKind,
  { usd, calls }: Total,
  turns: number,
  deniedToolId: string | null,
): object {
  const denials = deniedToolId === null ? [] : [{ tool_name: 'Bash', tool_use_id: deniedToolId }];
  return {
    type: 'result',
    subtype: 'success',
    is_error: false,
    duration_ms: 10,
    num_turns: Math.max(1, turns),
    result: 'Done.',
    total_cost_usd: usd,
    modelUsage: modelUsage(usd, calls),
    permission_denials: denials,
    ...resultFields[kind],
  };
}

/** claude waits for input. */
export const virtualIdleLine = { type: 'system', subtype: 'session_state_changed', state: 'idle' };

/** A five-hour window is nearly used up. */
export function nearLimitLine(resetsAtS: number): object {
  const info = { status: 'allowed_warning', resetsAt: resetsAtS, rateLimitType: 'five_hour', utilization: 0.95 };
  return { type: 'rate_limit_event', rate_limit_info: info };
}

/** The lines before a result that reports a problem of the account or the network. */
export function troubleLines(kind: ResultKind, resetsAtS: number): object[] {
  const message = { id: 'm-trouble', model: '<synthetic>', content: [{ type: 'text', text: 'trouble' }] };
  switch (kind) {
    case 'limit': {
      const info = { status: 'rejected', resetsAt: resetsAtS, rateLimitType: 'five_hour' };
      return [{ type: 'rate_limit_event', rate_limit_info: info }];
    }
    case 'unreachable':
      return [{ type: 'assistant', error: 'unknown', message }];
    case 'not-logged-in':
      return [{ type: 'assistant', error: 'authentication_failed', message }];
    case 'billing':
      return [{ type: 'assistant', error: 'billing_error', message }];
    default:
      return [];
  }
}
