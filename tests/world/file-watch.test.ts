/** Promises: changes in a watched folder are hinted at; without a watch nothing breaks. Not covered: inotify limits. */
import { afterEach, beforeEach, expect, test } from 'bun:test';
import { appendFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { watchFolder } from '../../src/world/file-watch.ts';
import { createFiles } from '../../src/world/files.ts';
import { makeTempFolder } from './rig.ts';

let temp: ReturnType<typeof makeTempFolder>;
beforeEach(() => {
  temp = makeTempFolder();
});
afterEach(() => temp.remove());

/** Resolves with the next hint after `change`. */
async function hintAfter(change: () => void): Promise<void> {
  const hint = Promise.withResolvers<void>();
  const end = watchFolder(temp.path, hint.resolve);
  change();
  await hint.promise;
  end();
}

test('appending, replacing and creating each give a hint', async () => {
  const path = join(temp.path, 'transcript.jsonl');
  await hintAfter(() => writeFileSync(path, 'a'));
  await hintAfter(() => appendFileSync(path, 'b'));
  await hintAfter(() => createFiles().writeAtomic(path, 'c'));
});

test('a burst is told at least once after its last change', async () => {
  const path = join(temp.path, 'burst');
  const seen = Promise.withResolvers<void>();
  const files = createFiles();
  const end = watchFolder(temp.path, () => {
    if (files.info(path)?.size === 500) seen.resolve();
  });
  for (let i = 0; i < 500; i++) {
    appendFileSync(path, 'x');
    if (i % 50 === 0) await Bun.sleep(1);
  }
  await seen.promise;
  end();
});

test('nothing is told after the end', async () => {
  let hints = 0;
  const ended = watchFolder(temp.path, () => hints++);
  writeFileSync(join(temp.path, 'a'), '');
  ended();
  ended();
  await hintAfter(() => writeFileSync(join(temp.path, 'b'), ''));
  expect(hints).toBe(0);
});

test('a folder that is missing or vanishes only means no hints', async () => {
  watchFolder(join(temp.path, 'none'), () => {})();
  const files = createFiles();
  const folder = join(temp.path, 'folder');
  files.makeFolder(folder);
  const end = watchFolder(folder, () => {});
  await hintAfter(() => files.remove(folder));
  end();
});
