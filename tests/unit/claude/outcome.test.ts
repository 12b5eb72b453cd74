/**
 * Promises: each way in which an attempt can end has one status and one reason code. Only a success printed by claude
 * gives `completed`, and every message says what happened and what to do.
 */
import { describe, expect, test } from 'bun:test';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { endings, stopReasons } from '../../../src/claude/endings.ts';
import { parseLine } from '../../../src/claude/messages.ts';
import { attemptOutcome, type JudgeInput } from '../../../src/claude/outcome.ts';
import { noTotals } from '../../../src/claude/spending.ts';
import { type AttemptStream, emptyStream, foldMessage, usageOf } from '../../../src/claude/stream.ts';
import type { StopReason } from '../../../src/core/event.ts';
import type { ExitStatus } from '../../../src/system/world.ts';

const streamOf = (...lines: object[]): AttemptStream =>
  lines.map((line) => parseLine(JSON.stringify(line))).reduce(foldMessage, emptyStream());

const init = { type: 'system', subtype: 'init', session_id: 's', model: 'claude-opus-4-8' };
const success = { type: 'result', subtype: 'success', is_error: false, num_turns: 2, result: 'all done' };
const result = (more: object) => ({ ...success, is_error: true, ...more });
const ede = result({ subtype: 'error_during_execution', result: undefined, terminal_reason: 'aborted_tools' });
const trouble = (error: string) => ({ type: 'assistant', message: { id: 'e', model: '<synthetic>' }, error });
const interrupted = { type: 'control_response', response: { subtype: 'success', request_id: 'interrupt:1' } };
const done = { type: 'user', message: { content: [{ type: 'tool_result', tool_use_id: 'ok' }] } };
const refused = { type: 'user', message: { content: [{ type: 'tool_result', tool_use_id: 'a', is_error: true }] } };
const denied = { ...success, permission_denials: [{ tool_name: 'Write', tool_use_id: 'a' }] };
const answered = { type: 'assistant', message: { id: 'm', model: 'claude-opus-4-8', content: [] } };
const asksAgain = (error_status: number | null, error: string) => {
  return { type: 'system', subtype: 'api_retry', attempt: 2, max_retries: 6, error_status, error };
};
const endForced = { type: 'system', subtype: 'notification', key: 'stop-hook-block-cap' };
const rejected = { type: 'rate_limit_event', rate_limit_info: { status: 'rejected', resetsAt: 1795310320 } };

const code = (value: number): ExitStatus => ({ kind: 'exited', code: value });
const signal = (name: string): ExitStatus => ({ kind: 'signalled', signal: name });
const unknown: ExitStatus = { kind: 'unknown' };

function judged(lines: object[], more: Partial<JudgeInput> = {}) {
  const fixed = {
    exit: code(0),
    endedByUs: false,
    found: 'watched',
    expectHook: false,
    expectStructured: false,
  } as const;
  return attemptOutcome({ ...fixed, stream: streamOf(...lines), ...more });
}
const stop = (reason: StopReason, successBeforeAnswer = false, signalled = false) => ({
  stop: { reason, successBeforeAnswer, signalled },
});

type Row = readonly [what: string, lines: object[], more: Partial<JudgeInput>, status: string, reason?: string];

