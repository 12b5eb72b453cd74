/**
 * Promises: what endangers money or safety keeps a run from starting unless that very version is accepted, anything
 * else is only said; a login that the user does not use endangers nobody; and what could not be seen is not trusted.
 */

import { describe, expect, test } from 'bun:test';
import { broken, type ClaimId, claims, holds, type Seen, untried } from '../../../src/app/claude-check/claims.ts';
import { isConclusive, judgeTrial, refuseUntried } from '../../../src/app/claude-check/judge.ts';
import { advise } from '../../../src/core/advice.ts';
import { fail } from '../../../src/core/failure.ts';

const version = '2.1.400';
const all = (...others: readonly Seen[]): Seen[] =>
  claims.map(({ id }) => others.find((one) => one.id === id) ?? holds(id));
const judge = (seen: readonly Seen[], accepted?: string) => judgeTrial({ version, seen }, 'store', accepted);

test('a claude that keeps every promise is used without a word', () => {
  expect(judge(all())).toEqual({ ok: true, value: [] });
});

describe('each claim alone', () => {
  const grave: readonly ClaimId[] = [
    ...(['login-store', 'start', 'hooks', 'mark', 'deny', 'payer', 'cost', 'interrupt', 'budget', 'resume'] as const),
  ];
  test.each([...grave])('%p is refused, and named', (id) => {
    const judged = judge(all(broken(id, 'this was seen')));
    const meaning = claims.find((claim) => claim.id === id)?.meaning.replace(/\.$/, '') ?? '';
    expect(judged).toMatchObject({ ok: false, failure: { reason: 'claude-unproven' } });
    expect(!judged.ok && judged.failure.message).toContain(`${meaning} (this was seen).`);
    expect(!judged.ok && judged.failure.next.sentence).toContain('--accept-claude 2.1.400');
  });

  test.each(['instructions', 'compaction', 'compaction-kept', 'fork'] as const)(
    '%p is said, and the run goes on',
    (id) => {
      const judged = judge(all(broken(id, 'this was seen')));
      expect(judged).toEqual({ ok: true, value: [expect.stringContaining('(this was seen).')] });
    },
  );

  test.each(['login-key', 'login-token'] as const)('%p is no news for who does not use it', (id) => {
    expect(judge(all(broken(id, 'this was seen')))).toEqual({ ok: true, value: [] });
  });

  test('every claim is one of these', () => {
    const harmless = ['instructions', 'compaction', 'compaction-kept', 'fork', 'login-key', 'login-token'];
    expect(claims.map(({ id }) => id).toSorted()).toEqual([...grave, ...harmless].toSorted() as ClaimId[]);
  });
});

test('the login that is used counts, whichever it is', () => {
  const seen = all(broken('login-key', 'refused'));
  expect(judgeTrial({ version, seen }, 'api-key', undefined).ok).toBe(false);
  expect(judgeTrial({ version, seen }, 'oauth-token', undefined).ok).toBe(true);
  expect(judgeTrial({ version, seen }, 'provider', undefined).ok).toBe(true);
});

test('only the version that was tried can be accepted, and what is wrong is said all the same', () => {
  const seen = all(broken('deny', 'a forbidden command ran'), broken('fork', 'no text'));
  expect(judge(seen, '2.1.399').ok).toBe(false);
  const accepted = judge(seen, version);
  expect(accepted.ok && accepted.value).toHaveLength(3);
  expect(accepted.ok && accepted.value.join('\n')).toContain('a forbidden command ran');
});

test('what could not be seen is refused as that, not as a broken promise, and tried again', () => {
  const seen = all(untried('budget', 'nothing was asked'));
  const judged = judge(seen);
  expect(!judged.ok && judged.failure.message).toContain('could not be seen');
  expect(judge(seen, version)).toMatchObject({ ok: true });
  expect(isConclusive(seen)).toBe(false);
  // What is only nice to have need not be seen.
  expect(isConclusive(all(untried('compaction-kept', 'there is none')))).toBe(true);
  expect(isConclusive(all(broken('deny', 'x'), untried('budget', 'y')))).toBe(true);
  expect(isConclusive(all())).toBe(true);
});

test('a trial that did not take place says why, what to do, and how to go on all the same', () => {
  const refused = refuseUntried(version, fail('write-failed', 'The disk is full.', 'Free some.').failure);
  expect(refused.failure).toEqual({
    reason: 'claude-unproven',
    message: 'claude 2.1.400 is new here and could not be tried: The disk is full.',
    next: advise('Free some. Or go on at your own risk with --accept-claude 2.1.400.'),
  });
  const { next } = refuseUntried(version, fail('busy', 'Busy.', '').failure).failure;
  expect(next.commands).toEqual([['doctor', '--claude']]);
});
