/**
 * Promises: a YAML error is one problem with line, column, the line itself and the remedy, and a value of the wrong
 * type is described in plain words.
 */
import { expect, test } from 'bun:test';
import { zod } from '../../../src/store/schema.ts';
import { checkYaml, describeYamlProblem, readYaml } from '../../../src/store/yaml-text.ts';

const head = 'version: 1\nsessions:\n  a:\n    project: .\n';

test.each([
  ['an unquoted colon', '    prompt: fix: this\n  b:\n    prompt: x\n', '5:13: quote text that contains ": "'],
  ['a text that begins with a variable', '    prompt: {{t}} now\n', '5:19: quote text that starts with "{{"'],
  ['a tab', '\tprompt: x\n\tmodel: y\n', '5:1: the indentation contains a tab'],
  ['more indentation', '     prompt: x\n', '4:14: the next line is indented more'],
  ['less indentation', '   prompt: x\n', '5:1: the indentation matches no line above'],
  ['a duplicate key', '    prompt: x\n    prompt: y\n', '6:5: the key "prompt" appears twice in its map'],
  ['a text that begins with an asterisk', '    prompt: *all\n', '5:13: there is no anchor "&all"'],
  ['an unclosed quote', '    prompt: "x\n  b: y\n', 'a quote is never closed'],
])('the YAML error %s is one problem with the line and a marker', (_, text, said) => {
  const read = readYaml({ text: head + text, file: 'w.yaml' });
  const problems = read.ok ? [] : read.problems.map(describeYamlProblem);
  expect(problems).toHaveLength(1);
  expect(problems[0]).toContain(said);
  expect(problems[0]).toMatch(/\n +\d+ \| .*\n +\| *\^$/);
});

test('a YAML value of the wrong type is described in plain words', () => {
  const z = zod();
  const schema = z.object({ sessions: z.record(z.string(), z.unknown()), cap: z.number(), prompt: z.string() });
  const read = readYaml({ text: 'sessions: [a]\ncap: $5\nprompt: {{t}}\n', file: 'w.yaml' });
  const checked = read.ok ? checkYaml(read.value, schema, 'the file') : read;
  expect(checked.ok ? [] : checked.problems.map(describeYamlProblem)).toEqual([
    'w.yaml:1:11: sessions must be a map ("name: value"), not a list',
    'w.yaml:2:6: cap must be a number, not a text, without quotes or a unit such as "$"',
    'w.yaml:3:9: prompt must be a text, not a map ("name: value"): put a text that begins with "{" in quotes',
  ]);
});
