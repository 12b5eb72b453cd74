/**
 * Promises: a faulty script is refused with every problem at its line and column, a valid one is found by name,
 * number or `*`, placeholders are replaced once, and the example scripts are valid.
 */
import { describe, expect, test } from 'bun:test';
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import {
  defaultScript,
  fillScript,
  parseScript,
  type RehearsalScript,
  stepsFor,
} from '../../../src/rehearsal/script.ts';

function messageOf(text: string): string {
  const result = parseScript(text, 'x.yaml');
  if (result.ok) throw new Error('the script was accepted');
  expect(result.failure.reason).toBe('usage');
  return result.failure.message;
}

describe('parseScript', () => {
  test('parseScript reads the documented script, which has every key of a step', () => {
    const text = readFileSync(resolve(import.meta.dir, '../../../docs/rehearsal.md'), 'utf8');
    const [, block = ''] = /```yaml\n([\s\S]*?)```/.exec(text) ?? [];
    expect(parseScript(block, 'rehearsal.md')).toMatchObject({ ok: true });
    const source = readFileSync(resolve(import.meta.dir, '../../../src/rehearsal/script.ts'), 'utf8');
    const step = source.slice(source.indexOf('const step ='), source.indexOf('.check('));
    const keys = [...step.matchAll(/^ {6,}(\w+): /gm)].map(([, key]) => key);
    expect(keys.length).toBeGreaterThan(12);
    expect(keys.filter((key) => !text.includes(`\`${key}\``))).toEqual([]);
  });

  test('parseScript reads YAML and JSON', () => {
    const expected: RehearsalScript = { version: 1, sessions: { '2': { steps: [{ text: 'hi' }] } } };
    expect(parseScript('version: 1\nsessions:\n  2:\n    steps:\n      - text: hi\n', 'x')).toEqual({
      ok: true,
      value: expected,
    });
    expect(parseScript(JSON.stringify(expected), 'x')).toEqual({ ok: true, value: expected });
  });

  test('parseScript reports every problem at its place', () => {
    const text = [
      'version: 2',
      'sessions:',
      '  2:',
      '    steps:',
      '      - txet: hello',
      '      - text: ok',
      '        delayMs: -5',
      '      - tool: Bash',
      '        times: 2',
      '  "*":',
      '    stpes: []',
    ].join('\n');
    expect(messageOf(text).split('\n')).toEqual([
      'The rehearsal script has 7 problems:',
      'x.yaml:1:10: version must be 1',
      'x.yaml:5:9: sessions.2.steps.0 has no "txet"; did you mean "text"?',
      expect.stringMatching(/^x.yaml:5:9: sessions.2.steps.0: a step needs "text", .* "hang", "cut" or "limit"$/),
      'x.yaml:7:18: sessions.2.steps.1.delayMs must be at least 0',
      'x.yaml:9:16: sessions.2.steps.2.times: "times" needs "status", "hang", "cut" or "limit" beside it',
      'x.yaml:11:5: sessions.*.steps is missing',
      'x.yaml:11:5: sessions.* has no "stpes"; did you mean "steps"?',
    ]);
  });

  test.each([
    ['a: [1', 'x.yaml:1:'],
    ['version: 1\nversion: 1\nsessions: {}', 'x.yaml:2:1: '],
    ['', 'x.yaml:1:1: the script must be a map'],
    ['[]', 'x.yaml:1:1: the script must be a map'],
    ['version: 1\nsessions: {a: {steps: [{}]}}', 'x.yaml:2:24: sessions.a.steps.0: a step needs'],
    ['version: 1\nsessions: {a: {steps: []}}', 'x.yaml:2:23: sessions.a.steps must be at least 1 items'],
    ['version: 1\nsessions: {a: {steps: [{text: a, input: {}}]}}', 'x.yaml:2:41: sessions.a.steps.0.input: '],
    ['version: 1\nsessions: {a: {steps: [{status: 429, hang: true}]}}', 'x.yaml:2:44: sessions.a.steps.0.hang: '],
    [
      'version: 1\nsessions: {a: {steps: [{text: a, afterEvents: 2}]}}',
      'x.yaml:2:47: sessions.a.steps.0.afterEvents: ',
    ],
    [
      'version: 1\nsessions: {a: {steps: [{limit: {window: five_hours, lastsMs: 1}}]}}',
      'x.yaml:2:41: sessions.a.steps.0.limit.window must be one of five_hour',
    ],
    ['version: 1\nsessions: {a: *missing}', 'x.yaml:2:15: '],
  ])('the script %j is refused', (text, start) => {
    expect(messageOf(text).split('\n')[1]).toStartWith(start);
  });

  test.each(['cross-project-refactor', 'wide-batch'])('the example script %s is valid', (example) => {
    const file = resolve(import.meta.dir, '../../../examples', example, 'rehearsal.yaml');
    expect(parseScript(readFileSync(file, 'utf8'), file)).toMatchObject({ ok: true });
  });
});

describe('stepsFor', () => {
  const script: RehearsalScript = {
    version: 1,
    sessions: {
      lib: { steps: [{ text: 'lib' }], agents: [{ text: 'agent' }] },
      '2': { steps: [{ text: 'two' }] },
      '*': { steps: [{ text: 'any' }] },
    },
  };
  const first = (name: string | undefined, agent = false) => stepsFor(script, name, agent)[0]?.text;

  test('stepsFor finds a script by session name or number, or the one for all', () => {
    expect([first('lib'), first('2'), first('002'), first('other'), first(undefined), first('*')]).toEqual([
      'lib',
      'two',
      'two',
      'any',
      'any',
      'any',
    ]);
  });

  test('stepsFor gives sub-agents their own steps', () => {
    expect(first('lib', true)).toBe('agent');
    expect(first('2', true)).not.toBe('two');
  });

  test('stepsFor falls back to the default script, which changes nothing', () => {
    const none: RehearsalScript = { version: 1, sessions: {} };
    expect(stepsFor(none, 'x', false)).toEqual(defaultScript.sessions['*']!.steps);
    expect(stepsFor(none, 'constructor', false)).toEqual(defaultScript.sessions['*']!.steps);
  });
});

test('fillIn replaces placeholders once everywhere and keeps other braces', () => {
  const values = { session: '{{project}}', project: '/a b' };
  const step = { text: '{{session}} {{other}} {{ x }} {}', input: { list: ['{{project}}/f', 3, null, true] } };
  expect(fillScript(step, values)).toEqual({
    text: '{{project}} {{other}} {{ x }} {}',
    input: { list: ['/a b/f', 3, null, true] },
  });
});
