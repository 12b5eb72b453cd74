/**
 * F3. Promises: of an attempt that broke off in the middle of a turn at least that is counted which claude's own file
 * of the conversation tells; when the machine went down, one message more is held, and all that was reserved where
 * nothing is left to tell how far it went. What ended with a result is what claude says, to the last digit.
 */
import { expect, test } from 'bun:test';
import type { KeptMessage } from '../../../src/claude/conversation.ts';
import { parseLine } from '../../../src/claude/messages.ts';
import { estimateCost } from '../../../src/claude/pricing.ts';
import { emptyStream, foldMessage, foldTotalAtEnd } from '../../../src/claude/stream.ts';
import { type BrokenOff, usageWithUnseen } from '../../../src/claude/unseen-cost.ts';
import { noTokens } from '../../../src/core/group.ts';

const model = 'claude-opus-4-8';
const startedAtMs = Date.parse('2026-01-04T12:00:00Z');

const init = { type: 'system', subtype: 'init', session_id: 's', model };
const message = (id: string) => ({
  type: 'assistant',
  message: { id, model, content: [{ type: 'text', text: 'Well.' }], usage: { input_tokens: 1_000, output_tokens: 1 } },
});
const result = { type: 'result', subtype: 'success', is_error: false, num_turns: 1, total_cost_usd: 0.011 };

function kept(id: string, output: number, atMs = startedAtMs + 1_000): KeptMessage {
  const tokens = { ...noTokens, input: 1_000, output };
  return { id, model, tokens, usd: estimateCost(model, tokens), atMs };
}

function usage(lines: readonly object[], messages: readonly KeptMessage[], more: Partial<BrokenOff>) {
  const stream = emptyStream();
  for (const line of lines) foldMessage(stream, parseLine(JSON.stringify(line)));
  const broken = { stream, machineWentDown: true, hasBegun: true, startedAtMs, reservedUsd: 2 };
  return usageWithUnseen(
    {
      ...{ ...broken, kept: () => messages, toldBefore: () => new Set(), unwritten: () => [], agentsAsking: () => [] },
      ...more,
    },
    0,
  );
}

test('what has its result is what claude says', () => {
  const ended = usage([init, message('a'), result], [kept('a', 90_000)], {});
  expect(ended.costUsd).toBe(0.011);
  expect(ended.heldUsd).toBeUndefined();
});

test('an answer is as long as claude has kept it', () => {
  const { costUsd, models, heldUsd, estimated } = usage([init, message('a')], [kept('a', 400)], {
    machineWentDown: false,
  });
  expect(costUsd).toBeCloseTo(0.015, 9);
  expect(models[model]?.costUsd).toBeCloseTo(0.015, 9);
  expect({ heldUsd, estimated }).toEqual({ heldUsd: undefined, estimated: true });
});

test('an answer that claude was killed before it had kept holds one message, as dear as the dearest', () => {
  const killed = { machineWentDown: false, unwritten: () => [''] };
  const first = usage([init, message('a')], [], killed);
  expect({ costUsd: first.costUsd, heldUsd: first.heldUsd }).toEqual({ costUsd: 0.517525, heldUsd: 0.5125 });
  const later = usage([init, message('a'), message('b')], [kept('a', 400)], killed);
  expect(later.heldUsd).toBeCloseTo(0.015, 9);
  expect(usage([init, message('a')], [], { ...killed, reservedUsd: 0.3 }).costUsd).toBe(0.3);
  // Its result says what it cost.
  expect(usage([init, message('a'), result], [], killed).costUsd).toBe(0.011);
});

test('whatever is counted has nine digits', () => {
  const odd = [kept('a', 1), kept('b', 3)].map((one) => ({ ...one, usd: 0.1234567891 }));
  const { costUsd, heldUsd, models } = usage([init, message('a'), message('b')], odd, {});
  expect([costUsd, heldUsd, models[model]?.costUsd]).toEqual([0.370370367, 0.123456789, 0.246913578]);
});

