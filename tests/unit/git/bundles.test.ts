/** Promises: refs keep commits of a session, and the commits of a bundle are taken in whole or known not to be. */
import { afterEach, beforeEach, expect, test } from 'bun:test';
import { join } from 'node:path';
import type { Git } from '../../../src/git/git.ts';
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
const own: Git = { env: process.env, world };

beforeEach(() => {
  temp = makeTempFolder();
  repository = new Repository(join(temp.path, 'project'));
  commit = repository.commit({ 'a.txt': 'a\n' });
});
afterEach(() => temp.remove());

test('refs of a session are set, found and removed', async () => {
  unwrap(await setRefs(own, repository.folder, [[keepingRef('s1', 'sent'), commit]]));
  expect((await setRefs(own, repository.folder, [[keepingRef('s2', 'sent'), 'f'.repeat(40)]])).ok).toBe(false);
  expect([...unwrap(await keptCommits(own, repository.folder, 's1'))]).toEqual([['sent', commit]]);
  expect(unwrap(await keptCommits(own, repository.folder, 's2')).size).toBe(0);
  unwrap(await setRefs(own, repository.folder, [[keepingRef('s1', 'sent'), null]]));
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

test('the commits of a bundle are taken in whole', async () => {
  const { tip, bytes } = await bundleSince(commit, 3);
  unwrap(await takeBundle(own, repository.folder, bytes, temp.path));
  unwrap(await checkWhole(own, repository.folder, [tip], keepingRefs));
  git(repository.folder, 'update-ref', 'refs/heads/taken', tip);
  git(repository.folder, 'fsck', '--full', '--strict', '--no-dangling');
  // Once more changes nothing.
  expect((await takeBundle(own, repository.folder, bytes, temp.path)).ok).toBe(true);
});

test('the commits of a bundle that leans on what is not there are not whole', async () => {
  const { tip, bytes } = await bundleSince('', 3);
  await takeBundle(own, repository.folder, bytes, temp.path);
  expect((await checkWhole(own, repository.folder, [tip], keepingRefs)).ok).toBe(false);
  expect((await checkWhole(own, repository.folder, [commit], keepingRefs)).ok).toBe(true);
});
