/** Promises: a template pack is installed, updated and removed atomically, and leftovers of a crash are repaired. */
import { afterEach, beforeEach, expect, test } from 'bun:test';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  findPack,
  listPacks,
  makeFetchFolder,
  placePack,
  removePack,
  withPacks,
  writeNote,
} from '../../../src/app/template/packs.ts';
import { ok } from '../../../src/core/failure.ts';
import { createRealWorld } from '../../../src/system/real-world.ts';
import type { World } from '../../../src/system/world.ts';
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

test('a template pack is installed with its record, and nothing else is left', async () => {
  expect(await place('one')).toMatchObject({ ok: true });
  expect(names()).toEqual(['team']);
  expect(listPacks(world, packs)).toMatchObject([{ name: 'team', note: { source: '/s', commit: 'one' } }]);
  expect(findPack(world, packs, 'nope')).toMatchObject({
    failure: { reason: 'not-found', next: { sentence: expect.stringContaining('team') } },
  });
});

test('another version replaces a template pack, and leftovers of a crash are removed', async () => {
  await place('old');
  mkdirSync(join(packs, '.fetch-1', 'prompts'), { recursive: true });
  await place('new');
  expect(names()).toEqual(['team']);
  expect(readFileSync(join(packs, 'team', 'prompts', 'a.md'), 'utf8')).toBe('new');
});

test('only one command changes template packs at a time, and listing none creates no folder', async () => {
  const inside = await withPacks(world, packs, () => withPacks(world, packs, () => ok('never')), { make: true });
  expect(inside).toMatchObject({ ok: false, failure: { reason: 'busy' } });
  rmSync(packs, { recursive: true });
  expect(await withPacks(world, packs, () => ok('seen'))).toEqual({ ok: true, value: 'seen' });
  expect(existsSync(packs)).toBe(false);
});

test('a template pack is removed completely', async () => {
  await place('one');
  await withPacks(world, packs, () => ok(removePack(world, packs, 'team')));
  expect(names()).toEqual([]);
});
