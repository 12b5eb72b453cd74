/**
 * Promises: variable declarations are checked completely with places, each value is valid text of its type or
 * refused, all missing values are reported at once, and no given value is ignored silently.
 */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { mkdirSync } from 'node:fs';
import type { z } from 'zod';
import { checkYaml, readYaml } from '../../../src/store/yaml-text.ts';
import {
  parseGiven,
  resolveVariables,
  type VariableSpec,
  variableList,
  variableMap,
} from '../../../src/template/variables.ts';
import { problemsIn, TemplateFixture, templateWorld, valid } from '../../support/template/rig.ts';

let temp: TemplateFixture;
beforeAll(() => {
  temp = new TemplateFixture();
});
afterAll(() => temp.remove());

function read(text: string, schema: z.ZodType<VariableSpec[]>) {
  const yaml = readYaml({ text, file: 'x.yaml' });
  return yaml.ok ? checkYaml(yaml.value, schema, 'the list') : yaml;
}

const spec = (name: string, more: Partial<VariableSpec> = {}): VariableSpec => ({
  name,
  required: false,
  type: 'string',
  ...more,
});
const resolve = (specs: readonly VariableSpec[], given: Record<string, string>) =>
  resolveVariables(specs, given, { world: templateWorld, folder: temp.path });

const noName =
  'is not a plain name; expected letters, digits, "-", "_" or ".", 64 at most, a letter or digit first, no "..", ' +
  'and no "." or ".lock" at the end';

describe('declarations', () => {
  test('the specification’s list of variables is read', () => {
    const list = '- name: file_path\n  required: true\n- name: focus_areas\n  default: "security, performance"\n';
    expect(valid(read(list, variableList()))).toEqual([
      { name: 'file_path', required: true, type: 'string' },
      { name: 'focus_areas', required: false, type: 'string', default: 'security, performance' },
    ]);
  });

  test('a workflow’s variable with a plain value has it as its default, in any YAML type', () => {
    const map =
      'ticket: {required: true, description: D}\narea: api\nn: 3\nyes_no: true\nkind: {type: enum, values: [a, 2]}';
    expect(valid(read(map, variableMap()))).toEqual([
      { name: 'ticket', required: true, type: 'string', description: 'D' },
      { name: 'area', required: false, type: 'string', default: 'api' },
      { name: 'n', required: false, type: 'string', default: '3' },
      { name: 'yes_no', required: false, type: 'string', default: 'true' },
      { name: 'kind', required: false, type: 'enum', values: ['a', '2'] },
    ]);
  });

  test.each<[string, string]>([
    [
      '- {name: a, required: true, default: x}',
      '1:38 0.default: a required variable cannot have a default; remove one of the two',
    ],
    ['- {name: a, type: enum}', '1:3 0: an enum needs a list of values'],
    ['- {name: a, type: enum, values: [ab, cd], default: z}', '1:52 0.default: "z" is not one of "ab", "cd"'],
    ['- {name: a, type: enum, values: [x, x]}', '1:33 0.values: "x" appears twice'],
    ['- {name: a, values: [x]}', '1:21 0.values: only an enum can have values, not a string'],
    ['- {name: a, type: number, default: many}', '1:36 0.default: "many" is not a number'],
    ['- {name: a, type: name, default: x.lock}', `1:34 0.default: "x.lock" ${noName}`],
    ['- {name: a, type: boolean, default: 1}', '1:37 0.default: "1" is neither true nor false'],
    ['- name: a\n- name: a', '2:9 1.name: "a" is declared twice'],
    ['- {name: a, requird: true}', '1:13 0 has no "requird"; did you mean "required"?'],
    ['- {required: true}', '1:3 0.name is missing'],
    ['- {name: a, default: [x]}', '1:22 0.default: expected text, a number, true or false'],
  ])('the variable declaration %s is a problem', (text, problem) => {
    expect(problemsIn(read(text, variableList()))).toEqual([problem]);
  });

  test.each(['a.b', '', '1a', 'a b', '-a', 'ä', '__proto__', 'a'.repeat(65), '{{a}}'])(
    '%j is not a variable name',
    (name) => {
      const text = `- name: ${JSON.stringify(name)}`;
      expect(problemsIn(read(text, variableList()))[0]).toContain('a name has 1 to 64 letters');
      expect(read(`- name: constructor`, variableList()).ok).toBe(true);
    },
  );

  test('all problems of a declaration are reported at once', () => {
    const text = '- {name: 1a}\n- {name: b, type: enum}\n- {name: c, kind: 2}\n';
    expect(problemsIn(read(text, variableList())).map((one) => one.split(' ')[0])).toEqual(['1:10', '2:3', '3:13']);
    const odd = '1x: 3\nc: [2]\nd: {requird: true}\n';
    expect(problemsIn(read(odd, variableMap()))).toEqual([
      expect.stringContaining('1:1 "1x" is not a valid name: a name has 1 to 64 letters'),
      '2:4 c: expected a default value, or a map such as {required: true}',
      '3:5 d has no "requird"; did you mean "required"?',
    ]);
    const map = 'a: {type: enum}\nb: {required: true, default: 1}\n';
    expect(problemsIn(read(map, variableMap())).map((text) => text.split(' ')[0])).toEqual(['1:4', '2:30']);
  });
});

