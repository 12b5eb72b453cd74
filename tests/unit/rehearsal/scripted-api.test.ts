/**
 * Promises: over plain HTTP the scripted API has the shapes of the Messages API, errors that last for a number of
 * attempts, replies that wait for a gate, costs only for served replies, and reports of invalid requests.
 */
import { afterEach, describe, expect, test } from 'bun:test';
import type { Message, ScriptedBlock, Step } from '../../../src/rehearsal/script.ts';
import { type ScriptedApi, type ScriptedApiOptions, startScriptedApi } from '../../../src/rehearsal/scripted-api.ts';

let api: ScriptedApi | undefined;
afterEach(async () => {
  await api?.stop();
  api = undefined;
});

function start(steps: Step[], options: Partial<ScriptedApiOptions> = {}): ScriptedApi {
  api = startScriptedApi({ script: { version: 1, sessions: { s: { steps } } }, nameOf: () => 's', ...options });
  return api;
}

const hello: Message[] = [{ role: 'user', content: 'hello' }];

function post(messages: readonly Message[] = hello, more: object = {}, init: RequestInit = {}): Promise<Response> {
  return fetch(`${api?.url}/v1/messages?beta=true`, {
    method: 'POST',
    headers: { 'x-api-key': 'k', 'x-claude-code-session-id': 'id-1' },
    body: JSON.stringify({ model: 'claude-opus-4-8', max_tokens: 99, tools: [{}], messages, ...more }),
    ...init,
  });
}

describe('protocol', () => {
  test('a plain request gets one document at the price of one cent', async () => {
    const { served } = start([{ text: 'hi {{session}} in {{project}}', tool: 'Bash', input: { command: 'ls' } }]);
    const system = [{ type: 'text', text: 'x\n - Primary working directory: /a b\n - y' }];
    const reply = (await (await post(hello, { system })).json()) as { content: ScriptedBlock[] };
    expect(reply).toMatchObject({
      type: 'message',
      role: 'assistant',
      model: 'claude-opus-4-8',
      stop_reason: 'tool_use',
      content: [
        { type: 'text', text: 'hi s in /a b' },
        { type: 'tool_use', name: 'Bash', input: { command: 'ls' } },
      ],
      usage: { input_tokens: 1000, output_tokens: 200, cache_creation_input_tokens: 0, cache_read_input_tokens: 0 },
    });
    const one = { costUsd: 0.01, tokens: { input: 1000, output: 200, cacheRead: 0, cacheCreation: 0 }, replies: 1 };
    expect(served).toEqual({ total: one, sessions: new Map([['id-1', one]]) });
  });

  test('a streaming request gets events, with the true output figure at the end', async () => {
    start([{ text: 'hi', tools: [{ tool: 'A' }, { tool: 'B', input: { x: 1 } }], usage: { output: 7 } }]);
    const response = await post(hello, { stream: true });
    expect(response.headers.get('content-type')).toBe('text/event-stream');
    const events = (await response.text())
      .trimEnd()
      .split('\n\n')
      .map((text) => {
        const [name, data] = text.split('\n');
        const value = JSON.parse(data!.slice('data: '.length)) as { type: string; index?: number; usage?: unknown };
        expect(name).toBe(`event: ${value.type}`);
        return value;
      });
    const blocks = ['content_block_start', 'content_block_delta', 'content_block_stop'];
    const [first, second, third] = [0, 1, 2].map((index) => blocks.map((type) => `${type} ${index}`));
    expect(events.map(({ type, index }) => (index === undefined ? type : `${type} ${index}`))).toEqual(
      ['message_start', first!, second!, third!, 'message_delta', 'message_stop'].flat(),
    );
    expect(events.at(-2)?.usage).toEqual({ output_tokens: 7 });
  });

  test('HEAD, count_tokens and unknown requests are answered', async () => {
    const { url } = start([{ text: 'hi' }]);
    expect((await fetch(url, { method: 'HEAD' })).status).toBe(200);
    const counted = await fetch(`${url}/v1/messages/count_tokens`, { method: 'POST', body: '{}' });
    expect(await counted.json()).toEqual({ input_tokens: 1000 });
    expect((await fetch(`${url}/v1/messages`, { method: 'POST', body: '{"torn' })).status).toBe(400);
    expect((await fetch(`${url}/else`)).status).toBe(404);
    expect(api?.requests).toEqual([]);
  });

  test('a request without tools is never answered with a tool call', async () => {
    start([{ tool: 'Bash' }]);
    expect(await (await post(hello, { tools: [] })).json()).toMatchObject({ stop_reason: 'end_turn' });
    expect(api?.requests[0]?.kind).toBe('side');
  });
});