test('an answer that was long already, and stands in no file, is held by its length, each of several', () => {
  const said = (id: string, chars: number, parent?: string) => ({
    ...message(id),
    ...(parent === undefined ? {} : { parent_tool_use_id: parent }),
    message: { ...message(id).message, content: [{ type: 'text', text: 'x'.repeat(chars) }] },
  });
  // Three characters are a token: as many as claude itself counts where it is interrupted.
  const long = [init, message('a'), said('b', 30_000), said('b', 18_000)];
  const killed = { machineWentDown: false, unwritten: () => [''] };
  expect(usage(long, [kept('a', 400)], killed).heldUsd).toBeCloseTo(16_000 * 25e-6, 9);
  const agents = [init, message('a'), said('c', 3, 'one'), said('d', 48_000, 'two')];
  const begun = { ...killed, unwritten: () => ['one', 'two'] };
  expect(usage(agents, [kept('a', 400)], begun).heldUsd).toBeCloseTo(0.015 + 0.4, 9);
});

test('of an output with a torn line one message is held: the disk may have been full', () => {
  const torn = [init, message('a'), '{"type":"assist'] as unknown as object[];
  const { heldUsd } = usage(torn, [kept('a', 400)], { machineWentDown: false });
  expect(heldUsd).toBeCloseTo(0.015, 9);
});

test('what claude wrote down as it ended in good order is what it cost, and nothing is held', () => {
  const stream = emptyStream();
  for (const line of [init, message('a')]) foldMessage(stream, parseLine(JSON.stringify(line)));
  foldTotalAtEnd(stream, {
    costUsd: 0.24,
    models: { [model]: { costUsd: 0.24, tokens: { ...noTokens, input: 9_000 } } },
  });
  const told = usage([], [kept('a', 90_000)], { stream, unwritten: () => [''] });
  expect([told.costUsd, told.heldUsd, told.estimated]).toEqual([0.24, undefined, undefined]);
});

test('what comes to sub-agents while claude ends is counted once, and held for those that still asked', () => {
  const begun = { type: 'system', subtype: 'task_started', task_id: 't', tool_use_id: 'one' };
  const told = (costUsd: number, input: number, output: number, more: Partial<BrokenOff>, inTurn = false) => {
    const stream = emptyStream();
    const over = inTurn ? [] : [{ ...result, subtype: 'error_max_budget_usd', is_error: true, total_cost_usd: 0.015 }];
    for (const line of [init, message('a'), begun, ...over]) foldMessage(stream, parseLine(JSON.stringify(line)));
    const tokens = { ...noTokens, input, output };
    const haiku = { costUsd: 0, tokens: { ...noTokens, input: 9_000, output: 9_000 } };
    foldTotalAtEnd(stream, { costUsd, models: { [`${model}[1m]`]: { costUsd, tokens }, 'claude-haiku-4-5': haiku } });
    const messages = [kept('a', 400), kept('b', 200, startedAtMs + 2_000), kept('z', 200, startedAtMs - 1_000)];
    const { costUsd: cost, heldUsd, estimated } = usage([], messages, { stream, machineWentDown: false, ...more });
    return { costUsd: cost, heldUsd, estimated };
  };
  const exact = { heldUsd: undefined, estimated: undefined };
  expect(told(0.025, 2_000, 600, {})).toEqual({ costUsd: 0.025, ...exact });
  // claude counts no less than what it has kept.
  expect(told(0.03, 3_000, 800, {})).toEqual({ costUsd: 0.03, ...exact });
  // Message b is in its file and in no total of it.
  expect(told(0.015, 1_000, 400, {})).toEqual({ costUsd: 0.025, heldUsd: undefined, estimated: true });
  const asking = { agentsAsking: () => ['t', 'u'] };
  expect(told(0.025, 2_000, 600, asking)).toEqual({ costUsd: 0.055, heldUsd: 0.03, estimated: true });
  // As dear as the dearest of its own; of one that has not spoken, as the dearest of all.
  const own = [kept('a', 9_400), { ...kept('b', 200), agent: 't' }];
  expect(told(0.26, 2_000, 9_600, { ...asking, kept: () => own })).toMatchObject({ heldUsd: 0.01 + 0.24 });
  // An interrupt that claude answers ends its requests, and its totals are as it says.
  expect(told(0.015, 1_000, 400, asking, true)).toEqual({ costUsd: 0.015, ...exact });
});

