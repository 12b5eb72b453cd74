/**
 * Promises: what is wanted while a git works in a repository is done by the next one for all who want it, and each gets
 * its own answer; nothing that is refused to one keeps another from what it wants.
 */
import { afterEach, beforeEach, expect, test } from 'bun:test';
import { join } from 'node:path';
import type { Git } from '../../../src/git/git.ts';
import { together } from '../../../src/git/run-git.ts';
import {
  checkWhole,
  keepingRef,
  keepingRefs,
  keptCommits,
  makeBundle,
  setRefs,
  takeBundle,
} from '../../../src/git/worktrees/bundles.ts';
import { createRealWorld } from '../../../src/system/real-world.ts';
import { git, Repository } from '../../support/git/repository.ts';
import { makeTempFolder, unwrap } from '../../support/system/rig.ts';

const world = createRealWorld();
let temp: ReturnType<typeof makeTempFolder>;
let repository: Repository;
let commit: string;
/** Commands of git, in their order. */
let asked: string[];
let own: Git;

beforeEach(() => {
  temp = makeTempFolder();
  repository = new Repository(join(temp.path, 'project'));
  commit = repository.commit({ 'a.txt': 'a\n' });
  asked = [];
  const run: typeof world.processes.run = (options) => {
    asked.push(options.args.filter((arg) => /^(?:update-ref|for-each-ref|bundle|unpack-objects)$/.test(arg)).join(' '));
    return world.processes.run(options);
  };
  own = { env: process.env, world: { ...world, processes: Object.assign(Object.create(world.processes), { run }) } };
});
afterEach(() => temp.remove());

test('those that come while one is at work are worked for at once, each place by itself', async () => {
  const works: (readonly [string, readonly number[]])[] = [];
  const gates = new Map<string, PromiseWithResolvers<void>>(
    ['x', 'y'].map((place) => [place, Promise.withResolvers<void>()]),
  );
  const ask = together(async (_, place, all: readonly number[]) => {
    works.push([place, all]);
    await gates.get(place)?.promise;
    if (all.includes(13)) throw new Error('thirteen');
    return all.map((one) => one * 10);
  });
  const answers = [1, 2, 3].map((one) => ask(own, 'x', one));
  const other = ask(own, 'y', 4);
  expect(works).toEqual([
    ['x', [1]],
    ['y', [4]],
  ]);
  gates.get('y')?.resolve();
  expect(await other).toBe(40);
  gates.get('x')?.resolve();
  expect(await Promise.all(answers)).toEqual([10, 20, 30]);
  expect(works.slice(2)).toEqual([['x', [2, 3]]]);
  // One that fails is the last of nothing.
  await expect(ask(own, 'x', 13)).rejects.toThrow('thirteen');
  expect(await ask(own, 'x', 5)).toBe(50);
});

test('refs of many sessions are set by a few gits, though one of them is refused', async () => {
  const names = Array.from({ length: 20 }, (_, index) => `s${index}`);
  const all = names.map((name, index) =>
    setRefs(own, repository.folder, [[keepingRef(name, 'sent'), index === 7 ? 'f'.repeat(40) : commit]]),
  );
  const done = await Promise.all(all);
  expect(done.map(({ ok }) => ok)).toEqual(names.map((_, index) => index !== 7));
  asked = [];
  const kept = await Promise.all(names.map((name) => keptCommits(own, repository.folder, name)));
  expect(kept.map((one) => unwrap(one).get('sent'))).toEqual(
    names.map((_, index) => (index === 7 ? undefined : commit)),
  );
  expect(asked).toEqual(['for-each-ref', 'for-each-ref']);
  await Promise.all(names.map((name) => setRefs(own, repository.folder, [[keepingRef(name, 'sent'), null]])));
  expect(asked.slice(2)).toEqual(['update-ref', 'update-ref']);
  expect(git(repository.folder, 'for-each-ref', 'refs/claude-code-agent')).toBe('');
});

/** What came since that commit, made elsewhere. */
async function bundleSince(without: string, files: number): Promise<{ tip: string; bytes: Uint8Array }> {
  const folder = join(temp.path, `elsewhere ${files}`);
  git(temp.path, 'clone', '--quiet', repository.folder, folder);
  const elsewhere = new Repository(folder);
  const names = Array.from({ length: files }, (_, index) => [`b${index}.txt`, `${index}\n`]);
  const between = elsewhere.commit({ 'between.txt': 'between\n' });
  const tip = elsewhere.commit(Object.fromEntries(names));
  const range = { refs: ['HEAD'], without: [without === '' ? between : without], folder: temp.path };
  const path = unwrap(await makeBundle(own, folder, range)) as string;
  return { tip, bytes: world.files.readBytes(path, 0, world.files.info(path)?.size ?? 0) };
}

test.each([
  ['few', 3, 'unpack-objects'],
  ['many', 120, 'bundle'],
])('the commits of a bundle with %s objects are taken in whole', async (_, files, command) => {
  const { tip, bytes } = await bundleSince(commit, files);
  asked = [];
  unwrap(await takeBundle(own, repository.folder, bytes, temp.path));
  expect(asked).toContain(command);
  unwrap(await checkWhole(own, repository.folder, [tip], keepingRefs));
  git(repository.folder, 'update-ref', 'refs/heads/taken', tip);
  git(repository.folder, 'fsck', '--full', '--strict', '--no-dangling');
  const packs = git(repository.folder, 'count-objects', '-v').split('\n');
  expect(packs).toContain(`packs: ${command === 'bundle' ? 1 : 0}`);
  // Once more changes nothing.
  expect((await takeBundle(own, repository.folder, bytes, temp.path)).ok).toBe(true);
});

test.each([
  ['few', 3],
  ['many', 120],
])('the commits of a bundle with %s objects that leans on what is not there are not whole', async (_, files) => {
  const { tip, bytes } = await bundleSince('', files);
  await takeBundle(own, repository.folder, bytes, temp.path);
  expect((await checkWhole(own, repository.folder, [tip], keepingRefs)).ok).toBe(false);
  expect((await checkWhole(own, repository.folder, [commit], keepingRefs)).ok).toBe(true);
});
