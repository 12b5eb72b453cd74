/**
 * Promises: a request reaches the run it names and no other, stays until it was answered, and its sender always
 * learns the answer or that nobody will give one.
 */
import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import { existsSync, mkdirSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createGroup, deleteGroup } from '../../../src/store/group-store.ts';
import { type GroupWriter, openGroupWriter } from '../../../src/store/group-writer.ts';
import { type GroupPaths, groupPaths } from '../../../src/store/paths.ts';
import {
  awaitAnswer,
  hasRequests,
  type Request,
  removeRequest,
  sendRequest,
  takeRequests,
} from '../../../src/store/requests.ts';
import { groupDefinition, groupId, processIdentity, sessionDefinition, sid } from '../../support/core-events.ts';
import { modesBelow, steppedWorld, Trouble, temporaryFolder, unwrap } from '../../support/store-world.ts';

let folder: ReturnType<typeof temporaryFolder>;
let world: ReturnType<typeof steppedWorld>;
let paths: GroupPaths;
let writer: GroupWriter;

beforeEach(() => {
  folder = temporaryFolder();
  world = steppedWorld();
  paths = groupPaths(folder.path, groupId);
  unwrap(createGroup(world, folder.path, groupDefinition()));
  writer = unwrap(openGroupWriter(world, folder.path, groupId, 'run'));
  writer.record([{ type: 'group_started', run: { id: 'run', runner: processIdentity } }]);
});
afterEach(() => {
  writer.close();
  folder.remove();
});

function request(id: string, second = 0, runId = 'run'): Request {
  return { id, runId, at: new Date(Date.UTC(2026, 0, 2, 3, 4, second)).toISOString(), kind: 'pause', mode: 'now' };
}

function take(runId = 'run'): { readonly ids: string[]; readonly refused: string[] } {
  const refused: string[] = [];
  const pending = takeRequests(world, paths, runId, (id) => refused.push(id));
  return { ids: pending.map((entry) => entry.request.id), refused };
}

describe('takeRequests', () => {
  test('returns what was sent, oldest first, until it is removed; files are private', () => {
    const { id: _, ...session } = sessionDefinition(1, [], { name: 'new' });
    const addition: Request = { ...request('b', 1), kind: 'add-session', session };
    const removal: Request = { ...request('a', 3), kind: 'remove-session', sessionId: sid(1) };
    for (const one of [removal, addition, request('c', 2)]) sendRequest(world, paths, one);
    expect(modesBelow(paths.requests)).toEqual(['600 a.json', '600 b.json', '600 c.json']);
    const pending = takeRequests(world, paths, 'run');
    expect(pending.map((entry) => entry.request)).toEqual([addition, request('c', 2), removal]);
    expect(take().ids).toEqual(['b', 'c', 'a']);
    for (const { path } of pending) removeRequest(world, path);
    expect(readdirSync(paths.requests)).toEqual([]);
  });

  test('F6: a link in place of their folder is not followed, and whatever is there keeps nobody from asking', () => {
    const outside = join(paths.folder, 'outside');
    mkdirSync(outside);
    writeFileSync(join(outside, 'package.json'), '{}');
    for (const put of [
      () => symlinkSync(outside, paths.requests),
      () => symlinkSync('nowhere', paths.requests),
      () => writeFileSync(paths.requests, ''),
    ]) {
      rmSync(paths.requests, { recursive: true });
      put();
      expect(take()).toEqual({ ids: [], refused: [] });
      sendRequest(world, paths, request('a'));
      expect(take()).toEqual({ ids: ['a'], refused: [] });
      expect(readdirSync(outside)).toEqual(['package.json']);
    }
  });

  test.each(['entryKind', 'list', 'info', 'readText'] as const)(
    'F6: a link that takes the place of their folder at the look %s costs nobody a file',
    (look) => {
      const outside = join(paths.folder, 'outside');
      mkdirSync(outside);
      const names = ['a.json', 'mine.json', `${'0'.repeat(8)}-0000-4000-8000-${'0'.repeat(12)}.json`];
      for (const name of names) writeFileSync(join(outside, name), '{}');
      sendRequest(world, paths, request('a', 0, 'earlier'));
      const real = world.files[look] as (path: string) => never;
      const swap = (): void => {
        rmSync(paths.requests, { recursive: true });
        symlinkSync(outside, paths.requests);
      };
      Object.assign(world.files, {
        [look]: (path: string) => {
          world.files[look] = real as never;
          const found = look === 'entryKind' ? real(path) : undefined;
          swap();
          return found ?? real(path);
        },
      });
      expect(take()).toEqual({ ids: [], refused: [] });
      expect(readdirSync(outside).sort()).toEqual(names.toSorted());
    },
  );

  test('F6: a folder that is away for a moment is none, whatever comes into its place', () => {
    const outside = join(paths.folder, 'outside');
    mkdirSync(outside);
    writeFileSync(join(outside, 'package.json'), '{}');
    rmSync(paths.requests, { recursive: true });
    const { entryKind } = world.files;
    world.files.entryKind = (path) => {
      const kind = entryKind(path);
      if (kind === null) symlinkSync(outside, path);
      return kind;
    };
    expect(take()).toEqual({ ids: [], refused: [] });
    expect(readdirSync(outside)).toEqual(['package.json']);
  });

  test('drops requests to other runs in silence', () => {
    sendRequest(world, paths, request('old', 0, 'earlier'));
    expect(take()).toEqual({ ids: [], refused: [] });
    expect(readdirSync(paths.requests)).toEqual([]);
  });

  test('drops those that it does not know; what is none, or just being written, stays', () => {
    const others = {
      torn: '{"id":"torn","run',
      elsewhere: JSON.stringify({ ...request('another'), kind: 'dance' }),
      list: '[]',
    };
    const earlier = JSON.stringify({ ...request('earlier', 0, 'before'), kind: 'dance' });
    const unknown = {
      unknown: JSON.stringify({ ...request('unknown'), kind: 'dance' }),
      inherited: JSON.stringify({ ...request('inherited'), kind: 'toString' }),
      outside: JSON.stringify({ ...request('outside'), kind: 'remove-session', sessionId: '../../x' }),
    };
    const all = Object.entries({ ...others, earlier, ...unknown });
    for (const [name, text] of all) writeFileSync(join(paths.requests, `${name}.json`), text);
    writeFileSync(join(paths.requests, '.x.json.7.tmp'), '{');
    sendRequest(world, paths, request('good'));
    // Whoever sent one that is whole, as another version may, is to be told.
    expect(take()).toEqual({ ids: ['good'], refused: Object.keys(unknown).toSorted() });
    expect(readdirSync(paths.requests).sort()).toEqual(
      ['.x.json.7.tmp', 'good.json', ...Object.keys(others).map((name) => `${name}.json`)].sort(),
    );
    expect(hasRequests(world, paths)).toBe(true);
    removeRequest(world, join(paths.requests, 'good.json'));
    expect(hasRequests(world, paths)).toBe(false);
  });

  test('passes over what is no regular file or cannot be read, and opens none of it', () => {
    const place = (name: string) => join(paths.requests, `${name}.json`);
    mkdirSync(place('folder'));
    // Opened, it would wait for a writer for ever.
    expect(Bun.spawnSync(['mkfifo', place('fifo')]).exitCode).toBe(0);
    symlinkSync('nowhere', place('dangling'));
    symlinkSync('circle.json', place('circle'));
    symlinkSync('/dev/zero', place('device'));
    const socket = Bun.listen({ unix: place('socket'), socket: { data() {} } });
    writeFileSync(place('unreadable'), '{}');
    const { readText } = world.files;
    world.files.readText = (path) => {
      if (path === place('unreadable')) throw new Trouble('EACCES');
      return readText(path);
    };
    sendRequest(world, paths, request('good'));
    try {
      expect(take()).toEqual({ ids: ['good'], refused: [] });
      expect(readdirSync(paths.requests)).toHaveLength(8);
    } finally {
      socket.stop();
    }
  });
});

