/**
 * Promises: any text gives a workflow or problems with positions, never an exception and never slowly; what costs much
 * to expand is refused at once. Not covered: disks that fail while they are read.
 */

import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import type { Problem } from '../../../src/store/yaml-text.ts';
import { loadWorkflow, validateWorkflowFile } from '../../../src/template/workflow.ts';
import { isLongRun } from '../../support/long.ts';
import { fc } from '../../support/property.ts';
import { exampleWorkflow, WorkflowFolder } from '../../support/template/workflow-rig.ts';

/** Ten thousand inputs in the long tests, a quarter of them otherwise. */
const share = (inputs: number): number => (isLongRun ? inputs : Math.ceil(inputs / 8));

let folder: WorkflowFolder;
beforeAll(() => {
  folder = new WorkflowFolder();
});
afterAll(() => folder.remove());

/** What the file is not supposed to hold, and what it is. */
const oddValues = [
  ...['null', '[]', '{}', '""', '" "', '0', '-1', '.nan', '.inf', '1e400', 'true', '[[[]]]', '{a: {b: c}}', '12:30'],
  ...['!!binary aGk=', '!!set {a}', '!x y', '&a [1]', '*a', '"\\u0000"', '"\\u001b[31m"', '2026-01-01', '|\n', '>-\n'],
  ...[
    '"{{"',
    '"{{x}}"',
    '"{{matrix.}}"',
    '"{{sessions.}}"',
    '"{{sessions.analyze}}"',
    '"{{sessions.change[].result}}"',
  ],
  ...[
    '"{{sessions.change[a,*].structured.a[0]}}"',
    '"{{__proto__}}"',
    '"{{constructor}}"',
    '"\\\\{{x}}"',
    '"~"',
    '"~x"',
  ],
  ...[
    '"../services/{api,web}"',
    '"**"',
    '"{{ticket}}/*"',
    '{file: list.txt}',
    '{glob: "*"}',
    '"analyze[*]"',
    '"change"',
  ],
  ...['"analyze[api]"', '"analyze[matrix.flavour]"', '"]["', '[analyze, change]', '30m', 'opus', '{"😀": 1}', '-'],
];
const oddKeys = [
  ...['__proto__', 'constructor', 'toString', 'hasOwnProperty', '"😀"', '"a b"', '"1"', '? [x]\n', '? {a: b}\n', '<<'],
  ...['accept', 'isolate', 'prompt', 'template', 'matrix', 'projects', 'project', 'vars', 'config', 'dependsOn', '""'],
  ...['outputSchema', 'model', 'name', 'version', 'sessions', 'group', 'null', '"{{x}}"', '"\\u0000"'],
];
const snippets = [
  ...[
    '\t',
    '\ufeff',
    '\r\n',
    '\n---\n',
    '\n...\n',
    '%YAML 1.1\n---\n',
    '&x',
    '*x',
    '{',
    '}',
    '[',
    ']',
    '"',
    "'",
    '|',
    '>',
  ],
  ...[
    '{{',
    '}}',
    '{{ticket}}',
    '{{sessions.analyze[*].result}}',
    '#',
    ': ',
    '- ',
    '!!js/function ',
    '\u2028',
    '\0',
    '😀',
  ],
];

type Change = (text: string) => string;
const lineOf = (text: string, at: number) => Math.floor(at * text.split('\n').length);
const where = fc.double({ min: 0, max: 0.999_999, noNaN: true });

