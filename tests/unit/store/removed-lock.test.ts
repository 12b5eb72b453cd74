/**
 * Promises: whoever takes a group does not get it beside a living runner whose lock file was removed, be that in a
 * container that hides it; nobody else is kept out, and a runner that is just ending is waited for.
 */
import { afterEach, beforeEach, expect, test } from 'bun:test';
import { appendFileSync, readFileSync, rmSync } from 'node:fs';
import type { EventBody, ProcessIdentity } from '../../../src/core/event.ts';
import { createGroup } from '../../../src/store/group-store.ts';
import { type GroupWriter, openGroupWriter, takeGroup } from '../../../src/store/group-writer.ts';
import { type GroupPaths, groupPaths } from '../../../src/store/paths.ts';
import { createRealWorld } from '../../../src/system/real-world.ts';
import { groupDefinition, groupId } from '../../support/core-events.ts';
import { type SteppedWorld, steppedWorld, temporaryFolder, unwrap } from '../../support/store-world.ts';

const { self } = createRealWorld().machine;
const other: ProcessIdentity = { ...self, pid: self.pid + 1 };
let living: readonly ProcessIdentity[];
let folder: ReturnType<typeof temporaryFolder>;
let root: string;
let world: SteppedWorld;
let paths: GroupPaths;

beforeEach(() => {
  living = [self, other];
  folder = temporaryFolder();
  root = folder.path;
  world = steppedWorld();
  paths = groupPaths(root, groupId);
  unwrap(createGroup(world, root, groupDefinition()));
  const isAlive = (process: ProcessIdentity) => living.some(({ pid }) => pid === process.pid);
  world = { ...world, processes: { ...world.processes, isAlive } };
});

afterEach(() => folder.remove());

function open(): GroupWriter {
  return unwrap(openGroupWriter(world, root, groupId, 'run'));
}

/** Its run is in the log and has not ended; a half line is what it writes just now. */
function leaveRun(runner: ProcessIdentity, ...more: EventBody[]): void {
  const writer = open();
  const run = { id: 'run', runner };
  const begin = writer.state.status === 'created' ? 'group_started' : 'group_resumed';
  writer.record([begin === 'group_started' ? { type: begin, run } : { type: begin, run, retry: [] }, ...more]);
  writer.close();
  rmSync(paths.lock);
  appendFileSync(paths.events, '{"seq":');
}

test('a runner without its lock keeps others out while it lives, and nothing of its log is touched', () => {
  leaveRun(other);
  const before = readFileSync(paths.events, 'utf8');
  for (let tries = 1; tries <= 2; tries++) {
    expect(openGroupWriter(world, root, groupId, 'next')).toMatchObject({
      failure: {
        reason: 'busy',
        message: expect.stringContaining(`process ${other.pid}, although its lock file was`),
      },
    });
  }
  expect(readFileSync(paths.events, 'utf8')).toBe(before);
  living = [];
  open().close();
});

test('it is no hindrance when it is this process, when its run has ended, and when it let go of the lock', () => {
  leaveRun(self);
  open().close();
  leaveRun(other, { type: 'group_pausing', reason: 'user' }, { type: 'group_paused', reason: 'user', message: '' });
  const writer = open();
  writer.record([{ type: 'group_resumed', run: { id: 'next', runner: other }, retry: [] }]);
  writer.close();
  open().close();
});

test('it has two seconds to end', async () => {
  leaveRun(other);
  const ended = takeGroup(world, root, groupId, 'next');
  world.clock.step(1_000);
  living = [];
  for (let ms = 0; ms < 100; ms++) await stepped(20);
  unwrap(await ended).close();
  living = [other];
  leaveRun(other);
  const refused = takeGroup(world, root, groupId, 'next');
  for (let ms = 0; ms < 2_100; ms += 20) await stepped(20);
  expect(await refused).toMatchObject({ failure: { reason: 'busy', survivor: { pid: other.pid } } });
});

test('one that cannot be seen from here is found by the log, which it holds until its end', async () => {
  const hidden: ProcessIdentity = { ...other, pidNamespace: 'pid:[1]' };
  world = { ...world, machine: { ...world.machine, self: { ...self, pidNamespace: 'pid:[2]' } } };
  living = [];
  const writer = open();
  writer.record([{ type: 'group_started', run: { id: 'run', runner: hidden } }]);
  rmSync(paths.lock);
  appendFileSync(paths.events, '{"seq":');
  const before = readFileSync(paths.events, 'utf8');
  const refused = takeGroup(world, root, groupId, 'next');
  for (let ms = 0; ms < 2_100; ms += 20) await stepped(20);
  expect(await refused).toMatchObject({
    failure: {
      reason: 'busy',
      message:
        `The group ${groupId} is still held by process ${hidden.pid} of another container (pid namespace), ` +
        'although its lock file was removed.',
    },
  });
  expect(readFileSync(paths.events, 'utf8')).toBe(before);
  const waits = takeGroup(world, root, groupId, 'next');
  writer.close();
  for (let ms = 0; ms < 100; ms += 20) await stepped(20);
  unwrap(await waits).close();
});

test('nothing of another writer can come behind what was read', () => {
  open().close();
  const { files } = world;
  let others: unknown;
  const readBytes: typeof files.readBytes = (path, ...rest) => {
    const bytes = files.readBytes(path, ...rest);
    if (path === paths.events && others === undefined) {
      rmSync(paths.lock);
      others = openGroupWriter({ ...world, files }, root, groupId, 'others');
    }
    return bytes;
  };
  unwrap(openGroupWriter({ ...world, files: { ...files, readBytes } }, root, groupId, 'run')).close();
  expect(others).toMatchObject({ failure: { reason: 'busy' } });
  open().close();
});

test('whoever writes without running it keeps others out as well', () => {
  const writer = open();
  rmSync(paths.lock);
  expect(openGroupWriter(world, root, groupId, 'next')).toMatchObject({
    failure: { message: expect.stringContaining('held by another process, although its lock file was') },
  });
  writer.close();
  open().close();
});

async function stepped(ms: number): Promise<void> {
  world.clock.step(ms);
  await Promise.resolve();
}
