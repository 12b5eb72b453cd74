/**
 * Promises: changes in a watched folder are reported as hints, and without a watch nothing breaks. Limits of inotify
 * are not tested.
 */
import { expect, test } from 'bun:test';
import { appendFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createFiles, watchPath } from '../../../src/system/files.ts';
import { withTempFolder } from '../../support/temp-folder.ts';

const temp = withTempFolder();

/** Resolves with the next hint after `change`. */
async function hintAfter(change: () => void): Promise<void> {
  const hint = Promise.withResolvers<void>();
  const end = watchPath(temp.path, hint.resolve);
  change();
  await hint.promise;
  end();
}

test('appending, replacing and creating files each give a hint', async () => {
  const path = join(temp.path, 'transcript.jsonl');
  await hintAfter(() => writeFileSync(path, 'a'));
  await hintAfter(() => appendFileSync(path, 'b'));
  await hintAfter(() => createFiles().writeAtomic(path, 'c'));
});

test('a watched file gives hints about appended data, and none about its neighbours', async () => {
  const path = join(temp.path, 'transcript.jsonl');
  writeFileSync(path, '');
  const sizes: number[] = [];
  const whole = Promise.withResolvers<void>();
  const end = watchPath(path, () => {
    const size = createFiles().info(path)?.size ?? 0;
    sizes.push(size);
    if (size === 2) whole.resolve();
  });
  writeFileSync(join(temp.path, 'neighbour'), 'x');
  await hintAfter(() => createFiles().writeAtomic(join(temp.path, 'neighbour'), 'y'));
  appendFileSync(path, 'ab');
  await whole.promise;
  expect(new Set(sizes)).toEqual(new Set([2]));
  end();
});

test('a closed watch gives no hints', async () => {
  let hints = 0;
  const ended = watchPath(temp.path, () => hints++);
  writeFileSync(join(temp.path, 'a'), '');
  ended();
  ended();
  await hintAfter(() => writeFileSync(join(temp.path, 'b'), ''));
  expect(hints).toBe(0);
});

test('a missing or deleted folder only means no hints', async () => {
  watchPath(join(temp.path, 'none'), () => {})();
  const files = createFiles();
  const folder = join(temp.path, 'folder');
  files.makeFolder(folder);
  const end = watchPath(folder, () => {});
  await hintAfter(() => files.remove(folder));
  end();
});
