/**
 * Promises, with the real claude: each misbehaviour of a script reaches claude as it would from the real API. Claude's
 * reactions are recorded here, because the program relies on them.
 */
import { afterEach, beforeEach, expect, setDefaultTimeout, test } from 'bun:test';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { RehearsalScript, Step } from '../../../src/rehearsal/script.ts';
import { type ScriptedApi, type ScriptedApiOptions, startScriptedApi } from '../../../src/rehearsal/scripted-api.ts';
import {
  type Claude,
  type ClaudeOptions,
  ClaudeSandbox,
  resultLineOf,
  type StreamLine,
  startClaudeProcess,
} from '../../support/rehearsal/claude-process.ts';

setDefaultTimeout(60_000);

let sandbox: ClaudeSandbox;
let api: ScriptedApi;

beforeEach(() => {
  sandbox = new ClaudeSandbox();
});
afterEach(async () => {
  expect(api.problems).toEqual([]);
  await api.stop();
  sandbox.remove();
});

const text = 'All is well.';
const login = { ANTHROPIC_API_KEY: '', CLAUDE_CODE_OAUTH_TOKEN: 'sk-ant-oat01-test' };

/** A session that meets these steps; claude retries each request once. */
function start(
  steps: readonly Step[],
  more: Partial<ClaudeOptions> = {},
  options: Partial<ScriptedApiOptions> = {},
): Claude {
  const script: RehearsalScript = { version: 1, sessions: { '*': { steps: [...steps] } } };
  api = startScriptedApi({ script, nameOf: () => undefined, ...options });
  const env = { CLAUDE_CODE_MAX_RETRIES: '1', ...more.env };
  return startClaudeProcess({ sandbox, url: api.url, session: crypto.randomUUID(), prompt: 'Go.', ...more, env });
}

async function result(...given: Parameters<typeof start>): Promise<StreamLine | undefined> {
  return resultLineOf(await start(...given).done);
}

const retries = (lines: readonly StreamLine[]) => lines.filter(({ subtype }) => subtype === 'api_retry');
const settings = (value: object) => writeFileSync(join(sandbox.config, 'settings.json'), JSON.stringify(value));

test('an overload in the middle of an answer: claude silently retries without streaming', async () => {
  const lines = await start([{ status: 529, afterEvents: 3, times: 1, text }]).done;
  expect(resultLineOf(lines)).toMatchObject({ is_error: false, result: text });
  expect(retries(lines)).toEqual([]);
  expect(api.requests.map(({ body }) => body.stream === true)).toEqual([true, false]);
});

test('a truncated answer is requested again, and the truncated part costs nothing', async () => {
  const cut = { cut: true, afterEvents: 3, text } as const;
  const lines = await start([{ ...cut, times: 1 }]).done;
  expect(resultLineOf(lines)).toMatchObject({ is_error: false, result: text });
  expect(retries(lines)).toMatchObject([{ error_status: null }]);
  expect(resultLineOf(lines)?.total_cost_usd).toBeCloseTo(api.served.total.costUsd, 9);
  await api.stop();
  expect(await result([cut])).toMatchObject({ is_error: true, api_error_status: null, terminal_reason: 'api_error' });
});

test('silence in the middle of an answer lasts until claude is interrupted', async () => {
  const reached = Promise.withResolvers<void>();
  const claude = start([{ hang: true, afterEvents: 3, text }], {}, { onRequest: () => reached.resolve() });
  await reached.promise;
  claude.interrupt();
  expect(resultLineOf(await claude.done)).toMatchObject({ subtype: 'error_during_execution', is_error: true });
});

test('slow first bytes are waited for', async () => {
  expect(await result([{ eventDelayMs: 150, text }])).toMatchObject({ is_error: false, result: text });
});

test('after a 401 claude gets a new key and repeats the request with it', async () => {
  const key = join(sandbox.root, 'key');
  writeFileSync(key, 'stale');
  settings({ apiKeyHelper: `cat '${key}'; echo fresh > '${key}'` });
  const env = { ANTHROPIC_API_KEY: '' };
  expect(await result([{ status: 401, times: 1, text }], { env })).toMatchObject({ is_error: false, result: text });
  expect(api.requests.map(({ headers }) => headers['x-api-key'])).toEqual(['stale', 'fresh']);
});

