/**
 * Promises, with the real git: a checkout whose update was interrupted (killed at any git call, or a full disk that
 * left files partial, missing or of another size) is brought to its branch's commit, forwards and back. What that
 * replaces is kept in a stash. Sparse exclusions stay.
 */
import { afterEach, beforeEach, expect, test } from 'bun:test';
import {
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Git } from '../../../src/git/git.ts';
import { followBranch } from '../../../src/git/target.ts';
import { createRealWorld } from '../../../src/system/real-world.ts';
import type { World } from '../../../src/system/world.ts';
import { git, Repository } from '../../support/git/repository.ts';

let root: string;
let repository: Repository;
let before: string;
let after: string;
const big = Buffer.from(Array.from({ length: 200_000 }, (_, index) => (index * 7) % 251));
beforeEach(() => {
  root = realpathSync(mkdtempSync(join(tmpdir(), 'cca git ')));
  repository = new Repository(join(root, 'shop'));
  before = repository.commit({ 'base.txt': 'base\n', 'gone.txt': 'gone\n', 'kept.txt': 'kept\n', 'own.txt': 'own\n' });
  after = repository.commit({
    ...{ 'base.txt': 'base\nmore\n', 'gone.txt': null, 'own.txt': 'theirs\n', 'd/big.bin': big },
    ...Object.fromEntries(Array.from({ length: 250 }, (_, index) => [`d/${index}.txt`, `${index}\n`])),
  });
  git(repository.folder, 'reset', '--quiet', '--hard', before);
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

const inside = (path: string) => join(repository.folder, path);
const status = () => git(repository.folder, 'status', '--porcelain');

function gitIn(world: World): Git {
  return { world, env: { PATH: process.env.PATH, HOME: root, GIT_CONFIG_SYSTEM: '/dev/null' } };
}

const real = createRealWorld();

/** The branch has moved; its checkout must follow. */
function follow(to: string, world = real, isReturn = false) {
  const from = to === after ? before : after;
  git(repository.folder, 'update-ref', 'refs/heads/main', to);
  return followBranch(gitIn(world), { checkout: repository.folder, branch: 'main', from, to, isReturn });
}

/** Dies in place of the n-th git call from now on; `died` resolves then. */
function dyingAt(call: number): { readonly world: World; readonly died: Promise<'died'> } {
  let calls = 0;
  const { promise, resolve } = Promise.withResolvers<'died'>();
  const run: World['processes']['run'] = (options) => {
    calls += 1;
    if (calls < call) return real.processes.run(options);
    resolve('died');
    return new Promise(() => {});
  };
  return { world: { ...real, processes: Object.assign(Object.create(real.processes), { run }) }, died: promise };
}

/** Its files match the commit, but git does not know that without looking. */
function touch(): void {
  utimesSync(inside('base.txt'), 1_000_000, 1_000_000);
}

test.each(Array.from({ length: 14 }, (_, index) => index + 1))('killed at call %d, it continues', async (call) => {
  touch();
  const { world, died } = dyingAt(call);
  const ended = await Promise.race([follow(after, world), died]);
  if (ended !== 'died') expect(ended).toMatchObject({ ok: true });
  expect(await follow(after)).toEqual({ ok: true, value: [] });
  expect(status()).toBe('');
  expect(readFileSync(inside('base.txt'), 'utf8')).toBe('base\nmore\n');
  expect(readdirSync(inside('d'))).toHaveLength(251);
});

/** The disk was full: some files the index does not know exist, one is partial, one was to be replaced. */
function cutOff(): void {
  writeFileSync(inside('own.txt'), 'theirs\n');
  rmSync(inside('base.txt'));
  rmSync(inside('gone.txt'));
  Bun.spawnSync(['mkdir', inside('d')]);
  writeFileSync(inside('d/0.txt'), '0\n');
  writeFileSync(inside('d/big.bin'), big.subarray(0, 81_920));
}

/** The one note names the stash, which has the file. */
function expectStashed(followed: unknown, path: string, text: string): void {
  expect(followed).toMatchObject({ ok: true, value: [expect.stringContaining('kept in a stash')] });
  expect(git(repository.folder, 'show', `stash@{0}:${path}`)).toBe(text);
  expect(status()).toBe('');
}

test('after a full disk the checkout returns to where it was', async () => {
  cutOff();
  expectStashed(await follow(before, real, true), 'own.txt', 'theirs');
  expect(readFileSync(inside('own.txt'), 'utf8')).toBe('own\n');
  expect(existsSync(inside('d'))).toBe(false);
});

test('after a full disk the checkout follows once there is space', async () => {
  cutOff();
  expectStashed(await follow(after), 'own.txt', 'theirs');
  expect(readFileSync(inside('d/big.bin')).equals(big)).toBe(true);
});

test("the user's meanwhile changes are kept in a stash in both directions", async () => {
  for (const to of [after, before]) {
    git(repository.folder, 'reset', '--quiet', '--hard', before);
    git(repository.folder, 'clean', '--quiet', '-d', '--force');
    cutOff();
    writeFileSync(inside('own.txt'), 'mine\n');
    expectStashed(await follow(to, real, to === before), 'own.txt', 'mine');
    expect(readFileSync(inside('own.txt'), 'utf8')).toBe(to === after ? 'theirs\n' : 'own\n');
  }
});

test('files outside a sparse checkout stay outside', async () => {
  git(repository.folder, 'sparse-checkout', 'set', '--no-cone', '/*', '!own.txt');
  touch();
  writeFileSync(inside('d'), 'in the way');
  rmSync(inside('d'));
  expect(await follow(after)).toEqual({ ok: true, value: [] });
  expect(existsSync(inside('own.txt'))).toBe(false);
  expect(status()).toBe('');
});
