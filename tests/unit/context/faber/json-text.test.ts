/** Promises: JSON is read like the runtime reads it, and what is wrong has its line and column. */
import { expect, test } from 'bun:test';
import { fieldOf, readJson } from '../../../../src/context/faber/json-text.ts';
import { fc } from '../../../support/property.ts';

test.each([
  ['', 1, 1, 'a value was expected instead of the end'],
  ['{', 1, 2, '"," or "}" was expected instead of the end'],
  ['{"a": 1,}', 1, 9, 'a key in double quotes was expected instead of "}"'],
  ['{"a" 1}', 1, 6, '":" was expected instead of "1"'],
  ['{\n  "a": [1,\n  2\n}', 4, 1, '"," or a closing bracket was expected'],
  ['{"a": tru}', 1, 7, 'JSON does not know what stands here'],
  ['{"a": "x\ny"}', 1, 7, 'has no end'],
  ['{"a": "x', 1, 7, 'has no end'],
  ['{"a": "\\q"}', 1, 7, 'escape'],
  ['[1] 2', 1, 5, 'the end was expected'],
  ['// note\n{}', 1, 1, 'JSON knows no comments'],
])('%j is wrong at %d:%d', (text, line, column, message) => {
  const read = readJson(text);
  expect(read).toMatchObject({ ok: false, place: { line, column } });
  expect((read as { message: string }).message).toContain(message);
});

test('values have their places, missing ones that of what should hold them', () => {
  const read = readJson('\ufeff{\n  "a": {"b": [10,\n    {"c": 1}]}\n}');
  if (!read.ok) throw new Error(read.message);
  expect(read.placeOf(['a', 'b', 1, 'c'])).toEqual({ line: 3, column: 11 });
  expect(read.placeOf(['a', 'b', 7])).toEqual({ line: 2, column: 14 });
  expect(read.placeOf([])).toEqual({ line: 1, column: 1 });
});

test('accepts and refuses what the runtime does, and never throws', () => {
  const piece = fc.constantFrom(
    ...['{', '}', '[', ']', ':', ',', '"a"', '"', '\\', '1', '-', '0.5', 'null', ' ', '\n', 'e'],
  );
  const text = fc.oneof(
    fc.json(),
    fc.string(),
    fc.array(piece, { maxLength: 12 }).map((parts) => parts.join('')),
  );
  fc.assert(
    fc.property(text, (json) => {
      let expected: unknown;
      let isJson = true;
      try {
        expected = JSON.parse(json);
      } catch {
        isJson = false;
      }
      const read = readJson(json);
      expect(read.ok).toBe(isJson);
      if (read.ok) {
        expect(read.value).toEqual(expected);
        expect(read.placeOf([]).line).toBeGreaterThan(0);
      } else expect(read.message).not.toBe('is not JSON');
    }),
  );
});

test('deep nesting and long texts are no trouble', () => {
  expect(readJson('['.repeat(100_000)).ok).toBe(false);
  const long = readJson(`{"a": "${'x\\n'.repeat(1_000_000)}", "b": 1}`);
  if (!long.ok) throw new Error(long.message);
  expect(long.placeOf(['b']).column).toBe(3_000_016);
});

test('a field is never an inherited one', () => {
  const { value } = readJson('{"__proto__": 1}') as { value: unknown };
  expect(fieldOf(value, '__proto__')).toBe(1);
  expect(fieldOf({}, '__proto__')).toBeUndefined();
  expect(fieldOf([], 'length')).toBeUndefined();
});
