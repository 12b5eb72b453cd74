/**
 * Promises: how a session of the real claude ended is judged the same, whatever its version calls it: a used-up budget,
 * a refusal of the API, a usage limit, tasks left open, denied tools. The model is scripted, on loopback.
 */
import { afterEach, describe, expect, setDefaultTimeout, test } from 'bun:test';
import { userMessage } from '../../../src/claude/control.ts';
import { judge } from '../../../src/claude/outcome.ts';
import { deniedOf, emptyStream, foldMessage } from '../../../src/claude/stream.ts';
import type { Step } from '../../../src/rehearsal/script.ts';
import {
  claudeBinary,
  openRig,
  patienceMs,
  prepareSession,
  type Rig,
  type SessionOptions,
  startClaude,
} from '../../support/claude/rig.ts';

setDefaultTimeout(patienceMs);

const rigs: Rig[] = [];
afterEach(async () => {
  for (const rig of rigs.splice(0)) await rig.close();
});

interface Wish {
  readonly args?: readonly string[];
  readonly options?: (rig: Rig) => SessionOptions;
}

/** A session that says and does this, to the end of its process. */
async function sessionWith(steps: readonly Step[], { args = [], options = () => ({}) }: Wish = {}) {
  const rig = openRig(steps);
  rigs.push(rig);
  const session = prepareSession(rig, options(rig));
  const claude = startClaude(rig, [...session.args, ...args], session.env);
  claude.send(userMessage('go'));
  await claude.until((m) => m.kind === 'result');
  const code = await claude.end();
  const messages = claude.messages();
  const stream = messages.reduce(foldMessage, emptyStream());
  const exit = { kind: 'exited', code } as const;
  const input = { stream, exit, endedByUs: true, found: 'watched', expectHook: true, expectStructured: false } as const;
  return { messages, stream, outcome: judge(input) };
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

  test('ends at an answer of the API that no retry cures', async () => {
    const refused = { status: 400, errorType: 'invalid_request_error', message: 'nope' };
    const { outcome } = await sessionWith([refused]);
    expect(outcome).toMatchObject({ status: 'failed', reason: 'api-error' });
    expect(outcome).not.toHaveProperty('transient');
    expect(outcome).toHaveProperty('message', expect.stringContaining('The API answered 400'));
  });

  test('ends at a usage limit of a subscription, and says when it is lifted', async () => {
    const limit = { status: 429, errorType: 'rate_limit_error', message: 'limit', headers: limitHeaders };
    const caller = (rig: Rig) => ({ CLAUDE_CODE_OAUTH_TOKEN: 'sk-ant-oat01-test', ANTHROPIC_BASE_URL: rig.api.url });
    const { outcome } = await sessionWith([limit], { options: (rig) => ({ caller: caller(rig) }) });
    const told = { status: 'paused', reason: 'limit', resetsAtMs: reset * 1000, limitType: 'five_hour' };
    expect(outcome).toMatchObject(told);
  });

  test('names each denied call once, and a newer one when it happens', async () => {
    const write = { tool: 'Write', input: { file_path: '/never-written', content: '' } };
    const calls = [{ tool: 'Bash', input: { command: 'touch x' } }, write];
    const steps = [{ tools: calls }, { tool: 'Bash', input: { command: 'ls' } }, { text: 'done' }];
    const { messages, stream, outcome } = await sessionWith(steps, {
      args: ['--disallowedTools=Bash(touch:*)'],
      options: () => ({ allowedTools: ['Bash(ls:*)'] }),
    });
    expect(deniedOf(stream)).toEqual({ calls: 2, tools: ['Bash', 'Write'], first: 'Bash touch x' });
    expect(outcome.warnings.map(({ message }) => message)).toEqual([
      '2 tool calls were denied: Bash, Write; first Bash touch x.',
    ]);
    const live = messages.flatMap((m) => (m.kind === 'denied' ? [m.tool] : []));
    expect([[], ['Bash', 'Write']]).toContainEqual(live);
  });
});
