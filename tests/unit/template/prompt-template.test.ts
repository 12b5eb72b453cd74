/**
 * Promises: the specification's example works unchanged, front matter is only data, every problem has its place, and
 * rendering is a single pass for any values. Which file a name means is tested in `places.test.ts`.
 */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { loadPromptTemplate, parsePromptTemplate, renderPrompt } from '../../../src/template/prompt-template.ts';
import { fc } from '../../support/property.ts';
import { problemsIn, TemplateFixture, templateWorld, valid } from '../../support/template/rig.ts';

let temp: TemplateFixture;
beforeAll(() => {
  temp = new TemplateFixture();
});
afterAll(() => temp.remove());

const parse = (text: string) => parsePromptTemplate(text, 'x.md');
const nothing = () => undefined;

const seedExample = `---
name: code-review
description: Review code for quality and issues
variables:
  - name: file_path
    required: true
  - name: focus_areas
    default: "security, performance, readability"
---

Review the code in {{file_path}}.

Focus on: {{focus_areas}}

Provide specific, actionable feedback.
`;

test('the specification’s prompt template works unchanged', () => {
  const path = temp.write('code-review.md', seedExample);
  const template = valid(loadPromptTemplate(templateWorld, path));
  expect(template).toMatchObject({
    name: 'code-review',
    description: 'Review code for quality and issues',
    path,
    variables: [
      { name: 'file_path', required: true },
      { name: 'focus_areas', default: 'security, performance, readability' },
    ],
  });
  const rendered = renderPrompt(template, { file_path: 'a.ts', focus_areas: 'naming' }, nothing);
  expect(rendered).toEqual({
    text: 'Review the code in a.ts.\n\nFocus on: naming\n\nProvide specific, actionable feedback.',
    later: [],
    problems: [],
  });
});

describe('front matter', () => {
  test('without front matter the whole file is the text, and its variables must be given', () => {
    const template = valid(parse('\n\nDo {{what}} in {{where}}, {{what}}! See {{sessions.api.result}}.\n'));
    expect(template.name).toBe('x');
    expect(template.variables.map(({ name, required }) => [name, required])).toEqual([
      ['what', true],
      ['where', true],
    ]);
  });

  test('front matter accepts any line ends, may be empty, and longer rules are text', () => {
    expect(valid(parse('---\r\nname: y\r\nvariables:\r\n  - name: a\r\n---\r\nText {{a}}\r\n'))).toMatchObject({
      name: 'y',
    });
    expect(valid(parse('---\n---\nText')).variables).toEqual([]);
    expect(valid(parse('-----\nText')).body.text).toBe('-----\nText');
    expect(valid(parse('---\ndescription: |\n  a ---\n---\nA\n---\nB')).body.text).toBe('A\n---\nB');
  });

  test.each<[string, string]>([
    [
      '---js\nmodule.exports = {}\n---\nx',
      '1:1 the front matter begins with "---js"; it must start with a plain "---"',
    ],
    [
      '--- !!js/function x\n---\nx',
      '1:1 the front matter begins with "--- !!js/function x"; it must start with a plain "---"',
    ],
    ['---\nname: x\n', '1:1 the front matter is not closed: add a line with only "---"'],
    ['---\nname: x\n---', '3:1 the template has no text'],
    ['', '1:1 the template has no text'],
    ['---\nname: x\nvars: []\n---\nx', '3:1 the front matter has no "vars"'],
    ['---\n- name\n---\nx', '2:1 the front matter must be a map ("name: value"), not a list'],
    ['---\nvariables: a\n---\nx', '2:12 variables must be a list, not a text'],
    ['---\nname: [\n---\nx', '3:1 a bracket above is not closed before this line'],
  ])('the front matter %j is refused', (text, problem) => {
    expect(problemsIn(parse(text))).toEqual([problem]);
  });

  test('all undeclared variables of a template are reported at their places', () => {
    const text =
      '---\nvariables:\n  - name: file_path\n---\nA {{file_paht}}\n\n  {{odd}} {{project.name}} {{file.path}}\n';
    expect(problemsIn(parse(text))).toEqual([
      '5:3 there is no variable "file_paht"; did you mean "file_path"?',
      '7:3 there is no variable "odd"; declare it under "variables", or write \\{{odd}} for literal text',
      '7:28 there is no variable "file.path"; did you mean "file_path"?',
    ]);
  });
});

/** Texts that a second pass or a replacement pattern would change. */
const nasty = fc.oneof(
  fc.string(),
  fc.constantFrom('{{b}}', '{{a}}', '\\{{a}}', '$&', '$1', "$'", '$$', '{{', '}}', '{{sessions.x.result}}'),
  fc
    .array(fc.constantFrom('{{', '}}', 'a', 'b', '$', '&', '\\', ' ', '\n', '.'), { maxLength: 12 })
    .map((parts) => parts.join('')),
);

test('rendering is a single pass for any values', () => {
  const template = valid(parse('---\nvariables: [{name: a}, {name: b}]\n---\n<{{a}}|{{ b }}|\\{{a}}|{{a}}>'));
  fc.assert(
    fc.property(nasty, nasty, (a, b) => {
      expect(renderPrompt(template, { a, b }, nothing)).toEqual({
        text: `<${a}|${b}|{{a}}|${a}>`,
        later: [],
        problems: [],
      });
    }),
    { numRuns: 1000 },
  );
});

test('variables of the program are requested by name, and may be filled later', () => {
  const template = valid(parse('{{project.name}}: {{sessions.api.result}}'));
  const extra = (name: string) => (name === 'project.name' ? 'web' : ({ later: true } as const));
  expect(renderPrompt(template, {}, extra)).toEqual({
    text: 'web: {{sessions.api.result}}',
    later: [{ name: 'sessions.api.result', at: 5, length: 23 }],
    problems: [],
  });
});
