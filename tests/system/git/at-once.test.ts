/**
 * Promises: worktrees of one repository can be created at the same moment. A worktree that another git is creating is
 * waited for, and one that stays unfinished is reported.
 */

import { afterEach, beforeEach, expect, test } from 'bun:test';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { runOwn } from '../../../src/git/run-git.ts';
import { makeWorkspace } from '../../../src/git/worktrees/workspace.ts';
import type { World } from '../../../src/system/world.ts';
import { failure, value, WorkspaceRig } from '../../support/git/workspace-rig.ts';
import { isLongRun } from '../../support/long.ts';

let rig: WorkspaceRig;
beforeEach(() => {
  rig = new WorkspaceRig();
  rig.repository.commit({ 'a.txt': 'a\n' });
});
afterEach(() => rig.remove());

const atOnce = 8;
const rounds = isLongRun ? 30 : 3;

test(
  `${atOnce} worktrees at once, ${rounds} times`,
  async () => {
    for (let round = 0; round < rounds; round += 1) {
      const plans = Array.from({ length: atOnce }, (_, index) => rig.plan(round * atOnce + index + 1));
      const all = await Promise.all(plans.map((plan) => makeWorkspace(rig.git, plan)));
      expect(all.map((made) => (made.ok ? '' : made.failure.message))).toEqual(plans.map(() => ''));
      expect([...rig.worktrees()].sort()).toEqual(plans.map(({ path }) => path).sort());
      expect(rig.branches()).toEqual(plans.map(({ branch }) => branch).sort());
      for (const { path } of plans) rig.run('worktree', 'remove', path);
      for (const { branch } of plans) rig.run('branch', '-D', branch);
    }
    rig.fsck();
  },
  rounds * 20_000,
);

/** A world in which pauses take no time; `onPause` is called for each. */
function hurriedWorld(onPause: (count: number) => void): World {
  let count = 0;
  const after: World['clock']['after'] = (_delayMs, action) => {
    count += 1;
    onPause(count);
    return rig.world.clock.after(0, action);
  };
  return { ...rig.world, clock: Object.assign(Object.create(rig.world.clock), { after }) };
}

test('a worktree that another git is creating is waited for', async () => {
  const entry = join(rig.gitDir, 'worktrees/other');
  mkdirSync(entry, { recursive: true });
  writeFileSync(join(entry, 'gitdir'), `${join(rig.folder, 'elsewhere/.git')}\n`);
  writeFileSync(join(entry, 'HEAD'), 'ref: refs/heads/main\n');
  writeFileSync(join(entry, 'locked'), 'initializing');
  writeFileSync(join(entry, 'commondir'), '');
  let pauses = 0;
  const world = hurriedWorld((count) => {
    pauses = count;
    if (count === 3) writeFileSync(join(entry, 'commondir'), '../..\n');
  });
  value(await makeWorkspace(rig.gitOf(world), rig.plan(1)));
  expect(pauses).toBe(3);
});

test('an ordinary refusal is not retried', async () => {
  let pauses = 0;
  const git = rig.gitOf(hurriedWorld(() => (pauses += 1)));
  expect(failure(await runOwn(git, rig.top, ['checkout', 'nowhere'])).reason).toBe('worktree-failed');
  expect(pauses).toBe(0);
});
