/**
 * Promises: ids have the specified form and sort by time. Text becomes a valid slug or is refused, and a reference
 * finds exactly what it names or fails with the reason.
 */

import { describe, expect, test } from 'bun:test';
import { adviceText } from '../../../src/core/advice.ts';
import type { Result } from '../../../src/core/failure.ts';
import {
  checkSlug,
  createdAtOf,
  findGroup,
  findGroupToDestroy,
  findSession,
  isGroupId,
  isSessionId,
  makeGroupId,
  makeSessionId,
  recencyOf,
  sessionNumber,
  sessionUuid,
  slugify,
  slugOf,
} from '../../../src/core/id.ts';
import { cases, fc } from '../../support/core-check.ts';

/** The value, or the reason why there is none. */
function outcome(result: Result<string>): string {
  return result.ok ? result.value : `[${result.failure.reason}]`;
}

describe('slugs', () => {
  test.each([
    ['Auth refactor', 'auth-refactor'],
    ['  --A__b!!C--  ', 'a-b-c'],
    ['Größe über Café', 'gro-e-uber-cafe'],
    ['日本語', ''],
    ['', ''],
    ['../../etc/passwd', 'etc-passwd'],
    [`${'a'.repeat(63)}-b`, 'a'.repeat(63)],
    ['x'.repeat(1000), 'x'.repeat(64)],
  ])('slugify turns %j into a slug', (text, slug) => expect(slugify(text)).toBe(slug));

  test.each(['a', '7', 'auth-refactor-2', 'a'.repeat(64)])('%j is a valid slug', (slug) =>
    expect(outcome(checkSlug(slug))).toBe(slug),
  );

  test.each(['', '-', 'a-', '-a', 'a--b', 'A', 'a b', 'a/b', '..', 'a\n', 'ä', 'a'.repeat(65)])(
    '%j is not a valid slug',
    (slug) => {
      expect(outcome(checkSlug(slug))).toBe('[usage]');
    },
  );

  test('an invalid slug is refused with the closest valid slug or an example', () => {
    const next = (slug: string) => {
      const result = checkSlug(slug);
      return result.ok ? '' : adviceText(result.failure.next);
    };
    expect(next('Auth Refactor')).toContain('"auth-refactor"');
    expect(next('日本語')).toContain('such as');
  });
});

