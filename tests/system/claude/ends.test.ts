/**
 * Promises: the outcome of a real claude session is the same for every version's wording: exhausted budget, API
 * refusal, usage limit, open tasks, denied tools. The model is scripted, on loopback.
 */
import { afterEach, describe, expect, setDefaultTimeout, test } from 'bun:test';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { refusalLine, userMessage } from '../../../src/claude/control.ts';
import { attemptOutcome } from '../../../src/claude/outcome.ts';
import { complaintsOf, denialCounts, emptyStream, foldMessage } from '../../../src/claude/stream.ts';
import type { Step } from '../../../src/rehearsal/script.ts';
import {
  claudeBinary,
  openRig,
  prepareSession,
  type Rig,
  type SessionOptions,
  startClaude,
  stepLimitMs,
} from '../../support/claude/rig.ts';

setDefaultTimeout(stepLimitMs);

const rigs: Rig[] = [];
afterEach(async () => {
  for (const rig of rigs.splice(0)) await rig.close();
});

interface Wish {
  readonly args?: readonly string[];
  readonly options?: (rig: Rig) => SessionOptions;
  /** What the project's hooks print, by event. */
  readonly hooks?: Readonly<Record<string, object>>;
}

/** A session with these steps, to the end of its process. */
async function sessionWith(steps: readonly Step[], { args = [], options = () => ({}), hooks = {} }: Wish = {}) {
  const rig = openRig(steps);
  rigs.push(rig);
  const printing = Object.entries(hooks).map(([event, output]) => {
    const command = `cat >/dev/null; cat '${rig.write(`${event}.json`, output)}'`;
    return [event, [{ hooks: [{ type: 'command', command }] }]];
  });
  rig.write('project/.claude/settings.json', { hooks: Object.fromEntries(printing) });
  const session = prepareSession(rig, options(rig));
  const claude = startClaude(rig, [...session.args, ...args], session.env);
  claude.send(userMessage('go'));
  await claude.until((m) => m.kind === 'result');
  const code = await claude.end();
  const messages = claude.messages();
  const stream = messages.reduce(foldMessage, emptyStream());
  const exit = { kind: 'exited', code } as const;
  const input = { stream, exit, endedByUs: true, found: 'watched', expectHook: true, expectStructured: false } as const;
  return { messages, stream, outcome: attemptOutcome(input) };
}

/** The option that adds a server whose tool asks the user for a colour. */
function askingServer(): string {
  const args = [join(import.meta.dir, '../../support/rehearsal/asking-server.ts')];
  return `--mcp-config=${JSON.stringify({ mcpServers: { asker: { command: process.execPath, args } } })}`;
}

const reset = 2_000_000_000;
const limitHeaders = {
  'anthropic-ratelimit-unified-status': 'rejected',
  'anthropic-ratelimit-unified-reset': String(reset),
  'anthropic-ratelimit-unified-representative-claim': 'five_hour',
};

