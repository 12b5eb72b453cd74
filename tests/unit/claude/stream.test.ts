/**
 * Promises: the fold of a stream yields what runs, what was done and what it cost, even with several or late results.
 * claude's own figures take precedence, missing parts are estimated, nothing is counted twice, and any lines give a
 * state.
 */
import { describe, expect, test } from 'bun:test';
import { type ClaudeMessage, parseLine } from '../../../src/claude/messages.ts';
import { estimateCost } from '../../../src/claude/pricing.ts';
import { noTotals, type ReportedTotals } from '../../../src/claude/spending.ts';
import { type AttemptStream, emptyStream, foldMessage, isSuccess, usageOf } from '../../../src/claude/stream.ts';
import type { PriceTable } from '../../../src/core/group.ts';
import { fc } from '../../support/property.ts';

const foldWith = (prices: PriceTable, ...lines: object[]): AttemptStream =>
  lines.map((line) => parseLine(JSON.stringify(line))).reduce(foldMessage, emptyStream(prices));
const fold = (...lines: object[]): AttemptStream => foldWith({}, ...lines);

const init = { type: 'system', subtype: 'init', session_id: 's1', model: 'claude-opus-4-8[1m]', cwd: '/p' };

function says(id: string, content: object[], more: object = {}, model = 'claude-opus-4-8') {
  const usage = { input_tokens: 1000, output_tokens: 1 };
  return { type: 'assistant', session_id: 's1', message: { id, model, content, usage }, ...more };
}
const text = (value: string) => ({ type: 'text', text: value });
const call = (id: string, name: string, input: object) => ({ type: 'tool_use', id, name, input });
function answer(id: string, isError = false) {
  const content = [{ type: 'tool_result', tool_use_id: id, content: 'x', is_error: isError }];
  return { type: 'user', message: { content } };
}
function models(usd: number, input: number) {
  return { 'claude-opus-4-8[1m]': { inputTokens: input, outputTokens: 200, costUSD: usd } };
}
function result(usd: number, more: object = {}) {
  const fixed = { type: 'result', subtype: 'success', is_error: false, num_turns: 1, result: 'ok' };
  return { ...fixed, total_cost_usd: usd, modelUsage: models(usd, 1000), ...more };
}
function usage(usd: number, more: object = models(usd, 1000)) {
  const session = { total_cost_usd: usd, model_usage: more };
  return { type: 'control_response', response: { subtype: 'success', request_id: 'usage:1', response: { session } } };
}
const base = (usd: number, more: object = models(usd, 1000)) => {
  const { response } = usage(usd, more);
  return { type: 'control_response', response: { ...response, request_id: 'usage:base' } };
};
const interrupted = { type: 'control_response', response: { subtype: 'success', request_id: 'interrupt:a' } };
const hook = (outcome: string, event = 'SessionStart') => ({
  ...{ type: 'system', subtype: 'hook_response', hook_name: `${event}:startup` },
  ...{ hook_event: event, outcome },
});