describe('group ids', () => {
  test('a group id is the UTC time and the slug', () => {
    expect(makeGroupId(Date.UTC(2026, 0, 2, 3, 4, 5, 999), 'auth-refactor')).toBe('20260102-030405-auth-refactor');
  });

  test('group ids sort by time, are recognised and contain their slug', () => {
    const slugs = fc.stringMatching(/^[a-z0-9]{1,8}(-[a-z0-9]{1,8}){0,3}$/);
    const times = fc.integer({ min: Date.UTC(1990), max: Date.UTC(2999) });
    fc.assert(
      fc.property(times, times, slugs, slugs, (early, late, one, two) => {
        const ids = [makeGroupId(early, one), makeGroupId(late, two)] as const;
        const sorted = Math.floor(early / 1000) >= Math.floor(late / 1000) || ids[0] < ids[1];
        return sorted && ids.every(isGroupId) && slugOf(ids[0]) === one;
      }),
      cases,
    );
  });

  test.each([
    '',
    'auth',
    '20260102-030405',
    '20260102-030405-',
    '2026010-030405-a',
    '20260102-030405-A',
    '.new-x',
    '20260102-030405-a/b',
  ])('%j is not a group id', (text) => expect(isGroupId(text)).toBe(false));

  const ids = ['20260101-000000-auth', '20260102-000000-auth', '20260103-000000-auth-two', '20260103-000001-20260101'];
  test.each([
    ['20260101-000000-auth', '20260101-000000-auth'],
    ['auth', '20260102-000000-auth'],
    ['auth-two', '20260103-000000-auth-two'],
    ['20260101-', '20260101-000000-auth'],
    ['20260101', '20260103-000001-20260101'],
    ['20260103', '[ambiguous]'],
    ['aut', '[not-found]'],
    ['', '[not-found]'],
  ])('the group reference %j finds %j', (reference, found) => expect(outcome(findGroup(ids, reference))).toBe(found));

  test.each([
    ['20260101-000000-auth', '20260101-000000-auth'],
    ['auth', '[ambiguous]'],
    ['auth-two', '20260103-000000-auth-two'],
    ['20260101-', '20260101-000000-auth'],
    ['nothing', '[not-found]'],
  ])('the group reference %j of a destructive command finds %j', (reference, found) =>
    expect(outcome(findGroupToDestroy(ids, reference, undefined))).toBe(found),
  );

  test.each([
    ['@', 0],
    ['latest', 0],
    ['@0', 0],
    ['@12', 12],
    ['@x', null],
    ['auth', null],
    ['', null],
  ])('the group reference %j goes back %j groups', (reference, back) => expect(recencyOf(reference)).toBe(back));

  test('the creation time can be read from a group id', () => {
    expect(createdAtOf('20260104-143022-a-b')).toBe('2026-01-04T14:30:22.000Z');
  });

  test('a path given as a group reference is reported as a workflow file', () => {
    const result = findGroup([], 'night.yaml');
    const command = ['run', 'night.yaml', '--dry-run'];
    expect(result).toMatchObject({ ok: false, failure: { next: { commands: [command] } } });
  });

  test('an ambiguous group reference lists at most ten candidates', () => {
    const many = Array.from({ length: 50 }, (_, index) => `20260101-0000${index + 10}-x${index}`);
    const result = findGroup(many, '2026');
    expect(result.ok ? '' : result.failure.message).toMatch(/^"2026" fits 50 groups: ([^,]+, ){9}[^,]+\.$/);
  });
});

describe('session ids', () => {
  test('a session id is a number of three or more digits and a uuid', () => {
    expect([1, 42, 999, 1000].map((number) => makeSessionId(number, 'u'))).toEqual([
      '001-u',
      '042-u',
      '999-u',
      '1000-u',
    ]);
  });

  test('session ids are recognised and contain their number and uuid', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 999_999 }), fc.uuid(), (number, id) => {
        const made = makeSessionId(number, id);
        return isSessionId(made) && sessionNumber(made) === number && sessionUuid(made) === id;
      }),
      cases,
    );
  });

  test.each(['', '1-u', '001-', '001', 'abc-u', '001-../x', '001-a b', '0000001-u'])(
    '%j is not a session id',
    (text) => {
      expect(isSessionId(text)).toBe(false);
    },
  );

  const sessions = [
    { id: '001-aaaa1111', name: 'lib' },
    { id: '002-aaaa2222', name: '3' },
    { id: '003-bbbb3333' },
    { id: '012-cccc4444', name: 'app' },
  ];
  test.each([
    ['001-aaaa1111', '001-aaaa1111'],
    ['lib', '001-aaaa1111'],
    ['1', '001-aaaa1111'],
    ['01', '001-aaaa1111'],
    ['3', '002-aaaa2222'],
    ['003', '003-bbbb3333'],
    ['12', '012-cccc4444'],
    ['bbbb', '003-bbbb3333'],
    ['002-', '002-aaaa2222'],
    ['aaaa', '[ambiguous]'],
    // A number is the session number, never a prefix of an id.
    ['00', '[not-found]'],
    ['li', '[not-found]'],
    ['', '[not-found]'],
  ])('the session reference %j finds %j', (reference, found) =>
    expect(outcome(findSession(sessions, reference))).toBe(found),
  );

  test('a full session id always finds its session', () => {
    const groups = fc.uniqueArray(fc.uuid(), { minLength: 1, maxLength: 20 });
    fc.assert(
      fc.property(groups, (uuids) => {
        const all = uuids.map((id, index) => ({ id: makeSessionId(index + 1, id) }));
        return all.every(
          ({ id }) => outcome(findSession(all, id)) === id && outcome(findSession(all, sessionUuid(id))) === id,
        );
      }),
      cases,
    );
  });
});
