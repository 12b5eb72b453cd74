/** Promises: files that arrive for a session are stored only in its folder, with the paths of this host. */
import { beforeEach, expect, test } from 'bun:test';
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fillIn, layOut, type Places, removeOtherConversations, takeOut } from '../../../src/fleet/agent/lay-out.ts';
import { type ParcelFile, projectSlug } from '../../../src/fleet/wire.ts';
import { createRealWorld } from '../../../src/system/real-world.ts';
import { withTempFolder } from '../../support/temp-folder.ts';

const { files } = createRealWorld();
const temp = withTempFolder();
let places: Places;

beforeEach(() => {
  const session = join(temp.path, 'session');
  mkdirSync(session);
  places = {
    session,
    worktree: join(session, 'worktree'),
    package: '/opt/$& package',
    bun: '/opt/bun',
    slug: '-work-one',
  };
});

const file = (path: string, content: string, more: Partial<ParcelFile> = {}): ParcelFile => ({
  ...{ path, isText: true, data: Buffer.from(content).toString('base64') },
  ...more,
});
const at = (path: string): string => join(places.session, path);
const text = (path: string): string => readFileSync(at(path), 'utf8');

test('texts get the paths of this host, other bytes are unchanged, and claude finds its conversation', () => {
  const all = '{{cca:bun}} {{cca:package}}/bin {{cca:session}}/x {{cca:worktree}}';
  const parcel = [
    file('a/settings.json', all),
    file('claude-config/projects/{{cca:slug}}/talk.jsonl', all, { isText: false }),
  ];
  expect(layOut(files, parcel, places).ok).toBe(true);
  expect(text('a/settings.json')).toBe(`/opt/bun /opt/$& package/bin ${places.session}/x ${places.worktree}`);
  expect(text('claude-config/projects/-work-one/talk.jsonl')).toBe(all);
  expect(statSync(at('a/settings.json')).mode & 0o777).toBe(0o600);
  expect(takeOut(fillIn(all, places), places)).toBe(all);
  expect(projectSlug('/srv/a.b/ü_1')).toBe('-srv-a-b---1');
});

test('storing the files again gives the same result, and a piece goes to its place in an existing file', () => {
  const whole = file('talk.jsonl', 'one\ntwo\n', { isText: false });
  for (let time = 0; time < 2; time += 1) layOut(files, [whole], places);
  layOut(files, [file('talk.jsonl', 'TWO\nthree\n', { isText: false, offset: 4 })], places);
  expect(text('talk.jsonl')).toBe('one\nTWO\nthree\n');
  expect(readdirSync(places.session)).toEqual(['talk.jsonl']);
  layOut(files, [file('talk.jsonl', 'other', {})], places, true);
  expect(text('talk.jsonl')).toBe('one\nTWO\nthree\n');
});

test.each([
  ...['../outside', 'a/../../outside', '/outside', 'a//b', './a', 'a/..', '', 'a/.', 'a\\b', 'a\0b'],
  ...['worktree/.git', 'worktree/.GIT/hooks/pre-commit', 'worktree/sub/.git/config'],
  ...['transcript.jsonl', 'order.json', 'stdin.fifo', 'tmp/x', `${'a/'.repeat(2_100)}b`],
])('a parcel with the path %j is refused, and nothing of it is written', (path) => {
  const laidOut = layOut(files, [file('good', 'x'), file(path, 'x')], places);
  expect(laidOut.ok ? '' : laidOut.failure.reason).toBe('usage');
  expect(readdirSync(places.session)).toEqual([]);
  expect(readdirSync(temp.path)).toEqual(['session']);
});

test('a conversation that the runner does not know is removed, and targets of symlinks stay', () => {
  const known = file('claude-config/projects/{{cca:slug}}/known.jsonl', 'x');
  const outside = join(temp.path, 'outside');
  mkdirSync(outside);
  writeFileSync(join(outside, 'precious.jsonl'), 'precious');
  for (const name of ['known', 'unknown']) layOut(files, [file(known.path.replace('known', name), 'x')], places);
  layOut(files, [file('claude-config/settings.json', 'x')], places);
  symlinkSync(outside, at('claude-config/projects/link'));
  removeOtherConversations(files, [known], places);
  expect(readdirSync(at('claude-config/projects/-work-one'))).toEqual(['known.jsonl']);
  expect([text('claude-config/settings.json'), readdirSync(outside)]).toEqual(['x', ['precious.jsonl']]);
});

test('symlinks made by a session are not followed', () => {
  const outside = join(temp.path, 'outside');
  mkdirSync(outside);
  writeFileSync(join(outside, 'precious'), 'precious');
  symlinkSync(outside, at('inputs'));
  symlinkSync(join(outside, 'precious'), at('prompt.md'));
  symlinkSync(join(outside, 'new'), at('nowhere.md'));
  for (const path of ['inputs/precious', 'inputs/new', 'prompt.md', 'nowhere.md', 'inputs']) {
    const laidOut = layOut(files, [file(path, 'x')], places);
    expect(laidOut.ok ? '' : laidOut.failure.reason).toBe('worktree-failed');
  }
  expect(readdirSync(outside)).toEqual(['precious']);
  expect(readFileSync(join(outside, 'precious'), 'utf8')).toBe('precious');
  mkdirSync(at('folder'));
  expect(layOut(files, [file('folder', 'x')], places).ok).toBe(false);
  writeFileSync(at('plain'), 'x');
  expect(layOut(files, [file('plain/below', 'x')], places).ok).toBe(false);
  expect(existsSync(at('good'))).toBe(false);
});