describe('given values', () => {
  test('a given value may contain any text, also "="', () => {
    const pairs = ['a=1', 'b=x=y=', 'c=', 'd={{e}} $& \n', 'a=1'];
    expect(parseGiven(pairs)).toEqual({ ok: true, value: { a: '1', b: 'x=y=', c: '', d: '{{e}} $& \n' } });
    expect(parseGiven([])).toEqual({ ok: true, value: {} });
  });

  test.each([[['a']], [['=x']], [['']], [['a b=x']], [['a.b=x']], [['__proto__=x']], [['a=1', 'a=2']]])(
    'the given values %j are refused',
    (pairs) => {
      expect(parseGiven(pairs)).toMatchObject({ ok: false, failure: { reason: 'usage' } });
    },
  );
});

describe('resolving', () => {
  test('a variable has its given value, else its default, else an empty text', () => {
    const specs = [spec('a'), spec('b', { default: 'B' }), spec('c', { default: 'C' })];
    expect(resolve(specs, { c: '' })).toEqual({ values: { a: '', b: 'B', c: '' }, problems: [], unused: [] });
  });

  test('all missing variables are reported at once, with hints to misspelt ones', () => {
    const specs = [spec('file_path', { required: true, description: 'What\nto read' }), spec('b', { required: true })];
    expect(resolve(specs, { file_paht: 'x' })).toEqual({
      values: {},
      problems: [
        'the variable "file_path" (What to read) has no value; did you mean it by "file_paht"?',
        'the variable "b" has no value',
      ],
      unused: ['file_paht'],
    });
  });

  test.each(['', ' ', '\t\r\n', '\u00a0'])('a required variable cannot be %j', (blank) => {
    const specs = [
      spec('file_path', { required: true, description: 'What\nto read' }),
      spec('n', { required: true, type: 'number' }),
      spec('p', { required: true, type: 'path' }),
      spec('f', { required: true, type: 'file' }),
      spec('e', { required: true, type: 'enum', values: ['a'] }),
    ];
    expect(resolve(specs, { file_path: blank, n: blank, p: blank, f: blank, e: blank })).toEqual({
      values: {},
      problems: [
        'the variable "file_path" (What to read) is empty',
        ...['n', 'p', 'f', 'e'].map((name) => `the variable "${name}" is empty`),
      ],
      unused: [],
    });
    expect(resolve([spec('a')], { a: blank })).toEqual({ values: { a: blank }, problems: [], unused: [] });
  });

  test.each<[Partial<VariableSpec>, string, string]>([
    [{ type: 'number' }, '1.50', '1.50'],
    [{ type: 'number' }, '-2e3', '-2e3'],
    [{ type: 'boolean' }, 'YES', 'true'],
    [{ type: 'boolean' }, 'no', 'false'],
    [{ type: 'enum', values: ['a', 'b'] }, 'b', 'b'],
    [{ type: 'path' }, '/x/../y', '/y'],
    [{ type: 'name' }, '258', '258'],
    [{ type: 'name' }, 'ABC-12_v1.2', 'ABC-12_v1.2'],
    [{ type: 'name' }, 'a'.repeat(64), 'a'.repeat(64)],
  ])('the variable type %j accepts %j', (more, text, value) => {
    expect(resolve([spec('v', more)], { v: text })).toEqual({ values: { v: value }, problems: [], unused: [] });
  });

  test.each<[Partial<VariableSpec>, string, string]>([
    [{ type: 'number' }, '', '"" is not a number'],
    [{ type: 'number' }, 'NaN', '"NaN" is not a number'],
    [{ type: 'number' }, '1e999', '"1e999" is not a number'],
    [{ type: 'number' }, '0x10', '"0x10" is not a number'],
    [{ type: 'number' }, '1, "x": 2', '"1, \\"x\\": 2" is not a number'],
    [{ type: 'boolean' }, 'toString', '"toString" is neither true nor false'],
    [
      { type: 'enum', values: ['strict', 'loose'] },
      'stirct',
      '"stirct" is not one of "strict", "loose"; did you mean "strict"?',
    ],
    [{ type: 'path' }, '', 'the path is empty'],
    [{ type: 'name' }, '../x', `"../x" ${noName}`],
    [{ type: 'name' }, "a'b", `"a'b" ${noName}`],
    [{ type: 'name' }, 'a\n', `"a\\n" ${noName}`],
    [{ type: 'name' }, '', `"" ${noName}`],
    [{ type: 'string' }, 'a\0b', 'it contains a NUL character'],
    [{ type: 'path' }, 'a\0b', 'it contains a NUL character'],
  ])('the variable type %j refuses %j', (more, text, problem) => {
    expect(resolve([spec('v', more)], { v: text })).toEqual({
      values: {},
      problems: [`the variable "v": ${problem}`],
      unused: [],
    });
  });

  test('a file variable has the contents of its file without a byte order mark', () => {
    temp.write('notes.md', '\uFEFFä {{x}}\r\n');
    const specs = [spec('v', { type: 'file' })];
    expect(resolve(specs, { v: 'notes.md' }).values).toEqual({ v: 'ä {{x}}\r\n' });
    temp.write('largest', 'x'.repeat(256 * 1024));
    expect(resolve(specs, { v: 'largest' }).values.v).toHaveLength(256 * 1024);
  });

  test('a file variable with a file that is no valid prompt text is a problem', () => {
    temp.write('large', 'x'.repeat(256 * 1024 + 1));
    temp.write('latin', new Uint8Array([0x66, 0xfc, 0x72]));
    temp.write('nul', 'a\0b');
    mkdirSync(temp.at('folder'));
    templateWorld.fifos.create(temp.at('pipe'));
    const trouble = (path: string) => resolve([spec('v', { type: 'file' })], { v: path }).problems[0];
    expect(trouble('none')).toBe(`the variable "v": the file ${temp.at('none')} does not exist`);
    expect(trouble('large')).toEndWith('is larger than 256 KiB');
    expect(trouble('latin')).toEndWith('is not UTF-8 text');
    expect(trouble('nul')).toEndWith('contains a NUL character');
    expect(trouble('folder')).toEndWith('is a folder');
    expect(trouble('pipe')).toEndWith('is not a regular file');
    expect(trouble('/dev/zero')).toEndWith('is not a regular file');
    expect(trouble('x'.repeat(5000))).toContain('is longer than a path can be');
  });
});