describe('foldMessage', () => {
  test('foldMessage keeps the conversation’s init data and every session id in order', () => {
    const s = fold({ ...hook('success'), session_id: 's0' }, init, { type: 'x', session_id: 's2' }, init);
    expect(s).toMatchObject({ sawInit: true, claudeSessionId: 's1', model: 'claude-opus-4-8[1m]', lines: 4 });
    expect(s.claudeSessionIds).toEqual(['s0', 's1', 's2']);
  });

  test('foldMessage shows the running tool, and the calling tool again after a sub-agent’s tool', () => {
    const agent = says('m1', [call('a', 'Agent', { description: 'look around' })]);
    const inner = says('m2', [call('b', 'Edit', { file_path: '/p/src/a.ts' })], { parent_tool_use_id: 'a' });
    expect(fold(init, agent).currentTool).toBe('Agent look around');
    expect(fold(init, agent, inner).currentTool).toBe('Edit src/a.ts');
    expect(fold(init, agent, inner, answer('b')).currentTool).toBe('Agent look around');
    const done = fold(init, agent, inner, answer('b'), answer('a', true));
    expect(done.currentTool).toBeUndefined();
    expect([done.toolsDone, done.openTools.size]).toEqual([1, 0]);
  });

  test('displayed text has no control characters and at most 80 or 200 characters', () => {
    const command = `\u001b[31mnpm\u0007 test\n${'x'.repeat(500)}`;
    const s = fold(
      says('m1', [text(`\u001b]0;title\u0007hello\u202e ${'y'.repeat(900)}`), call('a', 'Bash', { command })]),
    );
    expect(s.currentTool).toStartWith('Bash npm test x');
    expect(s.currentTool?.length).toBe(80);
    expect(s.lastText).toStartWith('hello y');
    expect(s.lastText?.length).toBe(200);
  });

  test('the end of a turn clears running tools, because interrupted calls get no result', () => {
    const s = fold(init, says('m1', [call('a', 'Bash', { command: 'sleep 9' })]), result(0.01));
    expect([s.currentTool, s.openTools.size]).toEqual([undefined, 0]);
  });

  test('foldMessage counts open tasks', () => {
    const started = { type: 'system', subtype: 'task_started', task_id: 't' };
    const ended = { type: 'system', subtype: 'task_notification', task_id: 't' };
    expect([...fold(started, started).openTasks.keys()]).toEqual(['t']);
    expect(fold(started, ended, ended).openTasks.size).toBe(0);
  });

  test('only a successful SessionStart proves the hook', () => {
    expect(fold(hook('error'))).toMatchObject({ hookSeen: true, hookOk: false });
    expect(fold(hook('success', 'PreToolUse'))).toMatchObject({ hookSeen: false, hookOk: false });
    expect(fold(hook('error'), hook('success'))).toMatchObject({ hookSeen: true, hookOk: true });
  });

  test('a transient failure is shown until the model answers', () => {
    const retry = {
      type: 'system',
      subtype: 'api_retry',
      attempt: 1,
      max_retries: 6,
      error: 'authentication_failed',
      error_status: 401,
    };
    const troubled = fold(init, retry);
    expect(troubled).toMatchObject({
      apiError: 'authentication_failed',
      lastRetry: { attempt: 1, attemptsMax: 6, errorStatus: 401 },
    });
    const cured = fold(init, retry, says('m1', [text('hi')]));
    expect([cured.apiError, cured.lastRetry]).toEqual([undefined, undefined]);
    const synthetic = says('m2', [text('Not logged in')], { error: 'billing_error' }, '<synthetic>');
    expect(fold(init, synthetic)).toMatchObject({ apiError: 'billing_error', costUsd: 0 });
  });

  test('a background task runs until its end is reported or it leaves the list of background tasks', () => {
    const task = (subtype: string, id: string) => ({ type: 'system', subtype: `task_${subtype}`, task_id: id });
    const background = (...ids: readonly string[]) => {
      return { type: 'system', subtype: 'background_tasks_changed', tasks: ids.map((id) => ({ task_id: id })) };
    };
    const open = (...lines: readonly object[]) => [...fold(...lines).openTasks.keys()];
    const begun = [task('started', 'front'), background('back'), task('started', 'back')];
    expect(open(...begun)).toEqual(['front', 'back']);
    expect(open(...begun, background())).toEqual(['front']);
    expect(open(...begun, task('notification', 'back'))).toEqual(['front']);
    expect(open(...begun, task('notification', 'front'), background('back', 'more'))).toEqual(['back', 'more']);
    expect(open(...begun, background('back', 'front'), background())).toEqual([]);
  });

  test('foldMessage counts compactions, malformed lines and denials', () => {
    const s = fold(
      { type: 'system', subtype: 'compact_boundary' },
      result(0, { permission_denials: [{ tool_use_id: 'a', tool_name: 'Write' }] }),
    );
    foldMessage(s, { kind: 'malformed', text: 'x' });
    expect(s).toMatchObject({ compactions: 1, malformed: 1 });
    expect([...s.denials]).toEqual([['a', { tool: 'Write', target: '' }]]);
  });
});

