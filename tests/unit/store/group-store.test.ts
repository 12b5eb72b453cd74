/**
 * Promises: a group is listed completely or not at all, wherever its creation or deletion is interrupted. A damaged
 * group hides no other, and everything is private to its owner.
 */
import { beforeEach, describe, expect, test } from 'bun:test';
import {
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import type { GroupDefinition, GroupId } from '../../../src/core/group.ts';
import { slugOf } from '../../../src/core/id.ts';
import { createGroup, deleteGroupFolder, groupIds, listGroups, loadGroup } from '../../../src/store/group-store.ts';
import { groupPaths, groupsFolder, sessionPaths } from '../../../src/store/paths.ts';
import { groupMeta, renderMeta } from '../../../src/store/snapshots.ts';
import { makeFifo } from '../../../src/system/libc.ts';
import type { World } from '../../../src/system/world.ts';
import { groupDefinition, sessionDefinition, sid } from '../../support/core-events.ts';
import { faultyFiles, modesBelow, steppedWorld } from '../../support/store-world.ts';
import { expectOk } from '../../support/system/rig.ts';
import { withTempFolder } from '../../support/temp-folder.ts';

const sessions = [sessionDefinition(1), sessionDefinition(2, [1])];
const idA = '20260102-030405-test';
const idB = '20260102-030406-other';
const idC = '20260103-000000-third';

const folder = withTempFolder();
let root: string;
let world: ReturnType<typeof steppedWorld>;

beforeEach(() => {
  root = join(folder.path, 'data');
  world = steppedWorld();
});

function definitionOf(id: GroupId): GroupDefinition {
  return { ...groupDefinition(), id, slug: slugOf(id) };
}

function replaceIn(path: string, from: string, to: string): void {
  writeFileSync(path, readFileSync(path, 'utf8').replaceAll(from, to));
}

function create(id: GroupId, within: World = world) {
  return createGroup(within, root, definitionOf(id), sessions);
}

describe('createGroup', () => {
  test('createGroup writes log and snapshots, private to the owner', () => {
    const state = expectOk(create(idA));
    expect(expectOk(loadGroup(world, root, idA))).toEqual(state);
    const paths = groupPaths(root, idA);
    expect(readFileSync(paths.meta, 'utf8')).toBe(renderMeta(groupMeta(state)));
    expect(modesBelow(root)).toEqual([
      '700 session-groups',
      `700 session-groups/${idA}`,
      `600 session-groups/${idA}/events.jsonl`,
      `600 session-groups/${idA}/meta.json`,
      `700 session-groups/${idA}/requests`,
      `700 session-groups/${idA}/sessions`,
      `700 session-groups/${idA}/sessions/${sid(1)}`,
      `600 session-groups/${idA}/sessions/${sid(1)}/meta.json`,
      `700 session-groups/${idA}/sessions/${sid(2)}`,
      `600 session-groups/${idA}/sessions/${sid(2)}/meta.json`,
    ]);
  });

  test('createGroup refuses a used id and an invalid dependency graph, and leaves nothing', () => {
    expectOk(create(idA));
    const before = modesBelow(root);
    expect(create(idA)).toMatchObject({ ok: false, failure: { reason: 'duplicate' } });
    const loop = [sessionDefinition(1, [2]), sessionDefinition(2, [1])];
    const refused = createGroup(world, root, definitionOf(idB), loop);
    expect(refused).toMatchObject({ ok: false, failure: { reason: 'cycle' } });
    expect(modesBelow(root)).toEqual(before);
  });
});

/** Runs `action` with each changing call failing in turn, each time in a fresh data root. */
function atEveryCall(how: 'dies' | 'fails', action: (faulty: World) => void, check: () => void): number {
  for (let call = 1; ; call++) {
    rmSync(root, { recursive: true, force: true });
    expectOk(create(idA));
    const faulty = faultyFiles(world.files);
    faulty.fault = { call, how, code: 'ENOSPC' };
    action({ ...world, files: faulty.files });
    check();
    if (faulty.calls.length < call) return call - 1;
  }
}

describe('interruption at any call', () => {
  test('an interrupted createGroup leaves a whole group or none, and can be repeated', () => {
    const outcomes = new Set<string>();
    const check = (): void => {
      const listed = listGroups(world, root);
      for (const entry of listed) expect(entry).not.toHaveProperty('problem');
      expect(['', idB]).toContain(
        groupIds(world, root)
          .filter((id) => id !== idA)
          .join(),
      );
      outcomes.add(String(listed.length));
      if (listed.length === 1) expectOk(create(idB));
      expect(expectOk(loadGroup(world, root, idB)).sessions.size).toBe(2);
    };
    const calls = atEveryCall('dies', (faulty) => void create(idB, faulty), check);
    expect(calls).toBeGreaterThan(8);
    expect([...outcomes].sort()).toEqual(['1', '2']);
  });

  test('createGroup on a full disk fails and leaves nothing', () => {
    let failure: string | undefined;
    const action = (faulty: World): void => {
      const outcome = create(idB, faulty);
      failure = outcome.ok ? undefined : outcome.failure.reason;
    };
    atEveryCall('fails', action, () => {
      expect(readdirSync(groupsFolder(root)).sort()).toEqual(failure === undefined ? [idA, idB] : [idA]);
      if (failure !== undefined) expect(failure).toBe('write-failed');
    });
  });

  test('an interrupted deletion leaves the whole group or none', () => {
    const remove = (faulty: World): void => {
      try {
        deleteGroupFolder(faulty, root, idA);
      } catch {}
    };
    atEveryCall('dies', remove, () => {
      const left = listGroups(world, root);
      for (const entry of left) expect(entry).toHaveProperty('meta');
      for (const { id } of left) expect(expectOk(loadGroup(world, root, id)).sessions.size).toBe(2);
      deleteGroupFolder(world, root, idA);
      expect(readdirSync(groupsFolder(root))).toEqual([]);
    });
  });
});

test('unfinished groups of dead processes are removed in time, and groups being created are kept', () => {
  const abandoned = join(groupsFolder(root), '.new-1');
  mkdirSync(abandoned, { recursive: true });
  mkdirSync(join(groupsFolder(root), '.deleted-1'));
  world.clock.step(Date.now() - world.clock.now());
  expectOk(create(idA));
  expect(readdirSync(groupsFolder(root)).sort()).toEqual(['.new-1', idA]);
  world.clock.step(3_700_000);
  expectOk(create(idB));
  expect(readdirSync(groupsFolder(root)).sort()).toEqual([idA, idB]);
});

describe('listGroups', () => {
  test('listGroups is empty without a data root, and otherwise sorted newest first', () => {
    expect(listGroups(world, root)).toEqual([]);
    for (const id of [idB, idC, idA]) expectOk(create(id));
    expect(listGroups(world, root).map(({ id }) => id)).toEqual([idC, idB, idA]);
  });

  test('listGroups ignores other files and follows symlinks to group folders', () => {
    expectOk(create(idA));
    const all = groupsFolder(root);
    for (const name of ['notes', '.new-9', '.deleted-9', '20260102-030405-Upper', '20260102'])
      mkdirSync(join(all, name));
    writeFileSync(join(all, idB), 'a file named like a group');
    symlinkSync(join(all, 'nowhere'), join(all, '20260102-030409-dangling'));
    expect(listGroups(world, root).map(({ id }) => id)).toEqual([idA]);
  });

  test('listGroups reports a damaged group as a problem and lists all others', () => {
    for (const id of [idA, idB, idC]) expectOk(create(id));
    const { meta, events } = groupPaths(root, idB);
    rmSync(meta);
    writeFileSync(events, 'nonsense\n');
    mkdirSync(join(groupsFolder(root), '20260102-030407-hollow'));
    renameSync(groupPaths(root, idA).folder, groupPaths(root, '20260102-030408-renamed').folder);
    const listed = listGroups(world, root);
    expect(listed.map((entry) => ('meta' in entry ? [entry.id] : [entry.id, entry.problem.reason]))).toEqual([
      [idC],
      ['20260102-030408-renamed', 'corrupt-file'],
      ['20260102-030407-hollow', 'corrupt-file'],
      [idB, 'corrupt-file'],
    ]);
  });

  test('a missing or torn meta.json is rebuilt from the log', () => {
    const state = expectOk(create(idA));
    const { meta } = groupPaths(root, idA);
    const { length } = readFileSync(meta);
    for (const size of [0, 1, length >> 1, length - 3]) {
      truncateSync(meta, size);
      expect(listGroups(world, root)).toEqual([{ id: idA, meta: groupMeta(state) }]);
    }
    rmSync(meta);
    expect(listGroups(world, root)).toEqual([{ id: idA, meta: groupMeta(state) }]);
    makeFifo(meta, 0o600);
    expect(listGroups(world, root)).toEqual([{ id: idA, meta: groupMeta(state) }]);
  });

  test('a snapshot older than the log is not trusted', () => {
    const state = expectOk(create(idA));
    const { events, meta } = groupPaths(root, idA);
    const changed = readFileSync(meta, 'utf8').replace('"created"', '"running"');
    writeFileSync(meta, changed);
    utimesSync(meta, new Date(1), new Date(1));
    expect(listGroups(world, root)).toEqual([{ id: idA, meta: groupMeta(state) }]);
    // Both may have been written within one tick of the clock, the log last.
    utimesSync(events, new Date(1), new Date(1));
    expect(listGroups(world, root)).toEqual([{ id: idA, meta: groupMeta(state) }]);
    // A damaged log does not make the group unknown.
    writeFileSync(events, 'nothing');
    const problem = { reason: 'corrupt-file' };
    expect(listGroups(world, root)).toMatchObject([{ id: idA, meta: { status: 'running' }, problem }]);
  });

  test.each([
    ['missing', 'corrupt-file', (log: string) => rmSync(log)],
    ['empty', 'corrupt-file', (log: string) => truncateSync(log, 0)],
    ['cut within its first line', 'corrupt-file', (log: string) => truncateSync(log, 20)],
    ['overwritten', 'corrupt-file', (log: string) => writeFileSync(log, 'nonsense\n')],
    ['a folder', 'corrupt-file', (log: string) => [rmSync(log), mkdirSync(log)]],
    ['a FIFO', 'corrupt-file', (log: string) => [rmSync(log), makeFifo(log, 0o600)]],
    ["another group's", 'corrupt-file', (log: string) => replaceIn(log, idA, idB)],
    ['of a version before 0.3', 'older-version', (log: string) => replaceIn(log, '"version":3', '"version":2')],
    ['of a newer version', 'newer-version', (log: string) => replaceIn(log, '"version":3', '"version":9')],
  ])('a group whose log is %s is listed with that problem and its snapshot', (_, reason, harm) => {
    expectOk(create(idA));
    const { events, meta } = groupPaths(root, idA);
    replaceIn(meta, '"created"', '"completed"');
    harm(events);
    const [listed] = listGroups(world, root);
    expect(listed).toMatchObject({ id: idA, meta: { status: 'completed' }, problem: { reason } });
  });
});

describe('loadGroup', () => {
  test.each(['20260102-030405-none', '../../etc', ''])('loadGroup reports the missing group %p', (id) => {
    expect(loadGroup(world, root, id)).toMatchObject({ ok: false, failure: { reason: 'not-found' } });
  });

  test('loadGroup refuses a log with an illegal event and names the line', () => {
    expectOk(create(idA));
    const { events } = groupPaths(root, idA);
    const lines = readFileSync(events, 'utf8').trimEnd().split('\n');
    const impossible = { ...JSON.parse(lines[3] as string), type: 'group_completed' };
    writeFileSync(events, `${lines.with(3, JSON.stringify(impossible)).join('\n')}\n`);
    const loaded = loadGroup(world, root, idA);
    expect(loaded).toMatchObject({ ok: false, failure: { reason: 'corrupt-file' } });
    if (!loaded.ok) expect(loaded.failure.message).toStartWith(`Line 4 of ${events} is not a possible event`);
  });

  test('loadGroup changes no file, not even a partial line at the end', () => {
    expectOk(create(idA));
    const { events } = groupPaths(root, idA);
    writeFileSync(events, '{"seq":', { flag: 'a' });
    const before = readFileSync(events, 'utf8');
    expect(expectOk(loadGroup(world, root, idA)).sessions.has(sid(2))).toBe(true);
    expect(readFileSync(events, 'utf8')).toBe(before);
    expect(sessionPaths(groupPaths(root, idA), sid(1)).folder).toEndWith(sid(1));
  });
});