/** One way of spoiling a file. */
const change: fc.Arbitrary<Change> = fc.oneof(
  fc.tuple(where, fc.constantFrom(...snippets)).map(
    ([at, snippet]): Change =>
      (text) => {
        const index = Math.floor(at * text.length);
        return text.slice(0, index) + snippet + text.slice(index);
      },
  ),
  fc.tuple(where, fc.nat(30)).map(
    ([at, length]): Change =>
      (text) => {
        const index = Math.floor(at * text.length);
        return text.slice(0, index) + text.slice(index + length);
      },
  ),
  fc.tuple(where, fc.constantFrom(...oddValues)).map(
    ([at, value]): Change =>
      (text) => {
        const lines = text.split('\n');
        const index = lineOf(text, at);
        lines[index] = (lines[index] ?? '').replace(/(:\s).*$/, (_all, colon: string) => colon + value);
        return lines.join('\n');
      },
  ),
  fc.tuple(where, fc.constantFrom(...oddKeys)).map(
    ([at, key]): Change =>
      (text) => {
        const lines = text.split('\n');
        const index = lineOf(text, at);
        lines[index] = (lines[index] ?? '').replace(/^(\s*)[^:]+/, (_all, indent: string) => indent + key);
        return lines.join('\n');
      },
  ),
  fc.tuple(where, where).map(
    ([from, to]): Change =>
      (text) => {
        const lines = text.split('\n');
        const moved = lines.splice(lineOf(text, from), 1);
        lines.splice(lineOf(text, to), 0, ...moved);
        return lines.join('\n');
      },
  ),
  fc.constant<Change>((text) => text.replaceAll('\n', '\r\n')),
);
const spoiled = fc
  .array(change, { minLength: 1, maxLength: 5 })
  .map((changes) => changes.reduce((text, one) => one(text), exampleWorkflow));

/** Maps of the right shape with anything in them; JSON is YAML. */
const scalar: fc.Arbitrary<unknown> = fc.oneof(
  fc.constantFrom(
    null,
    true,
    0,
    1,
    -1,
    1e300,
    '',
    ' ',
    '..',
    '*',
    '../services/*',
    'analyze[*]',
    '{{ticket}}',
    '30m',
    'Edit',
  ),
  fc.string({ maxLength: 12, unit: 'binary' }),
);
const anything = fc.letrec((tie) => ({
  value: fc.oneof({ maxDepth: 4 }, scalar, fc.array(tie('value'), { maxLength: 3 }), tie('map')),
  map: fc.dictionary(
    fc.constantFrom('a', 'type', 'glob', 'file', 'projects', 'x', '__proto__', 'required'),
    tie('value'),
    {
      maxKeys: 3,
    },
  ),
})).value;
const keysOf = (...names: string[]) => fc.dictionary(fc.constantFrom(...names), anything, { maxKeys: 5 });
const session = keysOf(
  'project',
  'matrix',
  'prompt',
  'template',
  'vars',
  'dependsOn',
  'config',
  'outputSchema',
  'timeout',
  'model',
  'isolate',
  'accept',
  'acceptTimeout',
  'setup',
  'commit',
);
const structured = fc
  .record(
    {
      version: fc.constantFrom<unknown>(1, 1, 1, 1, 2, '1', null),
      vars: fc.oneof(anything, fc.constant({ ticket: 'x' })),
      group: fc.oneof(anything, keysOf('model', 'maxBudgetUsd', 'template', 'configTemplate', 'accept', 'setup')),
      sessions: fc.oneof(
        anything,
        fc.dictionary(fc.constantFrom('a', 'b', 'analyze', '1', 'x y'), fc.oneof(session, anything)),
      ),
    },
    { requiredKeys: ['version', 'sessions'] },
  )
  .map((value) => JSON.stringify(value));

const yamlLike = fc
  .array(
    fc.constantFrom(
      ...oddKeys,
      ...oddValues,
      ...snippets,
      '\n',
      '\n  ',
      '\n    ',
      'version: 1\n',
      'sessions:\n  a:\n    ',
    ),
  )
  .map((parts) => parts.join(''));

function checkPositions(problems: readonly Problem[], text: string): void {
  const lines = text.split('\n').length;
  const wrong = problems.filter(({ file, line, column, message }) => {
    const isPlace = Number.isInteger(line) && Number.isInteger(column) && line >= 1 && column >= 1;
    const isInFile = file === 'flow.yaml' ? line <= lines + 1 : file !== '';
    return !isPlace || !isInFile || message === '' || message.endsWith('.');
  });
  expect(wrong).toEqual([]);
}