test("a 403 with a proxy's page ends the session at once, and the text of the page is lost", async () => {
  const refused = { status: 403, body: '<html><body>Blocked by the proxy of Example Inc.</body></html>' };
  expect(await result([refused])).toMatchObject({
    is_error: true,
    api_error_status: 403,
    result: 'Failed to authenticate. API Error: 403 Forbidden',
  });
  expect(api.requests).toHaveLength(1);
});

test('a usage limit of one model names its window and reset; another model still answers', async () => {
  const limit: Step = { limit: { window: 'seven_day_opus', lastsMs: 60_000 }, models: ['opus'], text };
  const lines = await start([limit], { env: login }).done;
  const info = { status: 'rejected', rateLimitType: 'seven_day_opus', resetsAt: expect.any(Number) };
  expect(lines.find(({ type }) => type === 'rate_limit_event')).toMatchObject({ rate_limit_info: info });
  expect(resultLineOf(lines)).toMatchObject({ is_error: true, api_error_status: 429 });
  expect(api.requests).toHaveLength(1);
  await api.stop();
  const other = { env: login, args: ['--model', 'claude-sonnet-5'] };
  expect(await result([limit], other)).toMatchObject({ is_error: false, result: text });
});

test('a refusal is retried once with a note; a second refusal ends the session', async () => {
  const refusal = { stopReason: 'refusal' } as const;
  const steps = [
    { ...refusal, text: 'I cannot.' },
    { ...refusal, text: 'Nor so.' },
  ];
  expect(await result(steps)).toMatchObject({ is_error: true, stop_reason: 'refusal', terminal_reason: 'api_error' });
  expect(api.requests.map(({ step }) => step)).toEqual([0, 1]);
  await api.stop();
  expect(await result([{ ...refusal, text: 'I cannot.' }, { text }])).toMatchObject({ is_error: false, result: text });
});

test('an answer with only thinking is requested once more; a second one gives a result without text', async () => {
  const steps = [{ thinking: 'Hm.' }, { text }];
  expect(await result(steps)).toMatchObject({ is_error: false, result: text, num_turns: 2 });
  await api.stop();
  expect(await result([{ thinking: 'Hm.', times: 2 }])).toMatchObject({
    subtype: 'success',
    is_error: false,
    result: '',
  });
});

test('a tool with a deferred description is searched for first and then offered', async () => {
  const offered = () => api.requests.map(({ body }) => JSON.stringify(body.tools).includes('"name":"WebFetch"'));
  const search = { tool: 'ToolSearch', input: { query: 'select:WebFetch', max_results: 1 } };
  expect(await result([search, { text }])).toMatchObject({ is_error: false, result: text });
  expect(offered()).toEqual([false, true]);
});

test('a tool call deferred by a hook ends the session as a success without text', async () => {
  const decision = { hookSpecificOutput: { hookEventName: 'PreToolUse', permissionDecision: 'defer' } };
  const command = `echo '${JSON.stringify(decision)}'`;
  settings({ hooks: { PreToolUse: [{ matcher: 'Bash', hooks: [{ type: 'command', command }] }] } });
  expect(await result([{ tool: 'Bash', input: { command: 'touch done' } }, { text }])).toMatchObject({
    subtype: 'success',
    result: '',
    terminal_reason: 'tool_deferred',
    deferred_tool_use: { name: 'Bash' },
  });
  expect(api.requests).toHaveLength(1);
});

test('a question of an MCP server waits until it is answered', async () => {
  const file = join(import.meta.dir, '../../support/rehearsal/asking-server.ts');
  const asker = { command: process.execPath, args: [file] };
  const args = ['--mcp-config', JSON.stringify({ mcpServers: { asker } })];
  const steps = [{ tool: 'mcp__asker__ask' }, { text }];
  const claude = start(steps, { args, allowedTools: 'mcp__asker__ask' });
  const asked = await claude.asked;
  expect(asked).toMatchObject({
    request: { subtype: 'elicitation', mcp_server_name: 'asker', message: 'Which colour?' },
  });
  claude.answer(asked, { action: 'cancel' });
  expect(resultLineOf(await claude.done)).toMatchObject({ is_error: false, result: text });
  expect(JSON.stringify(api.requests[1]?.body.messages)).toContain('cancel');
});