describe('results', () => {
  const failing = { is_error: true, subtype: 'error_during_execution' };

  test('the last result decides, and turns are summed', () => {
    const s = fold(init, result(0.01, { result: 'one' }), init, result(0.02, { result: 'two', num_turns: 3 }));
    expect(s.lastResult?.result).toBe('two');
    expect(usageOf(s, 5)).toMatchObject({ costUsd: 0.02, turns: 4, durationMs: 5 });
  });

  test('a success before a failing turn does not decide', () => {
    const followUp = { origin: { kind: 'task-notification' } };
    const s = fold(result(0.01), result(0.02, { ...followUp, ...failing }));
    expect(s).toMatchObject({ lastResult: { isError: true }, costUsd: 0.02, successBeforeAnswer: false });
  });

  test('a success completes the work only if no turn follows it', () => {
    const task = { type: 'system', subtype: 'task_started', task_id: 't' };
    expect(fold(task, result(0)).successBeforeAnswer).toBe(false);
    expect(fold(result(0), init).successBeforeAnswer).toBe(false);
    expect(fold(result(0), interrupted, init).successBeforeAnswer).toBe(true);
  });

  test('claude is idle when its last report says so', () => {
    const state = (name: string) => ({ type: 'system', subtype: 'session_state_changed', state: name });
    const idleAfter = (...names: readonly string[]) => fold(...names.map(state)).isIdle;
    expect([idleAfter(), idleAfter('running', 'idle'), idleAfter('idle', 'running')]).toEqual([false, true, false]);
  });

  test('a success completes the work only before the answer to an interrupt', () => {
    expect(fold(result(0), interrupted)).toMatchObject({ interruptAnswered: true, successBeforeAnswer: true });
    expect(fold(interrupted, result(0))).toMatchObject({ interruptAnswered: true, successBeforeAnswer: false });
    expect(fold(result(0, failing), interrupted).successBeforeAnswer).toBe(false);
    expect(fold(usage(0.01)).interruptAnswered).toBe(false);
  });

  test('isSuccess requires a turn', () => {
    const s = fold(result(0, { num_turns: 0 }));
    expect(s.lastResult !== undefined && isSuccess(s.lastResult)).toBe(false);
  });
});

