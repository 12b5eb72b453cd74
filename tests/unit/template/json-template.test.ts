/**
 * Promises: any value survives rendering into JSON and changes nothing around it. Invalid JSON is reported at its
 * place, and findObjectFault agrees with the runtime's parser except for duplicate keys.
 */
import { describe, expect, test } from 'bun:test';
import { findObjectFault } from '../../../src/store/json-positions.ts';
import { renderJson } from '../../../src/template/config-template.ts';
import { fc } from '../../support/property.ts';

const render = (text: string, values: Record<string, string>) =>
  renderJson({ text, file: 'settings.json' }, (name) => (Object.hasOwn(values, name) ? values[name] : undefined));

describe('values in JSON', () => {
  test('any value inside a JSON string is read back unchanged', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (value) => {
        const { text, problems } = render('{"a{{v}}": "<{{v}}>\\"{{v}}", "b": ["{{ v }}"], "c": "{{v}}"}', {
          v: value,
        });
        expect(problems).toEqual([]);
        expect(JSON.parse(text)).toEqual({ [`a${value}`]: `<${value}>"${value}`, b: [value], c: value });
      }),
      { numRuns: 1000 },
    );
  });

  test('any value outside a JSON string is one JSON value', () => {
    const attack = fc.constantFrom('1, "permissions": {}', '"x", "y": 1', '}', '{"deny": []} , ', '[1', '{{v}}', '$&');
    fc.assert(
      fc.property(fc.oneof(fc.string(), attack, fc.json()), (value) => {
        const { text, problems } = render('{"v": {{v}}, "deny": ["Bash"]}', { v: value });
        // A value with duplicate keys is refused like a file with them.
        if (problems.length > 0) return expect(problems[0]?.message).toContain('appears twice');
        const parsed = JSON.parse(text) as { v: unknown };
        expect(Object.keys(parsed)).toEqual(['v', 'deny']);
        expect(JSON.stringify(parsed.v)).toBe(JSON.stringify(jsonOr(value)));
      }),
      { numRuns: 1000 },
    );
  });

  test.each([
    ['{"n": {{v}}}', '1.50', '{"n": 1.50}'],
    ['{"n": {{v}}}', '12345678901234567890', '{"n": 12345678901234567890}'],
    ['{"n": {{v}}}', 'sonnet', '{"n": "sonnet"}'],
    ['{"n": {{v}}}', '', '{"n": ""}'],
    ['{"n": {{v}}}', '["a"]', '{"n": ["a"]}'],
    ['{"n": "\\{{v}} $\\{{v}}"}', 'x', `{"n": "{{v}} \${{v}}"}`],
    [`{"n": "\${{v}}"}`, 'x', `{"n": "\${{v}}"}`],
  ])('the JSON template %j with %j gives %j', (template, value, text) => {
    expect(render(template, { v: value })).toEqual({ text, problems: [] });
  });

  test('an error is reported at its place in the template, not in the result', () => {
    const template = '{\n  "a": "{{v}}",\n  "b": "\\{{v}}", "c": {{v}},\n  "d" 1\n}';
    const long = 'x\ny'.repeat(50);
    expect(render(template, { v: long }).problems).toEqual([
      { file: 'settings.json', line: 4, column: 7, message: 'is not JSON: a colon is expected after the key' },
    ]);
  });
});

function jsonOr(value: string): unknown {
  try {
    return JSON.parse(value);
  } catch {
    return value;
  }
}

describe('findObjectFault', () => {
  test.each([
    ['', 0, 'a JSON object is expected, which starts with "{"'],
    ['[1]', 0, 'a JSON object is expected, which starts with "{"'],
    [
      '{"a": 1} x',
      9,
      'is not JSON: a value is expected: text in double quotes, a number, true, false, null, "{" or "["',
    ],
    ['{"a": 1,}', 8, 'is not JSON: a key in double quotes is expected; remove a comma before "}" or "]"'],
    ['{"a": [1,]}', 9, 'is not JSON: a value is expected; remove a comma before "}" or "]"'],
    ["{'a': 1}", 1, 'is not JSON: a value is expected: text in double quotes, a number, true, false, null, "{" or "["'],
    ['{"a": 1 // x\n}', 8, 'is not JSON: JSON does not allow comments'],
    ['{"a": "x\ny"}', 6, 'is not JSON: a quote is not closed on its line'],
    ['{"a": 01}', 7, 'is not JSON: a comma is expected between two values'],
    [
      '{"a": NaN}',
      6,
      'is not JSON: a value is expected: text in double quotes, a number, true, false, null, "{" or "["',
    ],
    ['{"a": 1', 7, 'is not JSON: a "{" is not closed before this'],
    ['{"deny": [1], "\\u0064eny": []}', 14, 'the key "deny" appears twice'],
  ])('findObjectFault agrees with the parser about %j', (text, offset, message) => {
    expect(findObjectFault(text)).toEqual({ offset, message });
  });
});
