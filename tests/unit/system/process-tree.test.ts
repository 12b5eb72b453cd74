/**
 * Promises: a process tree and its sessions are followed to their end, but never into a session that another process
 * started.
 */
import { expect, test } from 'bun:test';
import type { ProcEntry } from '../../../src/system/processes/proc-table.ts';
import { collectDescendants } from '../../../src/system/processes/proc-table.ts';

const entry = (pid: number, parent: number, session: number, zombie = false): ProcEntry => ({
  pid,
  parent,
  session,
  startTime: '0',
  zombie,
});
const pids = (entries: ProcEntry[], root: number, self = 2): number[] =>
  collectDescendants(entries, [root], self).map(({ pid }) => pid);

const terminal = [entry(1, 0, 1), entry(2, 1, 2), entry(3, 1, 2)];

test('a process tree includes children, their sessions, orphans in them and their children', () => {
  const tree = [
    entry(16, 15, 16),
    entry(15, 1, 12),
    entry(12, 11, 12),
    entry(11, 10, 10),
    entry(10, 2, 10),
    entry(20, 1, 20),
  ];
  expect(pids([...terminal, ...tree], 10).sort()).toEqual([11, 12, 15, 16]);
});

test('a root inside its starter’s session includes only its descendants', () => {
  const tree = [entry(10, 2, 2), entry(11, 10, 2), entry(12, 11, 12), entry(13, 1, 12)];
  expect(pids([...terminal, ...tree], 10)).toEqual([11, 12, 13]);
});

test('a dead root is found by its session', () => {
  expect(pids([...terminal, entry(11, 1, 10), entry(12, 11, 12)], 10)).toEqual([11, 12]);
  expect(pids(terminal, 10)).toEqual([]);
});

test('a process tree follows zombies without listing them, and never includes this process', () => {
  const tree = [entry(10, 1, 10), entry(11, 10, 10, true), entry(12, 11, 12), entry(2, 10, 10), entry(3, 2, 3)];
  expect(pids(tree, 10)).toEqual([12]);
});
