/**
 * Promises: the journal of a merge is synced to disk before a branch moves, reads back as written, and is refused
 * when damaged. Commands that use it are tested in `tests/system/crash/merge-killed.test.ts`.
 */
import { beforeEach, expect, test } from 'bun:test';
import { mkdirSync, truncateSync } from 'node:fs';
import { join } from 'node:path';
import {
  type MergeJournal,
  readMergeJournal,
  removeMergeJournal,
  writeMergeJournal,
} from '../../../src/store/merge-journal.ts';
import { type GroupPaths, groupPaths } from '../../../src/store/paths.ts';
import { groupId } from '../../support/core-events.ts';
import { steppedWorld } from '../../support/store-world.ts';
import { expectOk } from '../../support/system/rig.ts';
import { withTempFolder } from '../../support/temp-folder.ts';

const journal: MergeJournal = {
  mark: 'm',
  scratches: [{ repository: '/r', path: '/s/r', top: '/s' }],
  moves: [
    { repository: '/r', into: 'main', from: 'a'.repeat(40), to: 'b'.repeat(40), sessionIds: ['x'], checkouts: ['/r'] },
  ],
};

const real = steppedWorld();
const durable: unknown[] = [];
const writeAtomic: typeof real.files.writeAtomic = (path, text, options) => {
  durable.push(options?.durable);
  real.files.writeAtomic(path, text, options);
};
const world = { ...real, files: { ...real.files, writeAtomic } };
const folder = withTempFolder();
let paths: GroupPaths;

beforeEach(() => {
  paths = groupPaths(folder.path, groupId);
  mkdirSync(paths.folder, { recursive: true });
  durable.length = 0;
});

test('a merge journal is synced to disk, reads back as written, and can be removed', () => {
  expect(expectOk(readMergeJournal(world, paths))).toBeNull();
  expectOk(writeMergeJournal(world, paths, journal));
  expect(durable).toEqual([true]);
  expect(expectOk(readMergeJournal(world, paths))).toMatchObject(journal);
  removeMergeJournal(world, paths);
  expect(expectOk(readMergeJournal(world, paths))).toBeNull();
});

test('a torn merge journal is reported and not treated as missing', () => {
  expectOk(writeMergeJournal(world, paths, journal));
  for (const size of [0, 40]) {
    truncateSync(join(paths.folder, 'merge.json'), size);
    expect(readMergeJournal(world, paths)).toMatchObject({ ok: false, failure: { reason: 'corrupt-file' } });
  }
});