test('what claude counts under another name of the model is not counted again', () => {
  const told = (name: string, answered: string) => {
    const stream = emptyStream();
    const begun = { type: 'system', subtype: 'task_started', task_id: 't', tool_use_id: 'one' };
    const over = { ...result, subtype: 'error_max_budget_usd', is_error: true, total_cost_usd: 0.015 };
    for (const line of [init, message('a'), begun, over]) foldMessage(stream, parseLine(JSON.stringify(line)));
    const tokens = { ...noTokens, input: 2_000, output: 600 };
    foldTotalAtEnd(stream, { costUsd: 0.025, models: { [name]: { costUsd: 0.025, tokens } } });
    const messages = [kept('a', 400), kept('b', 200)].map((one) => ({ ...one, model: answered }));
    return usage([], messages, { stream, machineWentDown: false }).costUsd;
  };
  expect(told('claude-opus-4-8', 'claude-opus-4-8-20261101')).toBe(0.025);
  expect(told('claude-opus-4-8[1m]', 'claude-opus-4-8')).toBe(0.025);
  expect(told('claude-opus-4-8', 'a-gateways-name')).toBe(0.025);
});

test('of a killed claude a sub-agent that has spoken is held as the dearest of all sub-agents', () => {
  const said = { ...message('c'), parent_tool_use_id: 'one' };
  const back = { type: 'user', parent_tool_use_id: 'one', message: { content: [{ type: 'tool_result' }] } };
  const messages = [kept('a', 9_400), { ...kept('c', 200), agent: 't' }];
  const { heldUsd } = usage([init, message('a'), said, back], messages, { machineWentDown: false });
  expect(heldUsd).toBeCloseTo(0.01, 9);
});

test('what other attempts have said is not counted again', () => {
  const before = [kept('z', 9_000, startedAtMs - 1), kept('a', 1)];
  expect(usage([init, message('a')], before, { machineWentDown: false }).costUsd).toBeCloseTo(0.005025, 9);
});

test('after a power cut the dearest message is held once more', () => {
  const { costUsd, heldUsd } = usage([init, message('a'), message('b')], [kept('a', 400), kept('b', 200)], {});
  expect(heldUsd).toBeCloseTo(0.015, 9);
  expect(costUsd).toBeCloseTo(0.015 + 0.01 + 0.015, 9);
});

test('an answer may pass what was reserved, for claude looks at its cap when it has come', () => {
  const { costUsd, heldUsd } = usage([init, message('a')], [kept('a', 400)], { reservedUsd: 0.02 });
  expect(heldUsd).toBeCloseTo(0.015, 9);
  expect(costUsd).toBeCloseTo(0.03, 9);
});

test('of a first message nothing is known but that it is no dearer than a long one', () => {
  expect(usage([init], [], {}).heldUsd).toBeCloseTo(0.5125, 9);
  expect(usage([init], [], { reservedUsd: 0.3 }).heldUsd).toBeCloseTo(0.3, 9);
});

test('where the transcript is lost, all that was reserved is held', () => {
  for (const machineWentDown of [true, false]) {
    const { costUsd, heldUsd } = usage([], [], { machineWentDown });
    expect({ costUsd, heldUsd }).toEqual({ costUsd: 2, heldUsd: 2 });
  }
});