describe('cost', () => {
  test('cost is estimated from distinct messages until claude reports it', () => {
    const s = fold(init, says('m1', [text('a')]), says('m1', [text('b')]), says('m2', [text('c')]));
    expect(s).toMatchObject({ estimated: true, tokens: { input: 2000, output: 2 } });
    expect(s.costUsd).toBeCloseTo(0.01005, 8);
    expect(Object.keys(s.models)).toEqual(['claude-opus-4-8[1m]']);
    expect(usageOf(s, 0)).toMatchObject({ estimated: true, turns: 2 });
  });

  test('cost is claude’s figure once reported, plus later messages', () => {
    const named = fold(init, says('m1', [text('a')]), usage(0.01));
    expect(named).toMatchObject({ costUsd: 0.01, estimated: false, tokens: { input: 1000, output: 200 } });
    expect(usageOf(named, 0).estimated).toBeUndefined();
    const since = fold(init, says('m1', [text('a')]), usage(0.01), says('m2', [text('b')]));
    expect(since).toMatchObject({ estimated: true, tokens: { input: 2000, output: 201 } });
    expect(since.costUsd).toBeCloseTo(0.015025, 8);
  });

  test('cost keeps a get_usage figure that is higher than the result of a delayed turn', () => {
    const s = fold(init, usage(0.05, models(0.05, 5000)), result(0.02));
    expect(s).toMatchObject({ costUsd: 0.05, tokens: { input: 5000 }, estimated: false });
  });

  test('cost uses the newer figures per model of a result with an outdated total', () => {
    const s = fold(init, result(0.02, { modelUsage: models(0.04, 4000) }));
    expect(s).toMatchObject({ costUsd: 0.04, tokens: { input: 4000 } });
  });

  test('cost keeps the input of an aborted answer, which claude counts as zero', () => {
    const s = fold(init, says('m1', [text('a')]), result(0, { modelUsage: {} }));
    expect(s.costUsd).toBeCloseTo(0.005025, 8);
    expect(s.estimated).toBe(true);
  });

  test('lines that claude wrote itself cost nothing', () => {
    expect(fold(init, says('m1', [text('a')], {}, '<synthetic>'))).toMatchObject({ costUsd: 0, estimated: false });
  });

  const line = fc.oneof(
    fc.nat({ max: 9 }).map((id) => says(`m${id}`, [text('x')])),
    fc.float({ min: 0, max: 5, noNaN: true }).map((usd) => result(usd)),
    fc.float({ min: 0, max: 5, noNaN: true }).map((usd) => usage(usd)),
    fc.constantFrom(init, answer('a'), interrupted, says('m1', [call('a', 'Bash', { command: 'x' })])),
    fc.dictionary(fc.constantFrom('type', 'subtype', 'message', 'task_id', 'modelUsage'), fc.jsonValue()),
  );

  test('cost falls only to a figure of claude, never below its last one, and the fold is deterministic', () => {
    fc.assert(
      fc.property(fc.array(line, { maxLength: 60 }), (lines) => {
        const s = emptyStream();
        let before = 0;
        let named = 0;
        for (const one of lines) {
          const message = parseLine(JSON.stringify(one)) as ClaudeMessage;
          foldMessage(s, message);
          const isClaim = message.kind === 'result' || message.kind === 'control-response';
          if (isClaim) named = Math.max(named, message.costUsd ?? 0);
          expect(s.costUsd).toBeGreaterThanOrEqual(isClaim ? named : before);
          before = s.costUsd;
        }
        expect(fold(...lines)).toEqual(s);
      }),
    );
  });

  const dear: PriceTable = { opus: { input: 50, output: 50, cacheCreation: 50, cacheRead: 50 } };

  test('cost is claude’s figure even where the price table is higher', () => {
    const s = foldWith(dear, init, says('m1', [text('a')]), result(0.01));
    expect(s).toMatchObject({ costUsd: 0.01, estimated: false, tokens: { input: 1000, output: 200 } });
    const unknown = { ...init, model: 'nonsense' };
    const modelUsage = { nonsense: { inputTokens: 1000, outputTokens: 200, costUSD: 0.01 } };
    const named = fold(unknown, says('m1', [text('a')], {}, 'nonsense'), result(0.01, { modelUsage }));
    expect(named).toMatchObject({ costUsd: 0.01, estimated: false });
    // A result that arrived before the last request leaves that to the estimate.
    const since = foldWith(dear, init, says('m1', [text('a')]), result(0.01), says('m2', [text('b')]));
    expect(since).toMatchObject({ costUsd: expect.closeTo(0.01 + 0.05005, 8), estimated: true });
  });

  test('cost is counted once when the API reports another model name than claude requested', () => {
    for (const name of ['claude-opus-4-8-20260101', 'my-gateway']) {
      const s = foldWith(dear, init, says('m1', [text('a')], {}, name), result(0.01));
      expect(s).toMatchObject({ costUsd: 0.01, estimated: false });
    }
  });

  test('a message continues after the lines between its parts', () => {
    const late = result(0.001, { origin: { kind: 'task-notification' }, modelUsage: {} });
    const s = fold(init, says('m1', [text('a')]), late, says('m2', [text('b')]), says('m1', [text('c')]));
    expect(s).toMatchObject({ messages: 2, tokens: { input: 2000 } });
  });

  test('tokens that claude cannot count stay counted, whatever it counts later', () => {
    const cut = [init, says('m1', [text('a')]), result(0, { modelUsage: {} })];
    const later = [says('m2', [text('b')]), result(0.01), says('m3', [text('c')])];
    expect(fold(...cut, ...later).costUsd).toBeCloseTo(0.005 + 0.01 + 0.005, 4);
    const s = fold(...cut, ...later, result(0.03, { modelUsage: models(0.03, 2000) }));
    expect(s.costUsd).toBeCloseTo(0.005 + 0.03, 4);
    expect(s.estimated).toBe(true);
  });

  const oneCall = fc.record({
    model: fc.constantFrom('claude-opus-4-8', 'claude-haiku-4-5'),
    input: fc.integer({ min: 1, max: 5000 }),
    cacheRead: fc.nat({ max: 50_000 }),
    output: fc.integer({ min: 1, max: 900 }),
    /** One line of it is printed. */
    seen: fc.boolean(),
    /** The API bills its input, claude does not. */
    cutOff: fc.boolean(),
    asked: fc.constantFrom('never', 'before its end', 'after its end'),
  });

  test('cost is claude’s total plus the estimate of aborted answers, whatever the price table', () => {
    fc.assert(
      fc.property(fc.array(oneCall, { maxLength: 20 }), fc.constantFrom(0.1, 1, 10), (calls, factor) => {
        const price = { input: 5 * factor, output: 25 * factor, cacheCreation: 0, cacheRead: 0.5 * factor };
        const prices: PriceTable = { opus: price, haiku: price };
        const told: Record<string, { inputTokens: number; cacheReadInputTokens: number } & Record<string, number>> = {};
        const lines: object[] = [{ ...init, model: 'claude-opus-4-8' }];
        let [totalUsd, cutUsd, cutOutputUsd] = [0, 0, 0];
        calls.forEach(({ model, input, cacheRead, output, seen, cutOff, asked }, index) => {
          const inputs = { input_tokens: input, cache_read_input_tokens: cacheRead };
          const message = { id: `m${index}`, model, content: [], usage: { ...inputs, output_tokens: 1 } };
          if (seen) lines.push({ type: 'assistant', message });
          if (asked === 'before its end') lines.push(usage(totalUsd, structuredClone(told)));
          if (cutOff) {
            const tokens = { input, cacheRead, output: 0, cacheCreation: 0 };
            if (seen) cutUsd += estimateCost(model, tokens, prices);
            if (seen) cutOutputUsd += estimateCost(model, { ...tokens, input: 0, cacheRead: 0, output: 1 }, prices);
            return;
          }
          const usd = (input * 5 + cacheRead * 0.5 + output * 25) / 1e6;
          totalUsd += usd;
          const before = told[model] ?? { inputTokens: 0, cacheReadInputTokens: 0, outputTokens: 0, costUSD: 0 };
          told[model] = {
            inputTokens: before.inputTokens + input,
            cacheReadInputTokens: before.cacheReadInputTokens + cacheRead,
            outputTokens: (before.outputTokens ?? 0) + output,
            costUSD: (before.costUSD ?? 0) + usd,
          };
          if (asked === 'after its end') lines.push(usage(totalUsd, structuredClone(told)));
        });
        const s = foldWith(prices, ...lines, result(totalUsd, { modelUsage: told }));
        expect(s.costUsd).toBeGreaterThan(totalUsd - 1e-9);
        expect(s.costUsd).toBeLessThan(totalUsd + cutUsd + cutOutputUsd + 1e-9);
        if (calls.every(({ seen }) => seen)) expect(s.costUsd).toBeGreaterThan(totalUsd + cutUsd - 1e-9);
        if (cutUsd === 0) expect(s.estimated).toBe(false);
      }),
    );
  });
});