describe.skipIf(claudeBinary === undefined)('claude', () => {
  test('stops at its budget', async () => {
    const dear = { tool: 'Bash', input: { command: 'true' }, usage: { input: 200_000, output: 2_000 } };
    const { outcome } = await sessionWith([dear, { text: 'never' }], { args: ['--max-budget-usd', '0.02'] });
    expect(outcome).toMatchObject({ status: 'paused', reason: 'budget' });
  });

  test('ends on an API error that no retry can fix', async () => {
    const refused = { status: 400, errorType: 'invalid_request_error', message: 'nope' };
    const { outcome } = await sessionWith([refused]);
    expect(outcome).toMatchObject({ status: 'failed', reason: 'api-error' });
    expect(outcome).not.toHaveProperty('transient');
    expect(outcome).toHaveProperty('message', expect.stringContaining('The API answered 400'));
  });

  test("ends at a subscription's usage limit and reports its reset", async () => {
    const limit = { status: 429, errorType: 'rate_limit_error', message: 'limit', headers: limitHeaders };
    const caller = (rig: Rig) => ({ CLAUDE_CODE_OAUTH_TOKEN: 'sk-ant-oat01-test', ANTHROPIC_BASE_URL: rig.api.url });
    const { outcome } = await sessionWith([limit], { options: (rig) => ({ caller: caller(rig) }) });
    const told = { status: 'paused', reason: 'limit', resetsAtMs: reset * 1000, limitType: 'five_hour' };
    expect(outcome).toMatchObject(told);
    expect(outcome).not.toHaveProperty('limitedModel');
    const headers = { ...limitHeaders, 'anthropic-ratelimit-unified-representative-claim': 'seven_day_opus' };
    const ofModel = await sessionWith([{ ...limit, headers }], { options: (rig) => ({ caller: caller(rig) }) });
    const message = expect.stringMatching(/usage limit of Opus.* another model/);
    expect(ofModel.outcome).toMatchObject({ ...told, limitType: 'seven_day_opus', limitedModel: 'Opus', message });
  });

  test('names each denied call once, and new ones as they happen', async () => {
    const write = { tool: 'Write', input: { file_path: '/never-written', content: '' } };
    const calls = [{ tool: 'Bash', input: { command: 'touch x' } }, write];
    const steps = [{ tools: calls }, { tool: 'Bash', input: { command: 'ls' } }, { text: 'done' }];
    const { messages, stream, outcome } = await sessionWith(steps, {
      args: ['--disallowedTools=Bash(touch:*)'],
      options: () => ({ allowedTools: ['Bash(ls:*)'] }),
    });
    expect(denialCounts(stream)).toEqual({ calls: 2, tools: ['Bash', 'Write'], first: 'Bash touch x' });
    expect(outcome.warnings.map(({ message }) => message)).toEqual([
      '2 tool calls were denied: Bash, Write; first Bash touch x.',
    ]);
    const live = messages.flatMap((m) => (m.kind === 'denied' ? [m.tool] : []));
    expect([[], ['Bash', 'Write']]).toContainEqual(live);
  });

  const work: Step = { text: 'I try.', tool: 'Bash', input: { command: 'true' } };
  const allowed = { options: () => ({ allowedTools: ['Bash'] }) };

  test('is not completed when a hook stops it, and the hook is quoted', async () => {
    const stops = { continue: false, stopReason: 'not on Fridays' };
    const message = expect.stringContaining('not on Fridays');
    for (const event of ['PreToolUse', 'PostToolUse', 'Stop']) {
      const { outcome } = await sessionWith([work, { text: 'done' }], { ...allowed, hooks: { [event]: stops } });
      expect(outcome).toMatchObject({ status: 'failed', reason: 'hook-stopped', message });
    }
  });

  test('is not completed when a Stop hook always blocks', async () => {
    const hooks = { Stop: { decision: 'block', reason: 'the tests are red' } };
    const { outcome } = await sessionWith([{ text: 'done' }, ...Array<Step>(20).fill({ text: 'again' })], { hooks });
    const message = expect.stringContaining('the tests are red');
    expect(outcome).toMatchObject({ status: 'failed', reason: 'hook-stopped', message });
  });

  test('is not completed when a hook defers a tool call', async () => {
    const put = { hookEventName: 'PreToolUse', permissionDecision: 'defer', permissionDecisionReason: 'ask Ann' };
    const hooks = { PreToolUse: { hookSpecificOutput: put } };
    const { outcome } = await sessionWith([work, { text: 'done' }], { ...allowed, hooks });
    expect(outcome).toMatchObject({
      status: 'failed',
      reason: 'deferred',
      message: expect.stringContaining('Bash true'),
    });
  });

  test("reports a model's refusal and the fix", async () => {
    const refuses: Step = { text: 'I cannot.', stopReason: 'refusal' };
    const { outcome } = await sessionWith([refuses, refuses, refuses]);
    const next = expect.stringContaining('Rephrase');
    expect(outcome).toMatchObject({ status: 'failed', reason: 'refused', next });
  });

  test('continues when an MCP server asks the user', async () => {
    const calls = [{ tool: 'mcp__asker__ask', input: {} }, { text: 'done' }];
    const { messages, outcome } = await sessionWith(calls, {
      args: [askingServer()],
      options: () => ({ allowedTools: ['mcp__asker'] }),
    });
    expect(outcome).toMatchObject({ status: 'completed', result: 'done' });
    const answers = messages.flatMap((m) => (m.kind === 'user' ? m.toolResults.map(({ text }) => text) : []));
    expect(answers).toEqual(['answered: {"action":"cancel"}']);
  });

  test('names the model that answered instead of the requested one', async () => {
    const overloaded = { status: 529, errorType: 'overloaded_error', message: 'Overloaded', times: 6 };
    const { outcome } = await sessionWith([{ ...overloaded, text: 'done' }], { args: ['--fallback-model=sonnet'] });
    const message = expect.stringMatching(/sonnet.* answered instead of .*opus/);
    expect(outcome).toMatchObject({ status: 'completed', warnings: [{ code: 'other-model', message }] });
  });

  /** The text of the program between the first and the last group of the expression. */
  function named(expression: string): string[] {
    const found = Bun.spawnSync(['grep', '-aoP', expression, claudeBinary ?? '']).stdout.toString();
    return [...new Set([...found.matchAll(/"([a-z_]+)"/g)].map(([, name = '']) => name))];
  }

  const tables = readFileSync(join(import.meta.dir, '../../../docs/claude-contract.md'), 'utf8').split('\n### ');
  /** The words in code font of this section of the contract. */
  function told(section: string): string[] {
    const text = tables.find((part) => part.startsWith(section)) ?? '';
    return [...text.matchAll(/`([a-z_]+)`/g)].map(([, name = '']) => name);
  }

  const list = '("[a-z_]+",)*';
  /** What the program can print, one word of each version, and the contract section that lists all. */
  const printed = [
    ['terminal_reason', `\\[${list}"(hook_stopped|turn_setup_failed)"[^]]*\\]`, 'tool_deferred', 'How a turn ends'],
    ['stop_reason', `\\[${list}"model_context_window_exceeded"[^]]*\\]`, 'refusal', 'How the model ends'],
    ['subtype of a result', String.raw`type:[\w$]+\("result"\),subtype:[\w$]+\(\K[^)]+`, 'success', 'Kinds of results'],
    [
      'subtype of a system line',
      String.raw`type:[\w$]+\("system"\),subtype:[\w$]+\(\K[^)]+`,
      'init',
      'Kinds of system',
    ],
    ['control request', 'case"can_use_tool":(case"[a-z_]+":)+', 'elicitation', 'What claude asks'],
  ] as const;

  test.each(printed)('knows every %s that this claude can print', (_, expression, one, section) => {
    const names = named(expression);
    expect(names).toContain(one);
    expect(told(section)).toEqual(expect.arrayContaining(names));
  });

  test('continues when its request to the host is refused', async () => {
    const rig = openRig([{ tool: 'Bash', input: { command: 'curl -s localhost' } }, { text: 'done' }]);
    rigs.push(rig);
    const session = prepareSession(rig, { allowedTools: [] });
    const args = session.args.filter((arg) => arg !== '--permission-prompts' && arg !== 'none');
    const claude = startClaude(rig, [...args, '--permission-prompt-tool=stdio'], session.env);
    claude.send(userMessage('go'));
    await claude.until((m) => m.kind === 'control-request');
    const asked = claude.messages().find((m) => m.kind === 'control-request');
    claude.send(refusalLine(asked?.requestId ?? ''));
    await claude.until((m) => m.kind === 'result');
    await claude.end();
    const stream = claude.messages().reduce(foldMessage, emptyStream());
    expect(stream.lastResult).toMatchObject({ subtype: 'success', result: 'done' });
    // The permission prompt was answered, so its denial gives no warning.
    expect([...stream.asked]).toHaveLength(1);
    expect(complaintsOf(stream.complaints)).toEqual([]);
  });
});
