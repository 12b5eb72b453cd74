/**
 * Promises: a reader notices at once that a log was deleted or emptied, and does not treat it as a group without
 * sessions.
 */
import { afterEach, beforeEach, expect, test } from 'bun:test';
import { mkdtempSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { LogReader } from '../../../src/app/watch/log-reader.ts';
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

test('a reader reports a deleted log', () => {
  const reader = new LogReader(createRealWorld(), path);
  expect([reader.read().length > 0, reader.isBroken]).toEqual([true, false]);
  rmSync(path);
  expect([reader.read(), reader.isBroken]).toEqual([[], true]);
});

test('a reader reports an emptied log', () => {
  const reader = new LogReader(createRealWorld(), path);
  reader.read();
  truncateSync(path, 0);
  expect([reader.read(), reader.isBroken, reader.state?.sessions.size]).toEqual([[], true, 1]);
});
