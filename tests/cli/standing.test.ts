/** Promises: a group that ends while it is looked at is never called interrupted. */
import { afterEach, beforeEach, expect, test } from 'bun:test';
import { standingOf } from '../../src/cli/live-view.ts';
import { type GroupReference, loadWithRunner } from '../../src/cli/resolve.ts';
import { openGroupWriter } from '../../src/store/group-writer.ts';
import type { World } from '../../src/world/world.ts';
import { Ground, story } from './bad-input/ground.ts';

let user: Ground;
beforeEach(() => {
  user = new Ground();
});
afterEach(() => user.remove());

/** A world in which the runner of the group ends right after somebody has asked for it, or has read the log. */
function endingAfter(step: 'lock' | 'log', group: string): World {
  const opened = openGroupWriter(user.world, user.data, group, 'the-runner');
  if (!opened.ok) throw new Error(opened.failure.message);
  const writer = opened.value;
  let isOver = false;
  const end = <T>(value: T): T => {
    if (!isOver) {
      isOver = true;
      writer.record([story.completed, story.groupCompleted]);
      writer.close();
    }
    return value;
  };
  const { locks, files } = user.world;
  const holder = (path: string) => (step === 'lock' ? end(locks.holder(path)) : locks.holder(path));
  const readBytes: typeof files.readBytes = (path, ...where) => {
    const bytes = files.readBytes(path, ...where);
    return step === 'log' && path.endsWith('events.jsonl') ? end(bytes) : bytes;
  };
  return { ...user.world, locks: { ...locks, holder }, files: { ...files, readBytes } };
}

test.each(['lock', 'log'] as const)('its runner ends after the %s was looked at', (step) => {
  const group = user.make('auth', [{ name: 'api' }], [story.started, story.intended, story.spawned]);
  const reference: GroupReference = { root: user.data, groupId: group, paths: user.paths(group) };
  const world = endingAfter(step, group);
  const loaded = loadWithRunner(world, reference);
  if (!loaded.ok) throw new Error(loaded.failure.message);
  expect(user.world.locks.holder(user.paths(group).lock)).toBeNull();
  expect(standingOf(world, loaded.value).isInterrupted).toBe(false);
});

test('one that nobody runs is', () => {
  const group = user.make('auth', [{ name: 'api' }], [story.started]);
  const loaded = loadWithRunner(user.world, { root: user.data, groupId: group, paths: user.paths(group) });
  expect(loaded.ok && standingOf(user.world, loaded.value).isInterrupted).toBe(true);
});