describe('faults', () => {
  test('faults last for their number of attempts, then the rest of the step applies', async () => {
    const headers = { 'retry-after': '7' };
    start([{ text: 'hi', status: 529, message: 'busy', headers, times: 2 }]);
    const first = await post();
    expect([first.status, first.headers.get('retry-after')]).toEqual([529, '7']);
    expect(await first.json()).toEqual({ type: 'error', error: { type: 'overloaded_error', message: 'busy' } });
    expect((await post()).status).toBe(529);
    expect(await (await post()).json()).toMatchObject({ content: [{ text: 'hi' }] });
    expect(api?.served.total.replies).toBe(1);
  });

  test('a step that only fails gives way to the next one, counted separately for each session', async () => {
    start([{ status: 400, errorType: 'odd', times: 1 }, { text: 'next' }]);
    expect(await (await post()).json()).toMatchObject({ error: { type: 'odd' } });
    const other = { headers: { 'x-api-key': 'k', 'x-claude-code-session-id': 'id-2' } };
    expect((await post(hello, {}, other)).status).toBe(400);
    expect(await (await post()).json()).toMatchObject({ content: [{ text: 'next' }] });
  });

  test('a fault in the middle of an answer comes after its number of events', async () => {
    start([{ status: 529, afterEvents: 3, text: 'hi' }]);
    const events = (await (await post(hello, { stream: true })).text()).match(/^event: .*$/gm) ?? [];
    expect([...events]).toEqual(
      ['message_start', 'content_block_start', 'content_block_delta', 'error'].map((name) => `event: ${name}`),
    );
    // A plain answer has no middle.
    await api?.stop();
    start([{ status: 529, afterEvents: 3, text: 'hi' }]);
    expect((await post()).status).toBe(529);
    await api?.stop();
    start([{ cut: true, afterEvents: 2, text: 'never' }]);
    await expect(post(hello, { stream: true }).then((response) => response.text())).rejects.toThrow();
    expect(api?.served.total.replies).toBe(0);
  });

  test('a limit ends for all sessions at its reset, and applies only to its models', async () => {
    start([{ limit: { window: 'five_hour', lastsMs: 60_000 }, models: ['opus'], text: 'hi' }]);
    const refused = await post();
    expect(refused.status).toBe(429);
    const reset = refused.headers.get('anthropic-ratelimit-unified-reset');
    expect(Number(reset) * 1000).toBeGreaterThan(Date.now());
    expect((await post()).headers.get('anthropic-ratelimit-unified-reset')).toBe(reset);
    expect((await post(hello, { model: 'claude-sonnet-5' })).status).toBe(200);
    await api?.stop();
    start([{ limit: { window: 'five_hour', lastsMs: 0 }, text: 'hi' }]);
    for (;;) if ((await post()).status === 200) break;
  });

  test('a proxy page is sent unchanged', async () => {
    start([{ status: 403, body: '<html>Blocked</html>' }]);
    const response = await post();
    expect([response.status, response.headers.get('content-type')]).toEqual([403, 'text/html']);
    expect(await response.text()).toBe('<html>Blocked</html>');
  });

  test('faults without a number last forever', async () => {
    start([{ status: 401 }, { text: 'never' }]);
    for (let i = 0; i < 5; i++) expect((await post()).status).toBe(401);
  });

  test('a hanging reply ends with its client and costs nothing', async () => {
    const arrived = Promise.withResolvers<void>();
    start([{ text: 'hi', hang: true, times: 1 }], { onRequest: () => arrived.resolve() });
    const client = new AbortController();
    const hanging = post(hello, {}, { signal: client.signal });
    await arrived.promise;
    client.abort();
    await expect(hanging).rejects.toThrow();
    expect(await (await post()).json()).toMatchObject({ content: [{ text: 'hi' }] });
    expect(api?.served.total.replies).toBe(1);
  });
});

test('an orphan tool result is reported with the number of its request', async () => {
  start([{ text: 'hi' }]);
  await post();
  const orphan: Message = { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'toolu_x', content: 'y' }] };
  await post([...hello, { role: 'assistant', content: 'no call' }, orphan]);
  expect(api?.problems).toEqual(['request 2: tool_result toolu_x answers no tool_use']);
});