const rows: Row[] = [
  ['success', [init, success], {}, 'completed'],
  ['success, exit unknown', [init, success], { exit: unknown }, 'completed'],
  ['success found after a crash', [init, success], { exit: unknown, found: 'after-crash' }, 'completed'],
  ['success, we ended it', [init, success], { exit: code(143), endedByUs: true }, 'completed'],
  ['success, we ended it by signal', [init, success], { exit: signal('SIGTERM'), endedByUs: true }, 'completed'],
  ['success, it hung and we killed it', [init, success], { exit: signal('SIGKILL'), endedByUs: true }, 'completed'],
  ['success, exit 1', [init, success], { exit: code(1) }, 'failed', 'exit-nonzero'],
  ['success, we ended it, exit 1', [init, success], { exit: code(1), endedByUs: true }, 'failed', 'exit-nonzero'],
  ['success, exit 143 by an outside signal', [init, success], { exit: code(143) }, 'failed', 'exit-nonzero'],
  ['success, killed from outside', [init, success], { exit: signal('SIGKILL') }, 'failed', 'signalled'],
  [
    'success, crash while we ended it',
    [init, success],
    { exit: signal('SIGSEGV'), endedByUs: true },
    'failed',
    'signalled',
  ],
  ['success without a turn', [init, { ...success, num_turns: 0 }], {}, 'failed', 'prompt-not-sent'],
  ['everything denied', [init, refused, denied], {}, 'failed', 'permission'],
  ['something denied', [init, done, refused, denied], {}, 'completed'],
  ['a later success', [init, result({ api_error_status: 529 }), success], {}, 'completed'],

  ['stop, nothing printed', [init], stop('user'), 'paused', 'user'],
  ['stop, interrupted', [init, interrupted, ede], stop('budget'), 'paused', 'budget'],
  ['stop, success before the answer', [init, success, interrupted], stop('user', true), 'completed'],
  ['stop, success before, exit 1', [init, success], { ...stop('user', true), exit: code(1) }, 'completed'],
  ['stop, success after the answer', [init, interrupted, success], stop('signal'), 'paused', 'signal'],
  ['stop, success after a signal', [init, success], stop('user', true, true), 'paused', 'user'],
  ['stop, all denied before', [init, refused, denied], stop('user', true), 'failed', 'permission'],
  ['stop, API error', [init, result({ api_error_status: 529 })], stop('error-threshold'), 'paused', 'error-threshold'],
  ['stop, found after a crash', [init], { ...stop('user'), found: 'after-crash', exit: unknown }, 'paused', 'user'],
  ['stop to delete', [], stop('deleted'), 'paused', 'deleted'],
  ['too long', [init, answered], stop('timeout'), 'paused', 'timeout'],
  ['too long, the API is gone', [init, asksAgain(null, 'unknown')], stop('timeout'), 'failed', 'api-error'],
  ['silent, the API is gone', [init, answered, asksAgain(529, 'overloaded')], stop('stall'), 'failed', 'api-error'],
  ['too long, throttled', [init, asksAgain(429, 'rate_limit')], stop('timeout'), 'paused', 'limit'],
  ['too long, no login', [init, asksAgain(401, 'authentication_failed')], stop('timeout'), 'paused', 'timeout'],
  [
    'too long, answered since then',
    [init, asksAgain(529, 'overloaded'), answered],
    stop('timeout'),
    'paused',
    'timeout',
  ],
  ['paused, the API is gone', [init, asksAgain(529, 'overloaded')], stop('user'), 'paused', 'user'],

  ['budget', [init, result({ subtype: 'error_max_budget_usd' })], { exit: code(1) }, 'paused', 'budget'],
  ['usage limit', [init, rejected, result({ api_error_status: 429 })], { exit: code(1) }, 'paused', 'limit'],
  ['429 without a limit', [init, result({ api_error_status: 429 })], {}, 'paused', 'limit'],
  [
    'limit in words',
    [init, result({ result: "You've hit your session limit · resets 1:18am (UTC)" })],
    {},
    'paused',
    'limit',
  ],
  ['401', [init, trouble('authentication_failed'), result({ api_error_status: 401 })], {}, 'failed', 'not-logged-in'],
  ['wrong organisation', [init, trouble('oauth_org_not_allowed'), result({})], {}, 'failed', 'not-logged-in'],
  [
    'logged out, in words',
    [init, result({ result: 'Not logged in · Please run /login' })],
    {},
    'failed',
    'not-logged-in',
  ],
  ['billing', [init, trouble('billing_error'), result({ api_error_status: 400 })], {}, 'failed', 'billing'],
  ['billing in words', [init, result({ result: 'Credit balance is too low' })], {}, 'failed', 'billing'],
  ['model', [init, trouble('model_not_found'), result({})], {}, 'failed', 'model-not-found'],
  ['404', [init, result({ api_error_status: 404 })], {}, 'failed', 'model-not-found'],
  ['window full', [init, result({ terminal_reason: 'prompt_too_long' })], {}, 'failed', 'prompt-too-long'],
  ['overloaded', [init, trouble('overloaded'), result({ api_error_status: 529 })], {}, 'failed', 'api-error'],
  ['no connection', [init, result({ result: 'API Error: Unable to connect' })], {}, 'failed', 'api-error'],
  ['turns', [init, result({ subtype: 'error_max_turns', errors: ['Reached maximum'] })], {}, 'failed', 'max-turns'],
  ...Object.entries(endings).flatMap(([terminal_reason, ending]): Row[] => {
    const odd = { ...success, terminal_reason };
    if (ending === 'result') return [[`success, ${terminal_reason}`, [init, odd], {}, 'completed']];
    return [[`success, ${terminal_reason}`, [init, odd], {}, 'failed', ending.reason]];
  }),
  [
    'success, stopped before the answer',
    [init, { ...success, terminal_reason: 'hook_stopped' }],
    stop('user', true),
    'paused',
    'user',
  ],
  ['an unknown kind of end', [init, { ...success, terminal_reason: 'fell_asleep' }], {}, 'completed'],
  [
    'refused',
    [init, result({ stop_reason: 'refusal', result: 'API Error: It was flagged.' })],
    {},
    'failed',
    'refused',
  ],
  ['a Stop hook that never passes', [init, endForced, success], {}, 'failed', 'hook-stopped'],
  ['a Stop hook that passed in the next turn', [init, endForced, success, init, success], {}, 'completed'],
  [
    'unknown id',
    [
      result({
        subtype: 'error_during_execution',
        result: undefined,
        num_turns: 0,
        errors: ['No conversation found with session ID: x'],
      }),
    ],
    { exit: code(1) },
    'failed',
    'claude-error',
  ],
  ['interrupted from outside', [init, ede], { exit: code(1) }, 'failed', 'claude-error'],
  ['an error without a kind', [init, result({ result: '' })], {}, 'failed', 'claude-error'],

  ['no result, exit 0', [init], {}, 'failed', 'no-result'],
  ['no result, on a full disk', [init], { isDiskFull: true }, 'paused', 'disk'],
  ['no output at all', [], { exit: code(1) }, 'failed', 'no-result'],
  ['no result from an adopted worker', [init], { exit: unknown }, 'paused', 'interrupted'],
  ['no result, signal', [init], { exit: signal('SIGKILL') }, 'failed', 'signalled'],
  ['no result, claude caught SIGTERM', [init], { exit: code(143) }, 'failed', 'signalled'],
  ['no result, after a crash', [init], { exit: unknown, found: 'after-crash' }, 'paused', 'interrupted'],
];

