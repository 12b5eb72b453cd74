/**
 * Promises: totals reported by claude are exact. After a kill, the usage in claude's files is counted, and
 * min(reserved − seen + m, n × m) is held: m is the larger of the most expensive message and a first message, n is
 * one plus the running sub-agents. If the extent of the attempt is unknown, its whole reservation is held.
 */
import { expect, test } from 'bun:test';
import type { KeptMessage } from '../../../src/claude/conversation.ts';
import { type EndedAttempt, finalUsage } from '../../../src/claude/final-usage.ts';
import { parseLine } from '../../../src/claude/messages.ts';
import { estimateCost } from '../../../src/claude/pricing.ts';
import { heldAfterKill } from '../../../src/claude/spending.ts';
import { emptyStream, foldMessage, foldTotalAtEnd } from '../../../src/claude/stream.ts';
import { noTokens } from '../../../src/core/group.ts';

const model = 'claude-opus-4-8';
/** US dollars; 50,000 tokens written to the cache and 8,000 of output. */
const firstUsd = 0.5125;
const startedAtMs = Date.parse('2026-01-04T12:00:00Z');

const init = { type: 'system', subtype: 'init', session_id: 's', model };
const message = (id: string) => ({
  type: 'assistant',
  message: { id, model, content: [{ type: 'text', text: 'Well.' }], usage: { input_tokens: 1_000, output_tokens: 1 } },
});
const result = { type: 'result', subtype: 'success', is_error: false, num_turns: 1, total_cost_usd: 0.011 };
const task = (id: string, type = 'local_agent') => ({
  ...{ type: 'system', subtype: 'task_started' },
  ...{ task_id: id, task_type: type },
});

function kept(id: string, output: number, atMs = startedAtMs + 1_000): KeptMessage {
  const tokens = { ...noTokens, input: 1_000, output };
  return { id, model, tokens, usd: estimateCost(model, tokens), atMs };
}

function streamOf(lines: readonly object[]) {
  const stream = emptyStream();
  for (const line of lines) foldMessage(stream, parseLine(JSON.stringify(line)));
  return stream;
}

function usage(lines: readonly object[], messages: readonly KeptMessage[], more: Partial<EndedAttempt> = {}) {
  const ended = { stream: streamOf(lines), hasBegun: true, startedAtMs, reservedUsd: 2, isBlank: () => false };
  return finalUsage({ ...ended, kept: () => messages, ...more }, 0);
}

test('a result is exact, whatever claude’s files contain', () => {
  const { costUsd, heldUsd, estimated } = usage([init, message('a'), result], [kept('a', 90_000)]);
  expect({ costUsd, heldUsd, estimated }).toEqual({ costUsd: 0.011, heldUsd: undefined, estimated: undefined });
});

test('totals that claude wrote as it ended are exact, and nothing is held', () => {
  const total = { costUsd: 0.24, models: { [model]: { costUsd: 0.24, tokens: { ...noTokens, input: 9_000 } } } };
  const stream = streamOf([init, message('a')]);
  foldTotalAtEnd(stream, total);
  const { costUsd, heldUsd, estimated } = usage([], [kept('a', 90_000)], { stream });
  expect({ costUsd, heldUsd, estimated }).toEqual({ costUsd: 0.24, heldUsd: undefined, estimated: undefined });
  // Answers to sub-agents that arrive while claude ends are in no total.
  const withAgent = streamOf([init, message('a'), task('t'), { ...result, subtype: 'error_max_budget_usd' }]);
  foldTotalAtEnd(withAgent, { costUsd: 0.015, models: {} });
  const late = usage([], [kept('a', 400), kept('b', 200)], { stream: withAgent });
  expect([late.costUsd, late.heldUsd, late.estimated]).toEqual([0.025, undefined, true]);
});

test('a killed attempt counts the messages in claude’s files, except those of other attempts', () => {
  const before = kept('z', 9_000, startedAtMs - 1);
  const { costUsd, heldUsd = 0, models, estimated } = usage([init, message('a')], [before, kept('a', 400)]);
  expect(costUsd - heldUsd).toBeCloseTo(0.015, 9);
  expect(models[model]?.costUsd).toBeCloseTo(0.015, 9);
  expect(estimated).toBe(true);
});

test('the last total counts where it is larger than the messages in the files', () => {
  const meter = { subtype: 'success', request_id: 'usage:1', response: { session: { total_cost_usd: 0.5 } } };
  const lines = [init, message('a'), { type: 'control_response', response: meter }];
  const { costUsd, heldUsd = 0 } = usage(lines, [kept('a', 400)]);
  expect(costUsd - heldUsd).toBeCloseTo(0.5, 9);
});

