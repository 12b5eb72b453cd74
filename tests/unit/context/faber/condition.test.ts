/**
 * Promises: conditions are evaluated as documented, and errors have their column. No text in a condition is executed,
 * reads inherited properties, or throws. Paths into the state are read in all spellings.
 */
import { describe, expect, test } from 'bun:test';
import { parseCondition, parsePath, stateValue } from '../../../../src/context/faber/workflow-config.ts';
import { fc } from '../../../support/property.ts';

const state = { status: 'in_progress', n: 3, empty: '', list: ['a'], artifacts: { spec_path: 'specs/x.md', 'a b': 1 } };

function holds(text: string): boolean {
  const parsed = parseCondition(text);
  if (!parsed.ok) throw new Error(`${parsed.column}: ${parsed.message}`);
  return parsed.holds(state);
}

describe('conditions', () => {
  test.each([
    ['state.artifacts.spec_path != null', true],
    ['state.artifacts.nothing != null', false],
    ['state.artifacts.nothing == null', true],
    ['state.nothing.at.all == null', true],
    ["state.status == 'in_progress'", true],
    ['state.status === "in_progress"', true],
    ['state.status!="completed"', true],
    ['state.n > 2 && state.n <= 3', true],
    ['state.n<2||state.n>=3', true],
    ['state.n < "2"', false],
    ['state.n == "3"', false],
    ['!state.empty', true],
    ['!!state.n', true],
    ['state.status == "a && b" || state.n == 3', true],
    ['! state.n == 3', false],
    ['state.list[0] == "a"', true],
    ["state['artifacts'].spec_path", true],
    ["state.artifacts['a b'] == 1", true],
    ['true', true],
    ['null', false],
    ['false || true && false', false],
    ['-1.5 < 0', true],
    ['state.constructor == null', true],
    ['state.__proto__ == null', true],
    ['state.list.length == null', true],
    ['state.status.length == null', true],
  ])('the condition %s is %p', (text, expected) => expect(holds(text)).toBe(expected));

  test.each([
    ['', 1],
    ['state', 1],
    ['state.a ==', 1],
    ['state.n == 3 && state.a = 1', 17],
    ['(state.a)', 1],
    ['process.exit(1)', 1],
    ['state.a.b()', 1],
    ['state.a == "x', 1],
    ['state.a == 1 || ', 17],
    ['x'.repeat(1001), 1],
  ])('the condition %s is refused at column %d', (text, column) =>
    expect(parseCondition(text)).toMatchObject({ ok: false, column }),
  );

  test('conditions never throw and are true or false for any state', () => {
    const word = fc.constantFrom(
      ...['state', '.a', "['b']", '[0]', '==', '!=', '<', '&&', '||', '!', '(', ' ', 'null', 'true', '1', '"x"', '\\'],
    );
    const text = fc.oneof(
      fc.string(),
      fc.array(word, { maxLength: 12 }).map((words) => words.join('')),
    );
    expect(parseCondition('00').ok).toBe(false);
    fc.assert(
      fc.property(text, fc.jsonValue(), (condition, value) => {
        const parsed = parseCondition(condition);
        if (parsed.ok) expect(typeof parsed.holds(value)).toBe('boolean');
        else expect(parsed.column).toBeGreaterThan(0);
      }),
    );
  });
});

describe('state paths', () => {
  test.each([
    ['artifacts.spec_path', ['artifacts', 'spec_path']],
    ['$.artifacts.spec_path', ['artifacts', 'spec_path']],
    ["$['artifacts']['a b']", ['artifacts', 'a b']],
    ['state.list[0]', ['list', 0]],
    ['state', ['state']],
    ['a..b', null],
    ['a.', null],
    ['', null],
    ['a b', null],
    ['a[b]', null],
  ])('the state path %s is read', (text, expected) => expect(parsePath(text)).toEqual(expected));

  test('a state path does not reach inherited properties', () => {
    expect(stateValue(state, ['artifacts', 'spec_path'])).toBe('specs/x.md');
    expect(stateValue(state, ['list', 0])).toBe('a');
    for (const path of [
      ['constructor'],
      ['list', 'length'],
      ['status', 0],
      ['nothing', 'more'],
      ['toString', 'name'],
    ]) {
      expect(stateValue(state, path)).toBeUndefined();
    }
  });
});