describe('tables of the contract', () => {
  const contract = readFileSync(join(import.meta.dir, '../../../docs/claude-contract.md'), 'utf8').split('\n### ');
  /** The rows of the table below this title. */
  const rowsOf = (title: string) => {
    const section = contract.find((part) => part.startsWith(title))?.split('\n## ')[0] ?? '';
    return [...section.matchAll(/^\| `(\w+)` \| (.*) \|$/gm)].slice(1).map(([, name = '', told = '']) => [name, told]);
  };
  /** The outcome in the words of the tables. */
  const fate = (lines: object[]) => {
    const outcome = judged([init, ...lines]);
    const warned = outcome.warnings.map(({ code }) => `, with the warning \`${code}\``).join('');
    return `${outcome.status === 'completed' ? 'result' : `${outcome.status}, \`${outcome.reason}\``}${warned}`;
  };

  test('the table of turn ends lists all of them with their outcomes', () => {
    const rows = rowsOf('How a turn ends');
    expect(rows.map(([name]) => name)).toEqual(Object.keys(endings));
    for (const [terminal_reason, told] of rows) expect(fate([{ ...success, terminal_reason }])).toBe(told ?? '');
  });

  test('the table of stop reasons lists all of them with their outcomes', () => {
    const rows = rowsOf('How the model ends');
    expect(rows.map(([name]) => name)).toEqual(Object.keys(stopReasons));
    for (const [stop_reason, told] of rows) expect(fate([{ ...success, stop_reason }])).toBe(told ?? '');
  });

  test('the table of result kinds lists their outcomes', () => {
    const rows = rowsOf('Kinds of results');
    expect(rows.length).toBeGreaterThan(4);
    for (const [subtype, told] of rows) {
      const is_error = subtype !== 'success';
      expect(fate([{ ...success, subtype, is_error }])).toBe(told?.replace('completed', 'result') ?? '');
    }
    expect(fate([result({ subtype: 'error_of_tomorrow' })])).toBe('failed, `claude-error`');
  });

  test('a system line of the table without effect, or of an unknown kind, gives no warning', () => {
    const [section = ''] = contract.filter((part) => part.startsWith('Kinds of system lines'));
    const [, quiet = ''] = /^\| without effect \| (.*) \|$/m.exec(section) ?? [];
    const names = [...quiet.matchAll(/`(\w+)`/g)].map(([, name = '']) => name);
    expect(names).toContain('task_progress');
    for (const subtype of [...names, 'brand_new'])
      expect(judged([init, { type: 'system', subtype }, success]).warnings).toEqual([]);
  });

  test('the table of requests from claude lists those that are refused with a warning', () => {
    const rows = rowsOf('What claude asks');
    expect(rows.length).toBeGreaterThan(8);
    for (const [subtype] of rows) {
      const asked = { type: 'control_request', request_id: 'r', request: { subtype } };
      const message = `claude reports: ${subtype} was requested and refused.`;
      expect(judged([init, asked, success]).warnings).toEqual([{ code: 'claude-reports', message }]);
    }
  });

  test('a model that claude refuses is shown as a warning', () => {
    const response = { subtype: 'error', request_id: 'model:opus-9', error: 'no such model' };
    expect(judged([init, { type: 'control_response', response }, success]).warnings).toEqual([
      {
        code: 'claude-reports',
        message: 'claude reports: it continues with its model, not with opus-9: no such model.',
      },
    ]);
  });

  test('failed actions of claude are shown as warnings', () => {
    const shown = (line: object) => judged([init, { type: 'system', ...line }, success]).warnings.map((w) => w.message);
    expect(shown({ subtype: 'status', compact_result: 'failed', compact_error: 'too long' })).toEqual([
      'claude reports: The conversation could not be compacted: too long.',
    ]);
    expect(shown({ subtype: 'plugin_install', status: 'failed', name: 'team', error: 'no such host' })).toEqual([
      'claude reports: team could not be installed: no such host.',
    ]);
    const size = { subtype: 'instruction_size_warning', total_chars: 50_000, total_limit_chars: 40_000 };
    expect(shown(size)).toEqual([
      'claude reports: CLAUDE.md and rules have 50000 characters together; claude advises at most 40000.',
    ]);
  });
});

describe('judge', () => {
  for (const [what, lines, more, status, reason] of rows)
    test(`outcome of an attempt: ${what}`, () => {
      const outcome = judged(lines, more);
      expect<string>(outcome.status).toBe(status);
      if (outcome.status === 'completed') return expect(outcome.result).toBe('all done');
      expect<string | undefined>(outcome.reason).toBe(reason);
      expect(outcome.message).toMatch(/^[A-Zc].*[.!?…]$/);
      expect(outcome.message).not.toMatch(/undefined|null|\.\.$/);
      if (outcome.status === 'failed') expect(outcome.next).toMatch(/^[A-Z].*\.$/);
    });

  /** A retry continues the existing conversation. */
  test.each([
    ['window', [init, result({ terminal_reason: 'prompt_too_long' })]],
    ['refusal', [init, result({ api_error_status: 400 })]],
    ['id', [result({ num_turns: 0, errors: ['No conversation found with session ID: x'], result: undefined })]],
  ])('a failure that the same conversation would repeat suggests a new conversation: %s', (_, lines) => {
    const outcome = judged(lines);
    expect(outcome.status === 'failed' ? outcome.next : '').toMatch(/(start a new one|new conversation)/);
  });

  test('a failure that another setting fixes does not suggest removing the session', () => {
    const next = (lines: object[]) => {
      const outcome = judged(lines);
      return outcome.status === 'failed' ? outcome.next : '';
    };
    expect(next([init, trouble('model_not_found'), result({})])).toBe('Choose a model that the account can use.');
    expect(next([init, refused, denied])).toBe('Choose which rules to allow.');
  });

  test('a failure message has the exit code and the end of stderr', () => {
    expect(judged([], { exit: code(1), stderrTail: 'Error: Session ID x is already in use.\u001b[0m' })).toMatchObject({
      message: 'claude ended with exit code 1 without a result; last output: Error: Session ID x is already in use.',
    });
  });

  test('a usage limit message has the time of the reset', () => {
    const lines = [init, rejected, result({ api_error_status: 429, result: 'limit' })];
    expect(judged(lines)).toMatchObject({
      message: 'A usage or rate limit was reached: limit. It resets at 2026-11-22T01:18:40Z.',
    });
  });

  test('claude is quoted on one line without control characters, truncated', () => {
    const outcome = judged([
      init,
      result({ api_error_status: 500, result: `API Error:\u001b[2J\n${'x'.repeat(5000)}` }),
    ]);
    expect(outcome.status === 'failed' && outcome.message).toStartWith('The API answered 500: API Error: xxx');
    expect(outcome.status === 'failed' && outcome.message.length).toBeLessThan(340);
  });

  test.each([
    [{ result: 'API Error: Unable to connect' }, { transient: true, outage: true }],
    [{ api_error_status: 529 }, { transient: true, outage: true }],
    [{ api_error_status: 502 }, { transient: true, outage: true }],
    [{ api_error_status: 500 }, { transient: true, outage: undefined }],
    [{ api_error_status: 408 }, { transient: true, outage: undefined }],
    [{ api_error_status: 413 }, { transient: undefined, outage: undefined }],
  ])('%j: whether it is transient, and whether it affects all requests', (fields, expected) => {
    const { transient, outage } = judged([init, result(fields)]) as { transient?: true; outage?: true };
    expect({ transient, outage }).toEqual(expected as { transient: true; outage: true });
  });

  test('an endless answer is truncated in the message', () => {
    const outcome = judged([init, { ...success, result: 'y'.repeat(2_000_000) }]);
    expect(outcome.status === 'completed' && outcome.result.length).toBe(50_000);
  });

  test('a session whose settings claude ignored does not succeed', () => {
    const hook = { type: 'system', subtype: 'hook_started', hook_event: 'SessionStart' };
    expect(judged([init, success], { expectHook: true })).toMatchObject({ status: 'failed', reason: 'config-invalid' });
    expect(judged([hook, init, success], { expectHook: true })).toMatchObject({ status: 'completed' });
    // There is no result to wait for.
    expect(judged([init], { expectHook: true, endedByUs: true })).toMatchObject({ reason: 'config-invalid' });
    expect(judged([hook, init], { expectHook: true, endedByUs: true })).toMatchObject({ reason: 'no-result' });
  });

  test('a late hook report is the reason of a session that was ended for it, whatever claude prints then', () => {
    const hook = { type: 'system', subtype: 'hook_started', hook_event: 'SessionStart' };
    const why = { status: 'failed', reason: 'config-invalid', message: expect.stringContaining('SessionStart hook') };
    const ended = { expectHook: true, endedByUs: true, exit: { kind: 'signalled', signal: 'SIGTERM' } } as const;
    expect(judged([init, hook], ended)).toMatchObject(why);
    expect(judged([init, hook], { ...ended, exit: { kind: 'exited', code: 143 } })).toMatchObject(why);
    expect(judged([init, hook, result({ is_error: true, result: 'Aborted' })], ended)).toMatchObject(why);
    // A result finished by then counts.
    expect(judged([init, hook, success], ended)).toMatchObject({ status: 'completed' });
    // A signal from outside stays one.
    expect(judged([init, hook], { ...ended, endedByUs: false })).toMatchObject({ reason: 'signalled' });
  });

  test('an answer without text is replaced by the last text, and a warning says so', () => {
    const content = [{ type: 'text', text: 'The fix is in api.ts.' }];
    const said = { type: 'assistant', message: { id: 'm', model: 'claude-opus-4-8', content } };
    const empty = { ...success, result: '' };
    expect(judged([init, said, empty])).toEqual({
      status: 'completed',
      result: 'The fix is in api.ts.',
      warnings: [{ code: 'empty-result', message: 'Its last answer has no text; its previous text is the result.' }],
    });
    expect(judged([init, empty]).warnings).toMatchObject([{ code: 'empty-result' }]);
  });

  test('a refused login may be retried when the API said so, and 403 names possible causes', () => {
    const said = (status: number) =>
      judged([init, trouble('authentication_failed'), result({ api_error_status: status })]);
    expect(said(401)).toMatchObject({ reason: 'not-logged-in', transient: true });
    expect(said(403)).toMatchObject({
      reason: 'not-logged-in',
      transient: true,
      next: expect.stringContaining('proxy'),
    });
    expect(judged([init, result({ result: 'Not logged in' })])).not.toHaveProperty('transient');
  });

  test('an end by a hook has the message of the hook', () => {
    const hook = { type: 'system', subtype: 'hook_response', hook_event: 'Stop', hook_name: 'Stop', exit_code: 0 };
    const words = (more: object) =>
      judged([init, { ...hook, ...more }, { ...success, terminal_reason: 'hook_stopped' }]);
    const what = 'A hook stopped claude before its work was done';
    const stdout = JSON.stringify({ continue: false, stopReason: 'not on Fridays' });
    expect(words({ stdout })).toMatchObject({ message: `${what}: not on Fridays.` });
    expect(words({ exit_code: 2, stderr: 'tests are red\n' })).toMatchObject({ message: `${what}: tests are red.` });
    expect(words({ stdout: 'no JSON' })).toMatchObject({ message: `${what}.` });
  });

  test('conditions that do not change the outcome are warnings', () => {
    const codes = (lines: object[], more: Partial<JudgeInput> = {}) => judged(lines, more).warnings.map((w) => w.code);
    const hook = { type: 'system', subtype: 'hook_response', hook_event: 'SessionStart', outcome: 'success' };
    expect(codes([init, success])).toEqual([]);
    expect(codes([init, done, denied])).toEqual(['denied-tools']);
    expect(codes([init, success], { isCutOff: true })).toEqual(['conversation-cut']);
    expect(codes([init, success], { isCutOff: false })).toEqual([]);
    expect(codes([init, success], { expectHook: true })).toEqual(['hook-missing']);
    expect(codes([hook, init, success], { expectHook: true })).toEqual([]);
    expect(codes([init, { ...success, terminal_reason: 'fell_asleep' }])).toEqual(['unknown-end']);
    const other = { original_model: 'opus', fallback_model: 'sonnet' };
    expect(codes([init, { type: 'system', subtype: 'model_fallback', ...other }, success])).toEqual(['other-model']);
    expect(codes([init, { ...success, stop_reason: 'pause_turn' }])).toEqual(['unfinished-answer']);
    // A process that never started had no chance to run the hook.
    expect(codes([], { expectHook: true })).toEqual([]);
    const stream = streamOf(init, success);
    foldMessage(foldMessage(stream, { kind: 'malformed', text: '' }), { kind: 'malformed', text: '' });
    expect(judged([], { stream }).warnings).toEqual([
      { code: 'malformed-lines', message: '2 lines of claude’s output could not be read.' },
    ]);
    const message = { id: 'm', model: 'brand-new', content: [], usage: { input_tokens: 1000 } };
    const how = 'so it is estimated from its output.';
    expect(judged([init, { type: 'assistant', message }]).warnings).toEqual([
      {
        code: 'estimated-cost',
        message: `claude did not report its final cost, ${how} The price of brand-new is a guess.`,
      },
    ]);
    const highest = 'so the highest known price is used. Set its price under `prices` in config.yaml.';
    const modelUsage = { 'brand-new': { costUSD: 1, costBasis: 'unknown' }, known: { costUSD: 1, costBasis: 'list' } };
    expect(judged([init, { ...success, modelUsage }]).warnings).toEqual([
      {
        code: 'estimated-cost',
        message: `The price of brand-new is not known, ${highest}`,
      },
    ]);
    expect(usageOf(streamOf(init, { ...success, modelUsage }), 0).estimated).toBe(true);
    const base = { subtype: 'success', request_id: 'usage:base', response: { session: { total_cost_usd: 0.5 } } };
    const lines = [{ type: 'control_response', response: base }, init, success];
    const earlier = { findBase: () => noTotals, booked: { costUsd: 0.3, models: {} } };
    const goesOn = lines.map((line) => parseLine(JSON.stringify(line))).reduce(foldMessage, emptyStream({}, earlier));
    expect(judged([], { stream: goesOn }).warnings).toEqual([
      {
        code: 'estimated-cost',
        message: expect.stringContaining('$0.200000 more than the earlier attempts reported'),
      },
    ]);
  });
});
