/** Promises: a pack appears, changes and goes as a whole, and what a crash leaves is put right. */
import { afterEach, beforeEach, expect, test } from 'bun:test';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ok } from '../../../src/core/failure.ts';
import { createRealWorld } from '../../../src/system/real-world.ts';
import type { World } from '../../../src/system/world.ts';
import {
  findPack,
  listPacks,
  makeFetchFolder,
  placePack,
  removePack,
  withPacks,
  writeNote,
} from '../../../src/template/pack.ts';
import { writeTree } from '../../support/git/repository.ts';

const world = createRealWorld();
let root: string;
let packs: string;
beforeEach(() => {
  root = realpathSync(mkdtempSync(join(tmpdir(), 'cca template ')));
  packs = join(root, 'config', 'templates', 'packs');
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

function place(text: string, used: World = world) {
  const put = () => {
    const folder = makeFetchFolder(used, packs);
    writeTree(folder, { 'prompts/a.md': text, 'configs/c/CLAUDE.md': text });
    const note = { version: 1, name: 'team', source: '/s', commit: text, addedAt: '2026-01-02T03:04:05.000Z' } as const;
    writeNote(used, folder, note);
    placePack(used, packs, 'team', folder);
    return ok(undefined);
  };
  return withPacks(used, packs, put, { make: true });
}

function names(): string[] {
  return readdirSync(packs)
    .filter((name) => name !== '.lock')
    .sort();
}

test('a pack is placed with its note, and nothing else is left', async () => {
  expect(await place('one')).toMatchObject({ ok: true });
  expect(names()).toEqual(['team']);
  expect(listPacks(world, packs)).toMatchObject([{ name: 'team', note: { source: '/s', commit: 'one' } }]);
  expect(findPack(world, packs, 'nope')).toMatchObject({
    failure: { reason: 'not-found', next: { sentence: expect.stringContaining('team') } },
  });
});

/** A world whose n-th change of a file fails as on a full disk; with `dies` everything after it fails as well. */
function failingWorld(n: number, dies: boolean): { readonly world: World; readonly failed: () => boolean } {
  let count = 0;
  const guard = <A extends unknown[], R>(action: (...args: A) => R) => {
    return (...args: A): R => {
      count += 1;
      if (count === n || (dies && count > n)) throw Object.assign(new Error('ENOSPC'), { code: 'ENOSPC' });
      return action(...args);
    };
  };
  const { files } = world;
  const guarded = {
    ...files,
    writeAtomic: guard(files.writeAtomic),
    rename: guard(files.rename),
    remove: guard(files.remove),
    makeFolder: guard(files.makeFolder),
  };
  return { world: { ...world, files: guarded }, failed: () => count >= n };
}

test.each([false, true])(
  'wherever the disk fails or the program dies (%p), the old or the new pack is whole',
  async (dies) => {
    const seen = new Set<string>();
    for (let n = 1; ; n++) {
      rmSync(packs, { recursive: true, force: true });
      await place('old');
      const failing = failingWorld(n, dies);
      const result = await place('new', failing.world);
      if (!failing.failed()) break;
      expect(result.ok || result.failure.reason === 'write-failed').toBe(true);
      await withPacks(world, packs, () => ok(undefined));
      expect(names()).toEqual(['team']);
      const texts = ['prompts/a.md', 'configs/c/CLAUDE.md'].map((path) =>
        readFileSync(join(packs, 'team', path), 'utf8'),
      );
      expect(new Set([...texts, listPacks(world, packs)[0]?.note?.commit ?? '']).size).toBe(1);
      seen.add(texts[0] ?? '');
    }
    expect([...seen].sort()).toEqual(['new', 'old']);
  },
);

test('leftovers of a crash are cleared away, and a pack that had stepped aside comes back', async () => {
  await place('old');
  renameSync(join(packs, 'team'), join(packs, '.old-team'));
  for (const name of ['.fetch-1', '.old-gone.x']) mkdirSync(join(packs, name, 'prompts'), { recursive: true });
  mkdirSync(join(packs, 'gone.x'));
  await withPacks(world, packs, () => ok(undefined));
  expect(names()).toEqual(['gone.x', 'team']);
  expect(readFileSync(join(packs, 'team', 'prompts', 'a.md'), 'utf8')).toBe('old');
});

test('only one command changes packs at a time; looking at none makes no folder', async () => {
  const inside = await withPacks(world, packs, () => withPacks(world, packs, () => ok('never')), { make: true });
  expect(inside).toMatchObject({ ok: false, failure: { reason: 'busy' } });
  rmSync(packs, { recursive: true });
  expect(await withPacks(world, packs, () => ok('seen'))).toEqual({ ok: true, value: 'seen' });
  expect(existsSync(packs)).toBe(false);
});

test('a pack goes as a whole', async () => {
  await place('one');
  await withPacks(world, packs, () => ok(removePack(world, packs, 'team')));
  expect(names()).toEqual([]);
});
