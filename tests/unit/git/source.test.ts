/**
 * Promises: every usual way to name a repository is understood, passwords are removed from URLs, and no value reaches
 * git as an option.
 */

import { expect, test } from 'bun:test';
import { describeFailure } from '../../../src/core/failure.ts';
import { nameOfSource, parseRef, parseRepository, splitRef } from '../../../src/git/source.ts';

test.each([
  ['https://git.example.org/team/templates.git', 'https://git.example.org/team/templates.git', 'templates'],
  ['https://git.example.org:8443/team/t', 'https://git.example.org:8443/team/t', 't'],
  ['HTTPS://git.example.org/team/Pack.GIT', 'https://git.example.org/team/Pack.GIT', 'Pack'],
  ['ssh://git@git.example.org:2222/team/t.git', 'ssh://git@git.example.org:2222/team/t.git', 't'],
  ['git@git.example.org:team/templates.git', 'git@git.example.org:team/templates.git', 'templates'],
  ['work:templates.git/', 'work:templates.git/', 'templates'],
  ['file:x', 'file:x', 'x'],
  ['file:///srv/our%20templates', 'file:///srv/our%20templates', 'our%20templates'],
])('the source %s is a repository', (text, url, name) => {
  expect(parseRepository(text)).toEqual({ ok: true, value: { url } });
  expect(nameOfSource(url)).toBe(name);
});

test.each(['.', '../templates', '/srv/templates', './a:b', 'templates', 'a/b:c', '~x/y'])(
  'the source %s is a path',
  (text) => {
    expect(parseRepository(text)).toEqual({ ok: true, value: null });
  },
);

test.each([
  ['', 'is invalid'],
  ['  ', 'is invalid'],
  ['a\nb', 'is invalid'],
  ['ext::sh -c touch%20x', 'start a program'],
  ['foo::https://git.example.org/x', 'start a program'],
  ['http://git.example.org/x', 'not encrypted'],
  ['git://git.example.org/x', 'not encrypted'],
  ['ftp://git.example.org/x', 'not a supported URL scheme'],
  ['https:///x', 'is invalid'],
  ['ssh:///x', 'is invalid'],
  ['https://[x/y', 'is invalid'],
  ['https://git.example.org/x#main', '--ref'],
  ['https://git.example.org/x?token=1', 'is invalid'],
  ['https://git.example.org/x%0ay', 'is invalid'],
  ['https://git.example.org/%zz', 'is invalid'],
  ['file://server/x', 'another host'],
  ['ssh://-oProxyCommand=x/y', 'option'],
  ['ssh://-x@git.example.org/y', 'option'],
  ['-oProxyCommand=x:y', 'option'],
  ['git@-x:y', 'option'],
  ['git.example.org:-y', 'option'],
])('the source %s is refused', (text, why) => {
  const parsed = parseRepository(text);
  const said = parsed.ok ? '' : describeFailure(parsed.failure);
  expect(said).toContain(why);
});

test('a password in a URL is removed and passed separately', () => {
  expect(parseRepository('https://me:p%40ss@git.example.org/x.git')).toEqual({
    ok: true,
    value: { url: 'https://git.example.org/x.git', login: { user: 'me', password: 'p@ss' } },
  });
  expect(parseRepository('https://token@git.example.org/x')).toMatchObject({
    value: { url: 'https://git.example.org/x', login: { user: 'token', password: '' } },
  });
  expect(parseRepository('ssh://git:secret@git.example.org/x')).toEqual({
    ok: true,
    value: { url: 'ssh://git@git.example.org/x' },
  });
});

test.each([
  ['https://git.example.org/team/t.git@v2', 'https://git.example.org/team/t.git', 'v2'],
  ['ssh://git@git.example.org/t@main', 'ssh://git@git.example.org/t', 'main'],
  ['git@git.example.org:team/t.git@v1.2', 'git@git.example.org:team/t.git', 'v1.2'],
  ['git.example.org:/srv/t@x', 'git.example.org:/srv/t', 'x'],
  ['file:///srv/t@v1', 'file:///srv/t', 'v1'],
])('the source %s names a ref', (address, repository, ref) => {
  expect(splitRef(address)).toEqual({ repository, ref });
});

test.each([
  'https://me@git.example.org/t',
  'https://me:secret@git.example.org/t',
  'https://me:secret@git.example.org',
  'ssh://git@git.example.org:22/t',
  'git@git.example.org:team/t.git',
  '../team@2',
  './a@b',
])('the source %s names no ref', (address) => {
  expect(splitRef(address)).toEqual({ repository: address });
});

test.each(['main', 'v1.2', 'feature/x', 'refs/tags/v1', 'a'.repeat(40), '_x', 'release-2.0+1'])(
  'the ref %s is valid',
  (ref) => {
    expect(parseRef(ref)).toEqual({ ok: true, value: ref });
  },
);

test.each([
  '',
  '-x',
  '--upload-pack=x',
  '+main',
  'a:b',
  'a..b',
  'a b',
  'a^',
  'a~1',
  'a*',
  '/a',
  'a/',
  'a.lock',
  '@{u}',
  'x'.repeat(201),
])('the ref %s is refused', (ref) => {
  expect(parseRef(ref)).toMatchObject({ ok: false, failure: { reason: 'usage' } });
});