describe('totals that continue from an earlier process', () => {
  test('continued totals count by their growth, in total and per model', () => {
    const s = fold(
      base(0.4),
      init,
      says('m1', []),
      usage(0.41, models(0.41, 2000)),
      result(0.45, { modelUsage: models(0.45, 3000) }),
    );
    expect(s.costUsd).toBeCloseTo(0.05, 9);
    expect(s.tokens).toMatchObject({ input: 2000, output: 0 });
    expect(s.models['claude-opus-4-8[1m]']?.costUsd).toBeCloseTo(0.05, 9);
    expect(s.estimated).toBe(false);
  });

  test('totals that start at zero count as a whole', () => {
    expect(fold(base(0, {}), init, result(0.4))).toMatchObject({ costUsd: 0.4, tokens: { input: 1000, output: 200 } });
  });

  test('the unrecorded part of continued totals counts: a full disk lost its record', () => {
    const tokens = { input: 500, output: 0, cacheRead: 0, cacheCreation: 0 };
    const booked: ReportedTotals = { costUsd: 0.25, models: { 'claude-opus-4-8[1m]': { costUsd: 0.25, tokens } } };
    const on = (known: ReportedTotals, ...lines: object[]) =>
      lines
        .map((line) => parseLine(JSON.stringify(line)))
        .reduce(foldMessage, emptyStream({}, { findBase: () => noTotals, booked: known }));
    const lines = [base(0.4, models(0.4, 1000)), init, result(0.45, { modelUsage: models(0.45, 3000) })];
    const s = on(booked, ...lines);
    expect(s).toMatchObject({
      costUsd: expect.closeTo(0.2, 9),
      unrecordedCostUsd: expect.closeTo(0.15, 9),
      estimated: false,
    });
    expect(s.tokens).toMatchObject({ input: 2500 });
    expect(s.models['claude-opus-4-8[1m]']?.costUsd).toBeCloseTo(0.2, 9);
    // The estimate was higher, or sums differ in their last digits: nothing is added.
    for (const costUsd of [0.4, 0.5, 0.4 - 5e-7]) {
      expect(on({ ...booked, costUsd }, ...lines)).toMatchObject({
        costUsd: expect.closeTo(0.05, 9),
        unrecordedCostUsd: 0,
      });
    }
    const odd = on(booked, base(0.4, models(0.4, 1000)), base(0.4, models(0.4, 1000)), init);
    expect(odd).toMatchObject({ costUsd: expect.closeTo(0.15, 9) });
  });

  test('a message that continued totals do not contain yet stays open', () => {
    const s = fold(base(0.4), init, says('m1', []), usage(0.4));
    expect(s).toMatchObject({
      costUsd: estimateCost('claude-opus-4-8', { input: 1000, output: 1, cacheRead: 0, cacheCreation: 0 }),
      estimated: true,
    });
  });

  test('totals from before an attempt are looked up once, and only when a total is reported', () => {
    let asked = 0;
    const findBase = () => {
      asked += 1;
      return { costUsd: 0.4, models: {} };
    };
    const lines = [init, says('m1', []), usage(0.41, {}), result(0.42, { modelUsage: {} })];
    const streams = [lines.slice(0, 2), lines, [base(0.3, {}), ...lines]].map((some) =>
      some.map((line) => parseLine(JSON.stringify(line))).reduce(foldMessage, emptyStream({}, { findBase })),
    );
    expect(streams.slice(1).map(({ costUsd }) => costUsd)).toEqual([expect.closeTo(0.02, 9), expect.closeTo(0.12, 9)]);
    expect(asked).toBe(1);
  });

  test('totals restart or continue with the conversation, and nothing is lost either way', () => {
    const cleared = { ...init, session_id: 's2' };
    const before = [base(0.4), init, says('m1', []), result(0.45, { modelUsage: models(0.45, 2000) })];
    const restarted = fold(...before, cleared, result(0, { modelUsage: {} }), says('m2', []), result(0.02));
    expect(restarted).toMatchObject({ costUsd: expect.closeTo(0.07, 9), tokens: { input: 2000 }, estimated: false });
    const on = fold(
      ...before,
      cleared,
      result(0.45, {}),
      says('m2', []),
      result(0.47, { modelUsage: models(0.47, 3000) }),
    );
    expect(on).toMatchObject({ costUsd: expect.closeTo(0.07, 9), tokens: { input: 2000 }, estimated: false });
    expect(restarted.claudeSessionIds).toEqual(['s1', 's2']);
  });

  test('totals never reduce the cost, whatever their order and sums', () => {
    const usd = fc.double({ min: 0, max: 10, noNaN: true });
    fc.assert(
      fc.property(usd, fc.array(usd), (first, later) => {
        const s = fold(
          base(first),
          init,
          ...later.map((total) => usage(total, models(total, Math.round(total * 100)))),
        );
        expect(s.costUsd).toBeGreaterThanOrEqual(0);
        expect(Object.values(s.tokens).every((count) => count >= 0)).toBe(true);
        expect(s.costUsd).toBeCloseTo(Math.max(0, ...later.map((total) => total - first)), 6);
      }),
    );
  });
});
