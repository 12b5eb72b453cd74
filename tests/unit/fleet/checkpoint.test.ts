/**
 * Promises: a checkpoint reports what is new since the last one: whole lines of a conversation, and other files
 * completely.
 */
import { beforeEach, describe, expect, test } from 'bun:test';
import { appendFileSync, mkdirSync, readFileSync, rmSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { layOut, type Places, SessionFiles, snapshotWork } from '../../../src/fleet/agent/lay-out.ts';
import { createRealWorld } from '../../../src/system/real-world.ts';
import { basePath, expectOk } from '../../support/system/rig.ts';
import { withTempFolder } from '../../support/temp-folder.ts';

const world = createRealWorld();
const temp = withTempFolder();
let places: Places;
let other: Places;
const talk = 'claude-config/projects/-one/talk.jsonl';

beforeEach(() => {
  const of = (name: string) => ({ session: join(temp.path, name), worktree: join(temp.path, name, 'worktree') });
  places = { ...of('one'), package: '/opt/one', bun: '/opt/bun', slug: '-one' };
  other = { ...of('two'), package: '/opt/two', bun: '/usr/bun', slug: '-two' };
  for (const { session, slug } of [places, other])
    mkdirSync(join(session, 'claude-config/projects', slug), { recursive: true });
});

const write = (path: string, text: string): void => {
  mkdirSync(join(places.session, path, '..'), { recursive: true });
  writeFileSync(join(places.session, path), text);
};
const there = (path: string): string => readFileSync(join(other.session, path), 'utf8');

test('a checkpoint omits known data and transfers new data unchanged', () => {
  write('prompt.md', 'old');
  const session = new SessionFiles(world.files, places);
  session.noteAll();
  expect(expectOk(session.changed())).toBeNull();
  write(talk, '{"a":1}\n{"b":2}\n{"half');
  write('claude-config/.claude.json', `{"${places.session}/worktree":{}}`);
  write('claude-config/image', '\0\x01');
  for (const own of ['transcript.jsonl', 'stderr.log', 'tmp/x', 'worktree/x', 'meta.json', 'order.json'])
    write(own, 'x');
  symlinkSync('/etc/hostname', join(places.session, 'link'));
  const first = expectOk(session.changed());
  expect(first?.map(({ path }) => path)).toEqual([
    ...['claude-config/.claude.json', 'claude-config/image', 'claude-config/projects/{{cca:slug}}/talk.jsonl'],
  ]);
  expectOk(layOut(world.files, first ?? [], other));
  expect(there('claude-config/.claude.json')).toBe(`{"${other.session}/worktree":{}}`);
  expect(there('claude-config/projects/-two/talk.jsonl')).toBe('{"a":1}\n{"b":2}\n');
  expect(expectOk(session.changed())).toBeNull();
  appendFileSync(join(places.session, talk), '"}\n{"c":3}\n');
  const second = expectOk(session.changed());
  expect(second).toMatchObject([{ offset: 16 }]);
  expectOk(layOut(world.files, second ?? [], other));
  expect(there('claude-config/projects/-two/talk.jsonl')).toBe('{"a":1}\n{"b":2}\n{"half"}\n{"c":3}\n');
});

test('data beyond the send limit is not read, and is sent once there is room', () => {
  const session = new SessionFiles(world.files, places);
  write(talk, 'one\n');
  write('claude-config/endless', '');
  // None of it is on the disk.
  truncateSync(join(places.session, 'claude-config/endless'), 3 * 1024 ** 3);
  const tooMuch = session.changed();
  expect(tooMuch.ok || tooMuch.failure.message).toStartWith('4301 MB would have to be sent to another host');
  rmSync(join(places.session, 'claude-config/endless'));
  expect(expectOk(session.changed())).toMatchObject([{ data: Buffer.from('one\n').toString('base64') }]);
});

test('data that could not be stored for sending is reported again', () => {
  const session = new SessionFiles(world.files, places);
  write(talk, 'one\n');
  session.changed();
  write(talk, 'one\ntwo\n');
  const lost = expectOk(session.changed());
  session.takeBack();
  expect(lost).not.toBeNull();
  expect(expectOk(session.changed())).toEqual(lost);
  expect(expectOk(session.changed())).toBeNull();
});

test('a conversation that shrank or was replaced is sent completely', () => {
  const session = new SessionFiles(world.files, places);
  write(talk, 'one\ntwo\n');
  session.changed();
  writeFileSync(join(places.session, talk), 'new\n');
  expect(expectOk(session.changed())).toMatchObject([{ offset: 0, data: Buffer.from('new\n').toString('base64') }]);
  rmSync(join(places.session, talk));
  expect(expectOk(session.changed())).toBeNull();
});

describe('worktree checkpoints', () => {
  const git = { world, env: { PATH: basePath, HOME: '/nowhere' } };
  const run = (cwd: string, ...args: string[]): string => {
    const identity = ['-c', 'user.name=T', '-c', 'user.email=t@localhost'];
    const ran = Bun.spawnSync(['git', ...identity, ...args], { cwd, env: git.env });
    if (!ran.success) throw new Error(ran.stderr.toString());
    return ran.stdout.toString().trim();
  };

  test('commits and uncommitted changes are reported once, and the session’s index is unchanged', async () => {
    const [repository, path] = [join(temp.path, 'bare'), join(temp.path, 'tree')];
    mkdirSync(repository);
    run(repository, 'init', '--bare', '--quiet', '--initial-branch=main');
    run(temp.path, 'clone', '--quiet', repository, path);
    run(path, 'commit', '--quiet', '--allow-empty', '-m', 'first');
    run(path, 'push', '--quiet', 'origin', 'HEAD');
    run(repository, 'worktree', 'add', '--quiet', join(temp.path, 'worktree'), '-b', 'session');
    const worktree = join(temp.path, 'worktree');
    const head = run(worktree, 'rev-parse', 'HEAD');
    const shoot = async (told: { head: string; snapshot: string }) =>
      expectOk(await snapshotWork(git, { path: worktree, repository }, 'session-1', { told, remote: undefined }));
    expect(await shoot({ head, snapshot: head })).toBeNull();
    writeFileSync(join(worktree, 'staged'), 'x');
    run(worktree, 'add', 'staged');
    writeFileSync(join(worktree, 'loose'), 'x');
    const before = run(worktree, 'status', '--porcelain');
    const first = await shoot({ head, snapshot: head });
    if (first === null) throw new Error('nothing was new');
    expect(run(worktree, 'status', '--porcelain')).toBe(before);
    expect(run(worktree, 'ls-tree', '--name-only', first.snapshot)).toBe('loose\nstaged');
    expect(first.head).toBe(head);
    expect(run(repository, 'rev-parse', 'refs/claude-code-agent/session-1/snapshot')).toBe(first.snapshot);
    expect(await shoot(first)).toBeNull();
    run(worktree, 'add', '--all');
    run(worktree, 'commit', '--quiet', '-m', 'all');
    const second = await shoot(first);
    expect([second?.head, second?.snapshot]).toEqual(Array(2).fill(run(worktree, 'rev-parse', 'HEAD')));
  });
});
