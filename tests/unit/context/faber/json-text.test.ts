/** Promises: errors in a JSON text have line and column, and so does each of its values. */
import { expect, test } from 'bun:test';
import { fieldOf, readJson } from '../../../../src/context/faber/state.ts';

test.each([
  ['', '1:1'],
  ['{"a": 1,}', '1:9'],
  ['{"a" 1}', '1:6'],
  ['{\n  "a": [1,\n  2\n}', '4:1'],
  ['{"a": "x\ny"}', '1:7'],
  ['// note\n{}', '1:1'],
])('the JSON text %j has its error at %s', (text, place) => {
  expect(readJson(text)).toEqual({ ok: false, trouble: expect.stringContaining(`${place}: is not JSON`) });
});

test('values have their places, and missing values that of their parent', () => {
  const read = readJson('\ufeff{\n  "a": {"b": [10,\n    {"c": 1}]}\n}');
  if (!read.ok) throw new Error(read.trouble);
  expect([['a', 'b', 1, 'c'], ['a', 'b', 7], []].map((path) => read.placeOf(path))).toEqual(['3:11', '2:14', '1:1']);
});

test('inherited properties are not fields', () => {
  expect(fieldOf(JSON.parse('{"__proto__": 1}'), '__proto__')).toBe(1);
  expect([fieldOf({}, '__proto__'), fieldOf([], 'length')]).toEqual([undefined, undefined]);
});
