/**
 * Promises: a claude that fails a required check, or could not be checked, is refused unless exactly that version is
 * accepted. Any other failed check is a warning.
 */
import { expect, test } from 'bun:test';
import {
  broken,
  type CheckId,
  type CheckResult,
  checks,
  holds,
  isConclusive,
  judgeCheck,
  refuseUncheckedVersion,
  unknown,
} from '../../../src/app/claude-check/checks.ts';
import { advise } from '../../../src/core/advice.ts';
import { fail } from '../../../src/core/failure.ts';

const version = '2.1.400';
const all = (...others: readonly CheckResult[]): CheckResult[] =>
  checks.map(({ id }) => others.find((one) => one.id === id) ?? holds(id));
const judged = (results: readonly CheckResult[], accepted?: string) => judgeCheck({ version, results }, accepted);
const meaningOf = (id: CheckId) => checks.find((one) => one.id === id)?.meaning.replace(/\.$/, '');
const required = ['login', 'deny', 'cap'] as const;
const others = checks.map(({ id }) => id).filter((id) => !(required as readonly CheckId[]).includes(id));

test('a claude that passes every check is used without a warning', () => {
  expect(judged(all())).toEqual({ ok: true, value: [] });
});

test.each(required)('a claude that fails the check %p is refused', (id) => {
  const refused = judged(all(broken(id, 'this was seen')));
  expect(refused).toMatchObject({ ok: false, failure: { reason: 'claude-unproven' } });
  expect(!refused.ok && refused.failure.message).toContain(`${meaningOf(id)} (this was seen).`);
  expect(!refused.ok && refused.failure.next.sentence).toContain('--accept-claude 2.1.400');
});

test.each(others)('a claude that fails the check %p is used with a warning', (id) => {
  const warning = `claude 2.1.400: ${meaningOf(id)} (this was seen).`;
  expect(judged(all(broken(id, 'this was seen')))).toEqual({ ok: true, value: [warning] });
});

test('only the version that was checked can be accepted, and its failures are still warnings', () => {
  const results = all(broken('deny', 'a forbidden command ran'), broken('hooks', 'no hook was reported'));
  expect(judged(results, '2.1.399').ok).toBe(false);
  const accepted = judged(results, version);
  expect(accepted.ok && accepted.value).toHaveLength(3);
  expect(accepted.ok && accepted.value.join('\n')).toContain('a forbidden command ran');
});

test('a required check that could not run refuses claude, and is repeated by the next run', () => {
  const results = all(unknown('cap', 'no request was made'));
  const refused = judged(results);
  const why = 'It is unknown whether it stops at --max-budget-usd (no request was made).';
  expect(!refused.ok && refused.failure.message).toContain(why);
  expect(judged(results, version).ok).toBe(true);
  expect(isConclusive(results)).toBe(false);
  expect(isConclusive(all(unknown('cost', 'x')))).toBe(true);
  expect(judged(all(unknown('cost', 'x')))).toEqual({ ok: true, value: [] });
  expect(isConclusive(all(broken('deny', 'x'), unknown('cap', 'y')))).toBe(true);
  expect(isConclusive(all())).toBe(true);
});

test('a check that could not run reports the reason, the remedy, and how to continue anyway', () => {
  const refused = refuseUncheckedVersion(version, fail('write-failed', 'The disk is full.', 'Free some.').failure);
  expect(refused.failure).toEqual({
    reason: 'claude-unproven',
    message: 'claude 2.1.400 is new here and could not be checked: The disk is full.',
    next: advise('Free some. Or continue at your own risk with --accept-claude 2.1.400.'),
  });
  const { next } = refuseUncheckedVersion(version, fail('busy', 'Busy.', '').failure).failure;
  expect(next.commands).toEqual([['doctor', '--claude']]);
});