test('where claude’s own file is left, that tells how far it went', () => {
  const messages = [kept('y', 9_000, startedAtMs - 1_000), kept('a', 400), kept('b', 200)];
  const { costUsd, heldUsd } = usage([], messages, {});
  expect(heldUsd).toBeCloseTo(0.23, 9);
  expect(costUsd).toBeCloseTo(0.025 + 0.23, 9);
});

test('of claude that printed nothing, what it has kept is counted; without that it has asked nothing', () => {
  const silent = { hasBegun: false, machineWentDown: false };
  expect(usage([], [], silent).costUsd).toBe(0);
  expect(usage([], [kept('y', 9_000, startedAtMs - 1)], silent).costUsd).toBe(0);
  // The disk was full: as much as one message more may have been lost.
  const { costUsd, heldUsd } = usage([], [kept('a', 400), kept('b', 200)], silent);
  expect(heldUsd).toBeCloseTo(0.015, 9);
  expect(costUsd).toBeCloseTo(0.025 + 0.015, 9);
  // The clock was set back, and these are of the attempt before.
  const toldBefore = () => new Set(['a', 'b']);
  expect(usage([], [kept('a', 400), kept('b', 200)], { ...silent, toldBefore }).costUsd).toBe(0);
  // Nobody knows how much it asked: it ended as one does that has answered, or made its file and could write nothing.
  for (const sign of [{ hasBegun: true }, { unwritten: () => [''] }])
    expect(usage([], [], { ...silent, ...sign })).toMatchObject({ costUsd: 2, heldUsd: 2, estimated: true });
  // Such a file is what a power cut leaves; what claude prints is there before it asks anything.
  expect(usage([], [], { ...silent, unwritten: () => [''], machineWentDown: true }).costUsd).toBe(0);
});

const odd = (id: string) => ({
  type: 'assistant',
  message: { id, model, content: [], usage: { input_tokens: Number.MAX_VALUE, output_tokens: 1 } },
});
const oddTotal = { ...result, total_cost_usd: Number.MAX_VALUE };
const whole = { machineWentDown: false };

test('F2: of a figure that cannot be true nothing counts, and what is left of the reservation is held', () => {
  for (const line of [odd('b'), oddTotal]) {
    const { costUsd, heldUsd, estimated, tokens } = usage([init, message('a'), line], [kept('a', 400)], whole);
    expect(costUsd).toBeCloseTo(2, 9);
    expect(heldUsd).toBeCloseTo(1.985, 9);
    expect({ estimated, tokens }).toEqual({ estimated: true, tokens: { ...noTokens, input: 1_000, output: 400 } });
  }
  // Without a reservation no more than a message can cost.
  const uncapped = { ...whole, reservedUsd: undefined } as unknown as Partial<BrokenOff>;
  expect(usage([init, odd('b')], [], uncapped).heldUsd).toBeCloseTo(0.5125, 9);
});

test('F2: a total that can be true tells what it cost after all', () => {
  const { costUsd, heldUsd, estimated } = usage([init, odd('a'), result], [], whole);
  expect({ costUsd, heldUsd, estimated }).toEqual({ costUsd: 0.011, heldUsd: undefined, estimated: undefined });
});

test('F2: totals that only go on with an impossible one hold nothing again: messages are counted', () => {
  const base = { type: 'control_response', response: { subtype: 'success', request_id: 'usage:base' } };
  const named = { ...base.response, response: { session: { total_cost_usd: Number.MAX_VALUE, model_usage: {} } } };
  const lines = [{ ...base, response: named }, init, message('a'), oddTotal];
  const { costUsd, heldUsd, estimated } = usage(lines, [kept('a', 400)], whole);
  expect({ heldUsd, estimated }).toEqual({ heldUsd: undefined, estimated: true });
  expect(costUsd).toBeCloseTo(0.015, 9);
});

