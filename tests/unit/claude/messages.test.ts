/** Promises: every kind of line that is used is read as documented, and no line makes the reader throw. */
import { describe, expect, test } from 'bun:test';
import { parseLine } from '../../../src/claude/messages.ts';
import { sanityLimits } from '../../../src/core/group.ts';
import { fc } from '../../support/property.ts';

const read = (value: unknown) => parseLine(JSON.stringify(value));

describe('parseLine', () => {
  test('parseLine reads an assistant message with its blocks and the usage at its start', () => {
    const content = [
      { type: 'thinking', thinking: 'hm' },
      { type: 'text', text: 'calling' },
      { type: 'tool_use', id: 't1', name: 'Bash', input: { command: 'ls' } },
      'no block',
    ];
    const usage = { input_tokens: 1, output_tokens: 2, cache_read_input_tokens: 3, cache_creation_input_tokens: 4 };
    const message = { id: 'm1', model: 'claude-opus-4-8', content, usage };
    expect(read({ type: 'assistant', message, parent_tool_use_id: 'p1', error: 'rate_limit' })).toEqual({
      kind: 'assistant',
      messageId: 'm1',
      blocks: [
        { kind: 'thinking', text: 'hm' },
        { kind: 'text', text: 'calling' },
        { kind: 'tool-use', id: 't1', name: 'Bash', input: { command: 'ls' } },
      ],
      usage: { input: 1, output: 2, cacheRead: 3, cacheCreation: 4 },
      model: 'claude-opus-4-8',
      error: 'rate_limit',
      parentToolUseId: 'p1',
    });
  });

  test('parseLine reads tool results as text or a list of blocks, and truncates them', () => {
    const content = [
      { type: 'tool_result', tool_use_id: 'a', content: 'x'.repeat(600), is_error: true },
      { type: 'tool_result', tool_use_id: 'b', content: [{ type: 'text', text: 'one' }, { type: 'image' }] },
      { type: 'text', text: 'no result' },
    ];
    const message = read({ type: 'user', message: { content }, parent_tool_use_id: null });
    expect(message).toMatchObject({
      kind: 'user',
      toolResults: [
        { toolUseId: 'a', isError: true },
        { toolUseId: 'b', isError: false, text: 'one' },
      ],
    });
    expect(message.kind === 'user' && message.toolResults[0]?.text.length).toBe(500);
    expect(read({ type: 'user', message: { content: 'plain text' } })).toEqual({ kind: 'user', toolResults: [] });
  });

  test('parseLine reads a result, whose tokens are the sum over its models', () => {
    const modelUsage = {
      a: { inputTokens: 1, outputTokens: 2, cacheReadInputTokens: 3, cacheCreationInputTokens: 4, costUSD: 0.5 },
      b: {
        inputTokens: 10,
        outputTokens: 20,
        cacheReadInputTokens: 30,
        cacheCreationInputTokens: 40,
        costUSD: 1,
        costBasis: 'unknown',
      },
    };
    const line = {
      type: 'result',
      subtype: 'success',
      is_error: true,
      api_error_status: 529,
      num_turns: 2,
      duration_ms: 272,
      result: 'API Error',
      total_cost_usd: 1.5,
      usage: { input_tokens: 999 },
      modelUsage,
      permission_denials: [{ tool_name: 'Bash', tool_use_id: 't1', tool_input: {} }],
      terminal_reason: 'completed',
      errors: ['e', 5],
    };
    expect(read(line)).toEqual({
      kind: 'result',
      subtype: 'success',
      isError: true,
      numTurns: 2,
      costUsd: 1.5,
      tokens: { input: 11, output: 22, cacheRead: 33, cacheCreation: 44 },
      models: {
        a: { costUsd: 0.5, tokens: { input: 1, output: 2, cacheRead: 3, cacheCreation: 4 } },
        b: { costUsd: 1, tokens: { input: 10, output: 20, cacheRead: 30, cacheCreation: 40 } },
      },
      unpriced: ['b'],
      denials: [{ tool: 'Bash', id: 't1', input: {} }],
      errors: ['e'],
      durationMs: 272,
      result: 'API Error',
      apiErrorStatus: 529,
      terminalReason: 'completed',
    });
    expect(read({ type: 'result', usage: { input_tokens: 5 } })).toMatchObject({
      isError: true,
      tokens: { input: 5, output: 0, cacheRead: 0, cacheCreation: 0 },
    });
  });

  test('parseLine reads the short kinds of lines', () => {
    const retry = { type: 'system', subtype: 'api_retry', attempt: 2, error_status: null, error: 'overloaded' };
    expect(read(retry)).toEqual({ kind: 'api-retry', attempt: 2, error: 'overloaded', errorStatus: null });
    const info = { status: 'rejected', resetsAt: 1795310320, rateLimitType: 'five_hour', utilization: 1 };
    expect(read({ type: 'rate_limit_event', rate_limit_info: info })).toEqual({
      kind: 'rate-limit',
      status: 'rejected',
      resetsAtMs: 1795310320000,
      limitType: 'five_hour',
      utilization: 1,
    });
    const hook = { type: 'system', hook_name: 'SessionStart:startup', hook_event: 'SessionStart' };
    expect(read({ ...hook, subtype: 'hook_started' })).toMatchObject({ kind: 'hook', phase: 'started' });
    expect(read({ ...hook, subtype: 'hook_response', outcome: 'success', stdout: 'hi' })).toEqual({
      kind: 'hook',
      phase: 'response',
      hookName: 'SessionStart:startup',
      hookEvent: 'SessionStart',
      outcome: 'success',
      stdout: 'hi',
    });
    expect(read({ type: 'system', subtype: 'compact_boundary' })).toEqual({ kind: 'compact-boundary' });
  });

  const task = (subtype: string, more: object = {}) => read({ type: 'system', subtype, task_id: 'k', ...more });
  test.each([
    ['task_started', {}, { kind: 'task', phase: 'started', task: { id: 'k', isAgent: true } }],
    [
      'task_started',
      { task_type: 'local_bash' },
      { kind: 'task', phase: 'started', task: { id: 'k', isAgent: false } },
    ],
    ['task_started', { ambient: true }, { kind: 'other', type: 'system/task_started' }],
    ['task_started', { skip_transcript: true }, { kind: 'other', type: 'system/task_started' }],
    [
      'background_tasks_changed',
      { tasks: [{ task_id: 'a' }, { task_id: 'b', ambient: true }, { task_id: 'c', off_host: true }, 7] },
      { kind: 'background', tasks: [{ id: 'a', isAgent: true }] },
    ],
    ['background_tasks_changed', {}, { kind: 'background', tasks: [] }],
    [
      'permission_denied',
      { tool_name: 'Bash', tool_use_id: 't', message: 'no' },
      { kind: 'denied', tool: 'Bash', id: 't', input: {} },
    ],
    ['task_notification', { status: 'stopped' }, { kind: 'task', phase: 'ended', taskId: 'k' }],
    ['task_updated', { patch: { status: 'completed' } }, { kind: 'task', phase: 'ended', taskId: 'k' }],
    ['task_updated', { patch: { status: 'failed' } }, { kind: 'task', phase: 'ended', taskId: 'k' }],
    ['task_updated', { patch: { status: 'killed' } }, { kind: 'task', phase: 'ended', taskId: 'k' }],
    ['task_updated', { patch: { status: 'running' } }, { kind: 'other', type: 'system/task_updated' }],
    ['task_updated', {}, { kind: 'other', type: 'system/task_updated' }],
    ['task_progress', {}, { kind: 'other', type: 'system/task_progress' }],
  ] as const)('parseLine reads %s %j as %j', (subtype, more, expected) => {
    expect<unknown>(task(subtype, more)).toEqual(expected);
  });

  test('parseLine reads answers to control requests', () => {
    const answer = (response: object) => read({ type: 'control_response', response });
    expect(answer({ subtype: 'error', request_id: 'x', error: 'no' })).toEqual({
      kind: 'control-response',
      requestId: 'x',
      ok: false,
      error: 'no',
    });
    const session = { total_cost_usd: 0.01, model_usage: { m: { inputTokens: 3, costUSD: 0.01 } } };
    expect(answer({ subtype: 'success', request_id: 'u', response: { session } })).toMatchObject({
      ok: true,
      costUsd: 0.01,
      models: { m: { costUsd: 0.01, tokens: { input: 3 } } },
    });
  });

  test.each([
    ['', { kind: 'other', type: 'blank' }],
    ['  \r', { kind: 'other', type: 'blank' }],
    ['null', { kind: 'malformed', text: 'null' }],
    ['[1]', { kind: 'malformed', text: '[1]' }],
    ['"text"', { kind: 'malformed', text: '"text"' }],
    ['{"type":"assis', { kind: 'malformed', text: '{"type":"assis' }],
    ['{}', { kind: 'other', type: '' }],
    ['{"type":42}', { kind: 'other', type: '' }],
    ['{"type":"system"}', { kind: 'other', type: 'system/' }],
    ['{"type":"brand_new","session_id":"s"}', { kind: 'other', type: 'brand_new', claudeSessionId: 's' }],
  ])('parseLine reads the line %j as %j', (line, expected) => {
    expect<unknown>(parseLine(line)).toEqual(expected);
  });

  test('parseLine reads invalid counts as zero, infinite ones as the maximum, and odd model names as names', () => {
    const models = '{"__proto__":{"inputTokens":2,"costUSD":"x"}}';
    const line = `{"type":"result","total_cost_usd":1e999,"num_turns":-3,"modelUsage":${models}}`;
    const message = parseLine(line);
    expect(message).toMatchObject({ costUsd: sanityLimits.usd, numTurns: 0, tokens: { input: 2 } });
    expect(({} as Record<string, unknown>).inputTokens).toBeUndefined();
  });

  test('parseLine reads tokens written to the one-hour cache', () => {
    const usage = { cache_creation_input_tokens: 5, cache_creation: { ephemeral_1h_input_tokens: 3 } };
    const message = read({ type: 'assistant', message: { id: 'm', content: [], usage } });
    expect(message.kind === 'assistant' && message.usage).toMatchObject({ cacheCreation: 5, hourly: 3 });
    const none = read({ type: 'assistant', message: { id: 'm', content: [], usage: { input_tokens: 1 } } });
    expect(none.kind === 'assistant' && none.usage).not.toHaveProperty('hourly');
  });

  const types = ['system', 'assistant', 'user', 'result', 'rate_limit_event', 'control_response'];
  const subtypes = ['init', 'api_retry', 'hook_response', 'task_started', 'task_updated', 'success'];
  const fields = [
    'message',
    'response',
    'rate_limit_info',
    'content',
    'patch',
    'task_id',
    'tools',
    'modelUsage',
    'errors',
  ];

  test('parseLine never throws, whatever the fields contain', () => {
    const body = fc.dictionary(fc.constantFrom(...fields), fc.jsonValue());
    fc.assert(
      fc.property(fc.constantFrom(...types), fc.constantFrom(...subtypes), body, (type, subtype, more) => {
        const { kind } = read({ ...more, message: { content: more.content, usage: more.response }, type, subtype });
        expect(kind).not.toBe('malformed');
        expect(read({ ...more, type, subtype }).kind).not.toBe('malformed');
      }),
    );
    fc.assert(fc.property(fc.string(), (line) => typeof parseLine(line).kind === 'string'));
  });
});
