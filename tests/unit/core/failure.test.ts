/**
 * Promises: failures read as a sentence and a next step. Violated invariants throw and are marked as internal errors.
 */
import { expect, test } from 'bun:test';
import { advise } from '../../../src/core/advice.ts';
import { assert, describeFailure, fail, needsPerson, ok, unreachable } from '../../../src/core/failure.ts';

test('a failure message ends with its next step', () => {
  const result = fail('busy', 'Another runner holds the group.', 'Wait for it.');
  expect(result).toEqual({
    ok: false,
    failure: {
      reason: 'busy',
      message: 'Another runner holds the group.',
      next: { sentence: 'Wait for it.', commands: [] },
    },
  });
  expect(describeFailure(result.failure)).toBe('Another runner holds the group. Wait for it.');
  expect(describeFailure({ ...result.failure, next: advise('') })).toBe('Another runner holds the group.');
  expect(ok(1)).toEqual({ ok: true, value: 1 });
});

test('violated invariants throw an internal error', () => {
  expect(() => assert(true, 'x')).not.toThrow();
  expect(() => assert(0, 'zero is not enough')).toThrow('Internal error: zero is not enough');
  expect(() => unreachable({ kind: 'new' } as never)).toThrow('Internal error: unexpected {"kind":"new"}');
});

test('only failures that affect every session need a person', () => {
  const reasons = [
    'not-logged-in',
    'billing',
    'claude-missing',
    'claude-unproven',
    'no-result',
    'limit',
    'permission',
    'project-missing',
  ];
  expect(reasons.filter(needsPerson)).toEqual(['not-logged-in', 'billing', 'claude-missing', 'claude-unproven']);
});
