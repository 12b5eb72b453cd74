/**
 * Promises: messages about a runner that does not answer name its process, and never suggest killing the user's own.
 */
import { afterAll, expect, test } from 'bun:test';
import { join } from 'node:path';
import { whileWaiting } from '../../../src/app/request.ts';
import type { GroupId } from '../../../src/core/group.ts';
import { groupPathsIn } from '../../../src/store/paths.ts';
import { sendRequest } from '../../../src/store/requests.ts';
import { createRealWorld } from '../../../src/system/real-world.ts';
import type { LockHolder, World } from '../../../src/system/world.ts';
import { SteppedClock } from '../../support/store-world.ts';
import { makeTempFolder } from '../../support/system/rig.ts';

const temp = makeTempFolder();
afterAll(() => temp.remove());

const self = createRealWorld().machine.self;

test.each([
  [`(pid ${self.pid}) does not respond`, `kill -KILL ${self.pid};`, self],
  ['Find its pid', 'fuser /', { pid: 0, startTime: '', host: '', bootId: '' }],
])('the message about a silent runner contains %s and %s', async (who, advice, identity) => {
  const clock = new SteppedClock();
  const holder: LockHolder = { identity, runId: 'run' };
  const world: World = { ...createRealWorld(), clock, locks: { tryLock: () => null, holder: () => holder } };
  const paths = groupPathsIn(join(temp.path, 'group'));
  world.files.makeFolder(join(temp.path, 'group'));
  sendRequest(world, paths, { id: 'a', runId: 'run', at: '2026-01-02T03:04:05.000Z', kind: 'pause', mode: 'now' });
  const lines: string[] = [];
  const notes = { line: (line: string) => lines.push(line) };
  const group = { root: temp.path, groupId: 'group' as GroupId, paths };
  let end = (): void => {};
  const waiting = whileWaiting({ world, notes } as never, group, new Promise<void>((resolve) => (end = resolve)));
  for (let second = 0; second < 6; second += 1) clock.step(1_000);
  end();
  await waiting;
  expect(lines).toHaveLength(1);
  expect(lines[0]).toContain(who);
  expect(lines[0]).toContain(advice);
  expect(lines[0]).not.toContain('KILL 0');
});
