/** Promise: a group goes on with the script its rehearsal began with, until another one is given or it is gone. */
import { afterEach, beforeEach, expect, test } from 'bun:test';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createRehearsal } from '../../src/cli/rehearsal-process.ts';
import { findRehearsal } from '../../src/rehearsal/serve.ts';
import { groupPathsIn } from '../../src/store/paths.ts';
import { createRealWorld } from '../../src/world/real-world.ts';
import { packageRoot } from '../support/cli.ts';

const world = createRealWorld();
let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'cca rehearsal '));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** Begins and ends a rehearsal; the script its server was given. */
async function rehearsed(scriptFile?: string): Promise<string | undefined> {
  const env = { PATH: process.env.PATH };
  const paths = groupPathsIn(folder);
  const made = createRehearsal(world, { packageRoot, env, ...(scriptFile === undefined ? {} : { scriptFile }) });
  if (!made.ok) throw new Error(made.failure.message);
  const started = await made.value.start(paths);
  if (!started.ok) throw new Error(started.failure.message);
  const words = readFileSync(`/proc/${findRehearsal(world, folder)?.pid}/cmdline`, 'utf8').split('\0');
  await made.value.stop(paths);
  return words.includes('--script') ? words[words.indexOf('--script') + 1] : undefined;
}

test('the script of the last rehearsal is kept', async () => {
  const [one, two] = ['one', 'two'].map((name) => {
    const path = join(folder, `${name}.yaml`);
    writeFileSync(path, 'version: 1\nsessions: { "*": { steps: [{ text: Done. }] } }\n');
    return path;
  });
  expect(await rehearsed()).toBeUndefined();
  expect(await rehearsed(one)).toBe(one);
  expect(await rehearsed()).toBe(one);
  expect(await rehearsed(two)).toBe(two);
  rmSync(two ?? '');
  expect(await rehearsed()).toBeUndefined();
}, 60_000);
