/**
 * Promises: who reads a log on notices at once when something else stands in its place, or nothing is left in it, and
 * never takes that for a group without sessions.
 */
import { afterEach, beforeEach, expect, test } from 'bun:test';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { LogReader } from '../../../src/app/watch/log-reader.ts';
import { makeFifo } from '../../../src/system/libc.ts';
import { createRealWorld } from '../../../src/system/real-world.ts';
import { makeGroup } from '../../support/group-fixture.ts';

const group = makeGroup([{ name: 'api' }]);
const text = readFileSync(group.paths.events, 'utf8');
group.remove();
let folder = '';
let path = '';
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'cca log-reader '));
  path = join(folder, 'events.jsonl');
  writeFileSync(path, text);
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

test.each<[string, () => void]>([
  ['a FIFO', () => makeFifo(path, 0o600)],
  ['a folder', () => mkdirSync(path)],
  ['a link to itself', () => symlinkSync('events.jsonl', path)],
  ['an endless file', () => symlinkSync('/dev/zero', path)],
  ['nothing', () => {}],
])('%s in its place', (_, make) => {
  const reader = new LogReader(createRealWorld(), path);
  expect([reader.read().length > 0, reader.isBroken]).toEqual([true, false]);
  rmSync(path);
  make();
  expect([reader.read(), reader.isBroken]).toEqual([[], true]);
});

test('a log that was emptied', () => {
  const reader = new LogReader(createRealWorld(), path);
  reader.read();
  truncateSync(path, 0);
  expect([reader.read(), reader.isBroken, reader.state?.sessions.size]).toEqual([[], true, 1]);
});