const calls = (id: string, ...names: readonly string[]) => ({
  ...message(id),
  message: {
    ...message(id).message,
    content: names.map((name) => ({ type: 'tool_use', id: name, name: 'Bash', input: {} })),
  },
});
const agentCall = {
  ...message('c'),
  message: { ...message('c').message, content: [{ type: 'tool_use', id: 'inner', name: 'Agent', input: {} }] },
};
const answers = (name: string) => ({
  type: 'user',
  message: { role: 'user', content: [{ type: 'tool_result', tool_use_id: name, content: 'ok' }] },
});
const bySubagent = (line: object) => ({ ...line, parent_tool_use_id: 'agent' });
const prompt = { type: 'user', message: { role: 'user', content: [{ type: 'text', text: 'look' }] } };

test.each([
  ['its task', [init], 0.5125],
  ['the result of its tool', [init, calls('a', 'one'), answers('one')], 0.015],
  ['the last result of several', [init, calls('a', 'one', 'two'), answers('two'), answers('one')], 0.015],
  ['a sub-agent, its task', [init, calls('a', 'agent'), bySubagent(prompt)], 0.015],
  [
    'a sub-agent, the result of its tool',
    [init, calls('a', 'agent'), bySubagent(prompt), bySubagent(calls('b', 'one')), bySubagent(answers('one'))],
    0.015,
  ],
  ['what its sub-agent found', [init, calls('a', 'agent'), bySubagent(prompt), answers('agent')], 0.015],
])('one that was killed while the model had %s holds what an answer costs', (_, lines, expectedUsd) => {
  const messages = lines.length > 1 ? [kept('a', 400)] : [];
  const { heldUsd, estimated } = usage(lines, messages, { machineWentDown: false });
  expect(heldUsd).toBeCloseTo(expectedUsd, 9);
  expect(estimated).toBe(true);
});

test.each([
  [
    'several sub-agents',
    [init, calls('a', 'x', 'y'), ...['x', 'y'].map((id) => ({ ...prompt, parent_tool_use_id: id }))],
    2,
  ],
  ['a hook that lets it go on', [init, calls('a', 'one'), answers('one'), message('b'), prompt], 1],
  ['a sub-agent of a sub-agent', [init, calls('a', 'agent'), bySubagent(prompt), bySubagent(agentCall)], 1],
])('of %s, killed while asked for, as many answers are held', (_, lines, answersExpected) => {
  const { heldUsd } = usage(lines, [kept('a', 400)], { machineWentDown: false });
  expect(heldUsd).toBeCloseTo(answersExpected * 0.015, 9);
});

test.each([
  ['at work with a tool', [init, calls('a', 'one')]],
  ['one of two tools is at work', [init, calls('a', 'one', 'two'), answers('two')]],
  [
    'a sub-agent is at work with a tool',
    [init, calls('a', 'agent'), bySubagent(prompt), bySubagent(calls('b', 'one'))],
  ],
])('one that was killed while %s holds nothing', (_, lines) => {
  const { heldUsd } = usage(lines, [kept('a', 400)], { machineWentDown: false });
  expect(heldUsd).toBeUndefined();
});

test('what sub-agents have said after the last result is counted, though it is not printed', () => {
  const task = { type: 'system', subtype: 'task_started', task_id: 't', tool_use_id: 'agent' };
  const over = { ...result, subtype: 'error_max_budget_usd', is_error: true };
  const messages = [kept('y', 9_000, startedAtMs - 1), kept('a', 400), kept('b', 200), kept('c', 200)];
  const lines = [init, calls('a', 'agent'), task, bySubagent(prompt), over];
  const { costUsd, heldUsd = 0 } = usage(lines, messages, { machineWentDown: false });
  expect(costUsd - heldUsd).toBeCloseTo(0.035, 9);
  // What they were just asking is held, for each as much as the dearest answer.
  expect(heldUsd).toBeCloseTo(0.23, 9);
  // With no sub-agent left, the result tells all.
  const ended = { ...task, subtype: 'task_notification', status: 'completed' };
  expect(usage([...lines.slice(0, 4), ended, over], messages, { machineWentDown: false }).costUsd).toBe(0.011);
});