test('a killed attempt holds the price of a first message, or of its most expensive one', () => {
  expect(usage([init], []).heldUsd).toBeCloseTo(firstUsd, 9);
  expect(usage([init, message('a')], [kept('a', 400)]).heldUsd).toBeCloseTo(firstUsd, 9);
  const large = kept('y', 40_000, startedAtMs - 1);
  expect(usage([init, message('a')], [large, kept('a', 400)]).heldUsd).toBeCloseTo(large.usd, 9);
});

test.each([
  ['two sub-agents and a command', [task('t'), task('u'), task('v', 'local_bash')], 3],
  ['one of two sub-agents ended', [task('t'), task('u'), { ...task('t'), subtype: 'task_notification' }], 2],
])('a killed attempt holds one message for each request: %s', (_, tasks, requests) => {
  expect(usage([init, message('a'), ...tasks], [kept('a', 400)]).heldUsd).toBeCloseTo(requests * firstUsd, 9);
});

test('the held amount is min(reserved − seen + m, n × m) and never negative', () => {
  const of = (seenUsd: number, requests: number, reservedUsd?: number) => {
    const cap = reservedUsd === undefined ? {} : { reservedUsd };
    return heldAfterKill({ seenUsd, ...cap, mostExpensiveUsd: 0.1, model, requests, prices: {} });
  };
  expect(of(0.5, 1, 2)).toBeCloseTo(firstUsd, 9);
  expect(of(1.9, 3, 2)).toBeCloseTo(0.1 + firstUsd, 9);
  expect(of(3, 1, 2)).toBe(0);
  expect(of(0.5, 2)).toBeCloseTo(2 * firstUsd, 9);
  expect(of(0.5, Number.POSITIVE_INFINITY, 2)).toBeCloseTo(1.5 + firstUsd, 9);
  expect(of(0.5, Number.POSITIVE_INFINITY)).toBeCloseTo(firstUsd, 9);
});

test('a free model holds nothing for a message, and everything if the extent of the attempt is unknown', () => {
  const free = { input: 0, output: 0, cacheRead: 0, cacheCreation: 0 };
  const of = (requests: number) =>
    heldAfterKill({
      ...{ seenUsd: 0.5, reservedUsd: 2, mostExpensiveUsd: 0, model: 'local' },
      ...{ requests, prices: { local: free } },
    });
  expect([of(1), of(Number.POSITIVE_INFINITY)]).toEqual([0, 1.5]);
});

test('an unknown model holds a first message at the highest known price', () => {
  const of = (name?: string) =>
    heldAfterKill({ seenUsd: 0, mostExpensiveUsd: 0, requests: 1, prices: {}, ...(name ? { model: name } : {}) });
  const [unknown, absent] = [of('a-gateways-name'), of()];
  expect([unknown, unknown >= of('claude-opus-4-8')]).toEqual([absent, true]);
});

test('without output the files are counted, and without both the whole reservation is held', () => {
  const { costUsd, heldUsd = 0 } = usage([], [kept('y', 9_000, startedAtMs - 1), kept('a', 400), kept('b', 200)]);
  expect(costUsd - heldUsd).toBeCloseTo(0.025, 9);
  expect(heldUsd).toBeGreaterThan(0.5);
  const all = usage([], [], {});
  expect(all.heldUsd).toBeGreaterThan(2);
  expect(all.costUsd).toBe(all.heldUsd as number);
});

test('an attempt without output and files made no request, unless its files are blank', () => {
  const silent = { hasBegun: false };
  expect(usage([], [], silent).costUsd).toBe(0);
  expect(usage([], [kept('y', 9_000, startedAtMs - 1)], silent).costUsd).toBe(0);
  expect(usage([], [], { ...silent, isBlank: () => true }).heldUsd).toBeGreaterThan(2);
});

test('sub-agent messages after the last result are counted, though they are not printed', () => {
  const over = { ...result, subtype: 'error_max_budget_usd', is_error: true };
  const messages = [kept('y', 9_000, startedAtMs - 1), kept('a', 400), kept('b', 200), kept('c', 200)];
  const { costUsd, heldUsd = 0 } = usage([init, message('a'), task('t'), over], messages);
  expect(costUsd - heldUsd).toBeCloseTo(0.035, 9);
  expect(heldUsd).toBeCloseTo(2 * firstUsd, 9);
});