describe('awaitAnswer', () => {
  const laterRun = (): void => {
    writer.close();
    writer = unwrap(openGroupWriter(world, folder.path, groupId, 'later'));
    take('later');
  };
  const sinceSize = (): number => world.files.info(paths.events)?.size ?? 0;
  const mine = { id: 'mine', runId: 'run' };
  const answered = { type: 'request_answered', requestId: 'mine', done: true, message: '' } as const;

  test('returns the answer to this request, whatever else is logged', async () => {
    const since = sinceSize();
    sendRequest(world, paths, request('mine'));
    const answer = awaitAnswer(world, paths, mine, since);
    world.clock.step(1_000);
    writer.record([{ ...answered, requestId: 'other' }]);
    world.clock.step(1_000);
    const [event] = writer.record([answered]);
    world.clock.step(1_000);
    expect(await answer).toEqual(event as never);
    expect(world.clock.waiting).toBe(0);
  });

  test('finds an answer that was logged just before the runner ended', async () => {
    sendRequest(world, paths, request('mine'));
    const answer = awaitAnswer(world, paths, mine, sinceSize());
    // The follower has looked for now; its next look comes after the one that finds the runner gone.
    world.clock.step(0);
    writer.record([answered]);
    writer.close();
    world.clock.step(500);
    expect(await answer).toMatchObject(answered);
  });

  test('says that the runner dropped it when that still runs the group', async () => {
    sendRequest(world, paths, request('mine'));
    const answer = awaitAnswer(world, paths, mine, sinceSize());
    // As versions did that knew no other way.
    removeRequest(world, join(paths.requests, 'mine.json'));
    world.clock.step(500);
    expect(await answer).toBe('dropped');
    expect(world.clock.waiting).toBe(0);
  });

  test.each([
    ['the runner ended', () => writer.close()],
    ['a later run dropped the request', laterRun],
    ['the group was deleted', () => deleteGroup(world, folder.path, groupId)],
  ])('says that nobody will answer when %s, and withdraws the request', async (_, end) => {
    sendRequest(world, paths, request('mine'));
    const answer = awaitAnswer(world, paths, mine, sinceSize());
    world.clock.step(5_000);
    end();
    world.clock.step(500);
    expect(await answer).toBe('runner-gone');
    expect(existsSync(join(paths.requests, 'mine.json'))).toBe(false);
  });
});
