/**
 * Promises: a request reaches only the run that it names, stays until it is answered, and its sender always gets an
 * answer or learns that none will come.
 */
import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import { existsSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createGroup, deleteGroupFolder } from '../../../src/store/group-store.ts';
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
import { groupDefinition, groupId, runnerIdentity, sessionDefinition, sid } from '../../support/core-events.ts';
import { modesBelow, steppedWorld, temporaryFolder } from '../../support/store-world.ts';
import { expectOk } from '../../support/system/rig.ts';

let folder: ReturnType<typeof temporaryFolder>;
let world: ReturnType<typeof steppedWorld>;
let paths: GroupPaths;
let writer: GroupWriter;

beforeEach(() => {
  folder = temporaryFolder();
  world = steppedWorld();
  paths = groupPaths(folder.path, groupId);
  expectOk(createGroup(world, folder.path, groupDefinition()));
  writer = expectOk(openGroupWriter(world, folder.path, groupId, 'run'));
  writer.record([{ type: 'group_started', run: { id: 'run', runner: runnerIdentity } }]);
});
afterEach(() => {
  writer.close();
  folder.remove();
});

function request(id: string, second = 0, runId = 'run'): Request {
  return { id, runId, at: new Date(Date.UTC(2026, 0, 2, 3, 4, second)).toISOString(), kind: 'pause', mode: 'now' };
}

function take(runId = 'run'): string[] {
  return takeRequests(world, paths, runId).map((entry) => entry.request.id);
}

describe('takeRequests', () => {
  test('takeRequests returns requests oldest first until they are removed, and files are private', () => {
    const { id: _, ...session } = sessionDefinition(1, [], { name: 'new' });
    const addition: Request = { ...request('b', 1), kind: 'add-session', session };
    const removal: Request = { ...request('a', 3), kind: 'remove-session', sessionId: sid(1) };
    for (const one of [removal, addition, request('c', 2)]) sendRequest(world, paths, one);
    expect(modesBelow(paths.requests)).toEqual(['600 a.json', '600 b.json', '600 c.json']);
    const pending = takeRequests(world, paths, 'run');
    expect(pending.map((entry) => entry.request)).toEqual([addition, request('c', 2), removal]);
    expect(take()).toEqual(['b', 'c', 'a']);
    for (const { path } of pending) removeRequest(world, path);
    expect(readdirSync(paths.requests)).toEqual([]);
  });

  test('takeRequests drops requests to other runs', () => {
    sendRequest(world, paths, request('old', 0, 'earlier'));
    expect(take()).toEqual([]);
    expect(readdirSync(paths.requests)).toEqual([]);
  });

  test('takeRequests ignores other files and requests being written', () => {
    const others = {
      torn: '{"id":"torn","run',
      elsewhere: JSON.stringify({ ...request('another'), kind: 'dance' }),
      list: '[]',
    };
    for (const [name, text] of Object.entries(others)) writeFileSync(join(paths.requests, `${name}.json`), text);
    writeFileSync(join(paths.requests, '.x.json.7.tmp'), '{');
    sendRequest(world, paths, request('good'));
    expect(take()).toEqual(['good']);
    expect(readdirSync(paths.requests).sort()).toEqual(
      ['.x.json.7.tmp', 'good.json', ...Object.keys(others).map((name) => `${name}.json`)].sort(),
    );
    expect(hasRequests(world, paths)).toBe(true);
    removeRequest(world, join(paths.requests, 'good.json'));
    expect(hasRequests(world, paths)).toBe(false);
  });
});

describe('awaitAnswer', () => {
  const laterRun = (): void => {
    writer.close();
    writer = expectOk(openGroupWriter(world, folder.path, groupId, 'later'));
    take('later');
  };
  const sinceSize = (): number => world.files.info(paths.events)?.size ?? 0;
  const mine = { id: 'mine', runId: 'run' };
  const answered = { type: 'request_answered', requestId: 'mine', done: true, message: '' } as const;

  test('awaitAnswer returns the answer to its request, whatever else is logged', async () => {
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

  test('awaitAnswer finds an answer logged just before the runner ended', async () => {
    sendRequest(world, paths, request('mine'));
    const answer = awaitAnswer(world, paths, mine, sinceSize());
    // The follower has read the log for now and reads it again after the check that finds the runner dead.
    world.clock.step(0);
    writer.record([answered]);
    writer.close();
    world.clock.step(500);
    expect(await answer).toMatchObject(answered);
  });

  test.each([
    ['the runner ended', () => writer.close()],
    ['a later run dropped the request', laterRun],
    ['the group was deleted', () => deleteGroupFolder(world, folder.path, groupId)],
  ])('awaitAnswer reports that no answer will come when %s, and withdraws the request', async (_, end) => {
    sendRequest(world, paths, request('mine'));
    const answer = awaitAnswer(world, paths, mine, sinceSize());
    world.clock.step(5_000);
    end();
    world.clock.step(500);
    expect(await answer).toBe('runner-gone');
    expect(existsSync(join(paths.requests, 'mine.json'))).toBe(false);
  });
});