function neverThrows(text: string): void {
  const loaded = loadWorkflow({ ...folder.input, text, given: { ticket: 'ABC-1' } });
  if (!loaded.ok) {
    expect(loaded.problems.length).toBeGreaterThan(0);
    checkPositions(loaded.problems, text);
  } else {
    const keys = loaded.value.sessions.map(({ key }) => key);
    expect(new Set(keys).size).toBe(keys.length);
    expect(keys.every((key) => /^(?!\d+$)[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/.test(key))).toBe(true);
    // What is drafted can be stored.
    JSON.stringify({ ...loaded.value, sessions: loaded.value.sessions.map((one) => one.definition) });
  }
  const { world, ...rest } = folder.input;
  const problems = validateWorkflowFile(world, { ...rest, text });
  checkPositions(problems, text);
}

describe('any text', () => {
  test('a workflow that was spoiled', () => {
    fc.assert(fc.property(spoiled, neverThrows), { numRuns: isLongRun ? 3_000 : 150 });
  });

  test('the right keys with any values', () => {
    fc.assert(fc.property(structured, neverThrows), { numRuns: share(4_000) });
  });

  test('something like YAML', () => {
    fc.assert(fc.property(yamlLike, neverThrows), { numRuns: share(1_500) });
  });

  test('any text at all', () => {
    fc.assert(fc.property(fc.string({ unit: 'binary', maxLength: 200 }), neverThrows), { numRuns: share(500) });
  });
});

describe('what would cost much', () => {
  const body = 'sessions:\n  a: { project: .., prompt: hi }\n';

  test('an alias bomb', () => {
    const bomb = Array.from({ length: 12 }, (_, level) => {
      const inner = level === 0 ? '"x"' : `*a${level - 1}`;
      return `a${level}: &a${level} [${Array(9).fill(inner).join(', ')}]`;
    });
    expect(folder.allFaults(`version: 1\n${bomb.join('\n')}\n${body}`)).toEqual([
      '1:1 Excessive alias count indicates a resource exhaustion attack',
    ]);
  });

  test('a file of 5 MB', () => {
    expect(folder.allFaults(`version: 1\n${body}# ${'x'.repeat(5_000_000)}`)).toEqual(['1:1 is larger than 1 MiB']);
  });

  test('a value that holds itself', () => {
    const text =
      `version: 1\nsessions:\n  a:\n    project: ..\n    prompt: hi\n    outputSchema: &s\n      ` +
      `type: object\n      x: *s\n`;
    expect(folder.allFaults(text)).toEqual(['8:10 holds itself, by an alias']);
  });

  test('aliases that nest deeper than brackets could', () => {
    const level = (name: string, inner: string) => `x${name}: &${name} ${'['.repeat(90)}${inner}${']'.repeat(90)}`;
    const text = ['version: 1', level('a', '1'), level('b', '*a'), level('c', '*b'), level('d', '*c'), body].join('\n');
    expect(folder.allFaults(text).join()).toContain('nests more than 300 levels');
  });

  test('a matrix of a million sessions', () => {
    const values = `[${Array.from({ length: 100 }, (_, index) => `v${index}`).join(', ')}]`;
    const matrix = `{ x: ${values}, y: ${values}, z: ${values} }`;
    expect(folder.faults(`  a: { project: .., prompt: hi, matrix: ${matrix} }`)).toEqual([
      expect.stringContaining('more than 10000 sessions'),
    ]);
  });

  test('ten thousand sessions that each wait for ten thousand', () => {
    const values = `[${Array.from({ length: 4_000 }, (_, index) => `v${index}`).join(', ')}]`;
    const text =
      `  a: { project: .., prompt: hi, matrix: { x: ${values} } }\n  b: { project: .., prompt: hi, ` +
      `matrix: { x: ${values} }, dependsOn: "a[*]" }`;
    expect(folder.faults(text)).toEqual([expect.stringContaining('more than 100000 dependencies')]);
  });

  test('a long prompt over many sessions', () => {
    const values = `[${Array.from({ length: 5_000 }, (_, index) => `v${index}`).join(', ')}]`;
    const text = `  a:\n    project: ..\n    matrix: { x: ${values} }\n    prompt: ${'x{{matrix.x}} '.repeat(40_000)}`;
    expect(folder.faults(text)).toEqual([expect.stringContaining('more than 64 MiB of text')]);
  });

  test('thousands of wrong names', () => {
    const faults = folder.faults(`  a:\n    project: ..\n    prompt: "${'{{nme}} '.repeat(20_000)}"`);
    expect(faults.length).toBe(201);
    expect(faults.at(-1)).toContain('more problems than the 200');
  });
});
