/**
 * Promises: a group has one writer at a time. Events are logged before they are reduced, snapshots are written rarely
 * and completely on demand, and are rebuilt from the log when a group is opened.
 */
import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import { existsSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { groupProgress } from '../../../src/core/progress.ts';
import type { GroupState } from '../../../src/core/state.ts';
import { createGroup, deleteGroupFolder, loadGroup } from '../../../src/store/group-store.ts';
import { type GroupWriter, openGroupWriter } from '../../../src/store/group-writer.ts';
import { type GroupPaths, groupPaths, sessionPaths } from '../../../src/store/paths.ts';
import { delayedAction, groupMeta, renderMeta, sessionMeta } from '../../../src/store/snapshots.ts';
import { groupDefinition, groupId, sessionDefinition, sid } from '../../support/core-events.ts';
import { faultyFiles, modesBelow, steppedWorld, temporaryFolder } from '../../support/store-world.ts';
import { storyBodies } from '../../support/stored-group.ts';
import { expectOk } from '../../support/system/rig.ts';

let folder: ReturnType<typeof temporaryFolder>;
let root: string;
let world: ReturnType<typeof steppedWorld>;
let faulty: ReturnType<typeof faultyFiles>;
let paths: GroupPaths;
let writers: GroupWriter[];

beforeEach(() => {
  folder = temporaryFolder();
  root = folder.path;
  world = steppedWorld();
  faulty = faultyFiles(world.files);
  world = { ...world, files: faulty.files };
  paths = groupPaths(root, groupId);
  writers = [];
  expectOk(createGroup(world, root, groupDefinition()));
});
afterEach(() => {
  for (const writer of writers) writer.close();
  folder.remove();
});

function open(runId = 'run'): GroupWriter {
  const writer = expectOk(openGroupWriter(world, root, groupId, runId));
  writers.push(writer);
  return writer;
}

/** Paths of all snapshots with their expected contents. */
function expectedSnapshots(writer: GroupWriter): Record<string, string> {
  const sessions = [...writer.state.sessions].map(([id, record]) => [
    sessionPaths(paths, id).meta,
    renderMeta(sessionMeta(record)),
  ]);
  return Object.fromEntries([[paths.meta, renderMeta(groupMeta(writer.state))], ...sessions]);
}

function actualSnapshots(writer: GroupWriter): Record<string, string | null> {
  const names = Object.keys(expectedSnapshots(writer));
  return Object.fromEntries(names.map((name) => [name, existsSync(name) ? readFileSync(name, 'utf8') : null]));
}

function writesOf(path: string): number {
  return faulty.calls.filter((call) => call === `writeAtomic ${path}`).length;
}

describe('group lock', () => {
  test('the group lock refuses a second writer with the holder’s name and is free after close', () => {
    const writer = open();
    const second = openGroupWriter(world, root, groupId, 'other');
    expect(second).toMatchObject({ ok: false, failure: { reason: 'busy' } });
    if (!second.ok) expect(second.failure.message).toContain(`process ${process.pid} on ${world.machine.host}`);
    expect(world.locks.holder(paths.lock)).toEqual({ identity: world.machine.self, runId: 'run' });
    writer.close();
    open('other').close();
  });

  test('the group lock is released when the log cannot be opened', () => {
    writeFileSync(paths.events, 'nonsense\n');
    expect(openGroupWriter(world, root, groupId, 'run')).toMatchObject({ failure: { reason: 'corrupt-file' } });
    expect(world.locks.holder(paths.lock)).toBeNull();
    expect(readFileSync(paths.events, 'utf8')).toBe('nonsense\n');
  });

  test.each(['20260102-030405-none', '../x'])('no lock is created for %p, which is not a group', (id) => {
    expect(openGroupWriter(world, root, id, 'run')).toMatchObject({ failure: { reason: 'not-found' } });
    expect(existsSync(groupPaths(root, '20260102-030405-none').folder)).toBe(false);
  });
});

describe('recording events', () => {
  test('record numbers and dates events, appends them with one fsync, and reduces them', () => {
    const writer = open();
    faulty.calls.length = 0;
    const events = writer.record(storyBodies.slice(0, 4));
    expect(faulty.calls).toEqual([`append ${paths.events}`, `sync ${paths.events}`]);
    expect(events.map(({ seq, at, groupId: of }) => [seq, at, of])).toEqual(
      [2, 3, 4, 5].map((seq) => [seq, new Date(world.clock.now()).toISOString(), groupId]),
    );
    writer.record(storyBodies.slice(4));
    expect(expectOk(loadGroup(world, root, groupId))).toEqual(writer.state);
    expect(writer.record([])).toEqual([]);
  });

  test('record writes nothing of a batch with an illegal event', () => {
    const writer = open();
    const before = { log: readFileSync(paths.events, 'utf8'), meta: groupMeta(writer.state) };
    expect(() => writer.record([...storyBodies, { type: 'group_completed' }])).toThrow('group_completed');
    expect({ log: readFileSync(paths.events, 'utf8'), meta: groupMeta(writer.state) }).toEqual(before);
  });

  test.each([1, 2])('record writes nothing on a full disk and continues when there is space (call %d)', (call) => {
    const writer = open();
    const before = groupMeta(writer.state);
    faulty.calls.length = 0;
    faulty.fault = { call, how: 'fails', code: 'ENOSPC' };
    expect(() => writer.record(storyBodies)).toThrow('ENOSPC');
    expect(groupMeta(writer.state)).toEqual(before);
    writer.record(storyBodies);
    expect(groupMeta(expectOk(loadGroup(world, root, groupId)))).toEqual(groupMeta(writer.state));
  });

  test('record continues after a partial line at the end', () => {
    const first = open();
    first.record(storyBodies.slice(0, 6));
    first.close();
    truncateSync(paths.events, readFileSync(paths.events).length - 9);
    const second = open();
    expect(second.state.lastSeq).toBe(6);
    second.record(storyBodies.slice(5));
    expect(groupMeta(expectOk(loadGroup(world, root, groupId)))).toEqual(groupMeta(second.state));
  });
});

describe('snapshots', () => {
  const session = { type: 'session_added', sessionId: sid(1), session: sessionDefinition(1) } as const;

  test('a thousand events write each snapshot only a few times', () => {
    const writer = open();
    writer.record([session]);
    faulty.calls.length = 0;
    for (let count = 1; count <= 1_000; count++) {
      writer.record([
        { type: 'session_changed', sessionId: sid(1), session: sessionDefinition(1, [], { name: `n${count}` }) },
      ]);
      world.clock.step(1);
    }
    expect(writesOf(paths.meta)).toBe(4);
    expect(writesOf(sessionPaths(paths, sid(1)).meta)).toBe(4);
    writer.record([{ type: 'session_removed', sessionId: sid(1) }, ...storyBodies]);
    world.clock.step(250);
    expect(actualSnapshots(writer)).toEqual(expectedSnapshots(writer));
    const written = faulty.calls.length;
    world.clock.step(10_000);
    expect(faulty.calls.length).toBe(written);
  });

  test('only changed snapshots are written', () => {
    const writer = open();
    writer.record(storyBodies.slice(0, 3));
    world.clock.step(250);
    faulty.calls.length = 0;
    writer.record(storyBodies.slice(3, 5));
    world.clock.step(250);
    expect(writesOf(sessionPaths(paths, sid(1)).meta)).toBe(1);
    expect(writesOf(sessionPaths(paths, sid(2)).meta)).toBe(0);
  });

  test('snapshots of large groups are delayed longer, up to five seconds', () => {
    const delayOf = (size: number): number => {
      let delay = 0;
      const after = (ms: number) => {
        delay = ms;
        return () => {};
      };
      delayedAction(
        { ...world, clock: { now: () => 0, after } },
        { sessions: { size } } as GroupState,
        5_000,
        () => {},
      ).request();
      return delay;
    };
    expect([0, 1, 100, 200, 2_000, 100_000].map(delayOf)).toEqual([250, 250, 250, 500, 5_000, 5_000]);
  });

  test('missing, torn and outdated snapshots are rebuilt exactly when the group is opened', () => {
    const first = open();
    first.record(storyBodies);
    first.close();
    const whole = actualSnapshots(first);
    expect(whole).toEqual(expectedSnapshots(first));
    const names = Object.keys(whole);
    const damages = [
      (path: string) => rmSync(path),
      (path: string) => truncateSync(path, 0),
      (path: string) => truncateSync(path, 17),
      (path: string) => writeFileSync(path, '{"status":"old"}'),
    ];
    for (const damage of damages) {
      for (const name of names) damage(name);
      open().close();
      expect(actualSnapshots(first)).toEqual(whole);
    }
    rmSync(paths.sessions, { recursive: true });
    open().close();
    expect(actualSnapshots(first)).toEqual(whole);
  });

  test('the snapshot of a removed session is removed', () => {
    const writer = open();
    writer.record([session]);
    world.clock.step(250);
    writer.record([{ type: 'session_removed', sessionId: sid(1) }]);
    world.clock.step(250);
    expect(existsSync(sessionPaths(paths, sid(1)).meta)).toBe(false);
  });

  test('a failed snapshot write is retried with the next change, and does not end the writer', () => {
    const writer = open();
    writer.record(storyBodies.slice(0, 2));
    faulty.calls.length = 0;
    // Folder and file of the first session, folder of the second.
    faulty.fault = { call: 3, how: 'dies', code: 'ENOSPC' };
    world.clock.step(250);
    faulty.fault = null;
    writer.record(storyBodies.slice(2, 3));
    world.clock.step(250);
    expect(actualSnapshots(writer)).toEqual(expectedSnapshots(writer));
  });

  test('writing snapshots does not recreate a deleted group', () => {
    const writer = open();
    writer.record(storyBodies);
    deleteGroupFolder(world, root, groupId);
    writer.progress(() => groupProgress(writer.state, new Map(), world.clock.now()));
    world.clock.step(1_000);
    writer.close();
    expect(existsSync(paths.folder)).toBe(false);
    expect(modesBelow(join(root, 'session-groups'))).toEqual([]);
  });
});

describe('progress snapshots', () => {
  test('progress.json is written at most four times a second, and the last value on close', () => {
    const writer = open();
    const of = (elapsedTime: number) => ({ ...groupProgress(writer.state, new Map(), 0), elapsedTime });
    faulty.calls.length = 0;
    for (let ms = 1; ms <= 1_000; ms++) {
      writer.progress(() => of(ms));
      world.clock.step(1);
    }
    expect(writesOf(paths.progress)).toBe(4);
    writer.progress(() => of(5_000));
    writer.close();
    expect(JSON.parse(readFileSync(paths.progress, 'utf8'))).toEqual(of(5_000));
  });
});

test('close writes pending snapshots, releases everything and may be called twice', () => {
  const writer = open();
  writer.record(storyBodies);
  writer.close();
  writer.close();
  expect(actualSnapshots(writer)).toEqual(expectedSnapshots(writer));
  expect(world.clock.waiting).toBe(0);
  expect(() => writer.record([{ type: 'group_archived' }])).toThrow('closed');
});
