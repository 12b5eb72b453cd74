/**
 * Promises of the clean-up: merged worktrees and branches are removed, and unmerged work stays unless --force is given.
 * No repository keeps an entry of a removed worktree, and the user's own checkout is unchanged.
 */
import { afterEach, beforeEach, expect, test } from 'bun:test';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type CleanUpReport, cleanUpSessions } from '../../../src/app/delivery/worktree-cleanup.ts';
import type { Result } from '../../../src/core/failure.ts';
import type { World } from '../../../src/system/world.ts';
import { quietContext, type WorktreeGroup, WorktreeUser } from '../../support/cli/worktree-ground.ts';
import { git } from '../../support/git/repository.ts';

let user: WorktreeUser;
let before: string;
beforeEach(() => {
  user = new WorktreeUser();
  writeFileSync(join(user.shop, 'unfinished.txt'), 'of the user');
  before = git(user.shop, 'status', '--porcelain');
});
afterEach(() => {
  if (existsSync(user.gitDir)) {
    expect(git(user.shop, 'status', '--porcelain')).toBe(before);
    git(user.shop, 'fsck', '--strict');
  }
  user.remove();
});

const archive = (group: WorktreeGroup, ...more: string[]) => user.run('group', 'archive', group.id, ...more);

/** As after a merge: unmerged work stays. */
async function tidy(group: WorktreeGroup): Promise<CleanUpReport> {
  const context = quietContext(user, user.world);
  let outcome: Result<CleanUpReport> | undefined;
  await group.writeAsync(async (writer) => {
    outcome = await cleanUpSessions(context, writer, [...writer.state.sessions.keys()], { force: false });
  });
  if (outcome?.ok !== true) throw new Error(outcome?.failure.message);
  return outcome.value;
}

test('merged and unused worktrees are removed', async () => {
  const group = user.group('auth', ['api', 'web', 'idle']);
  group.commit('api');
  const kept = group.commit('web');
  group.merge('api');
  const { cleaned, kept: stays } = await tidy(group);
  expect(cleaned).toEqual(['api', 'idle'].map((name) => group.session(name)));
  const why = expect.stringContaining(`1 commit of ${group.branch('web')} is neither in main`);
  expect(stays).toEqual([{ sessionId: group.session('web'), why }]);
  expect(user.worktrees()).toEqual([group.path('web')]);
  expect(user.branches()).toEqual([group.branch('web'), 'main']);
  expect(git(user.shop, 'rev-parse', group.branch('web'))).toBe(kept);
  expect(['api', 'web', 'idle'].map((name) => group.hasWorkspace(name))).toEqual([false, true, false]);
  // Merged by hand afterwards, it is removed with the group.
  group.merge('web');
  expect(await archive(group)).toMatchObject({ code: 0 });
  expect(user.worktrees()).toEqual([]);
  expect(user.branches()).toEqual(['main']);
});

test('--force removes unmerged work', async () => {
  const group = user.group('auth', ['api']);
  group.commit('api');
  writeFileSync(join(group.path('api'), 'more.txt'), 'x');
  expect(await archive(group, '--force')).toMatchObject({ code: 0 });
  expect([user.worktrees(), user.branches()]).toEqual([[], ['main']]);
  expect(group.isThere('api')).toBe(false);
});

const inTheWay: readonly (readonly [string, (group: WorktreeGroup) => void, string])[] = [
  [
    'a changed file',
    (group) => writeFileSync(join(group.path('api'), 'README.md'), 'new'),
    'uncommitted changes: README.md',
  ],
  ['a new file', (group) => writeFileSync(join(group.path('api'), 'a "b".txt'), 'x'), 'uncommitted changes: a "b".txt'],
  [
    'commits on no branch',
    (group) => {
      git(group.path('api'), 'checkout', '--quiet', '--detach');
      group.commit('api');
    },
    'on no branch',
  ],
  [
    'a rebase in the middle',
    (group) => {
      group.commit('api');
      group.merge('api');
      group.commit('api', 'second.txt');
      git(group.path('api'), 'reset', '--quiet', '--hard', 'HEAD~1');
      git(group.path('api'), 'checkout', '--quiet', 'HEAD@{1}');
    },
    'on no branch',
  ],
  [
    'a worktree lock',
    (group) => git(user.shop, 'worktree', 'lock', '--reason', 'mine for now', group.path('api')),
    'locked (mine for now)',
  ],
];

for (const [what, prepare, why] of inTheWay) {
  test(`stays: ${what}`, async () => {
    const group = user.group('auth', ['api']);
    prepare(group);
    const { cleaned, kept } = await tidy(group);
    expect(cleaned).toEqual([]);
    expect(kept).toEqual([{ sessionId: group.session('api'), why: expect.stringContaining(why) }]);
    expect([group.isThere('api'), group.hasWorkspace('api')]).toEqual([true, true]);
  });
}

test('ignored files and files of ours do not count as work', async () => {
  const group = user.group('auth', ['api']);
  writeFileSync(join(group.path('api'), 'debug.log'), 'x');
  writeFileSync(join(group.path('api'), '.cpm-progress-abc.md'), 'x');
  expect(await archive(group)).toMatchObject({ code: 0 });
  expect(user.worktrees()).toEqual([]);
});

test("a worktree that is some process's current folder is not removed", async () => {
  const group = user.group('auth', ['api']);
  const inside = await user.runWith({ cwd: group.path('api') }, 'group', 'archive', group.id, '--force');
  expect(inside.stderr).toContain('It is the current folder');
  expect(group.isThere('api')).toBe(true);
});

/** A world that ends like a killed process at its `step`th changing call. */
function dyingWorld(world: World, step: number): { readonly world: World; readonly died: () => boolean } {
  let calls = 0;
  const changing = <A extends unknown[], R>(act: (...args: A) => R) => {
    return (...args: A): R => {
      calls += 1;
      if (calls >= step) throw new Error('killed');
      return act(...args);
    };
  };
  const { files, processes } = world;
  const dying: World = {
    ...world,
    files: { ...files, rename: changing(files.rename), remove: changing(files.remove) },
    processes: {
      ...processes,
      run: (options) => {
        const changes = options.args.includes('remove') || options.args.includes('update-ref');
        return changes ? changing(processes.run)(options) : processes.run(options);
      },
    },
  };
  return { world: dying, died: () => calls >= step };
}

test('run again after a crash at any step, it finishes', async () => {
  for (let step = 1; ; step += 1) {
    const group = user.group(`auth-${step}`, ['api']);
    group.commit('api', `api-${step}.txt`);
    group.merge('api');
    const { world, died } = dyingWorld(user.world, step);
    const context = quietContext(user, world);
    const cleaning = group.writeAsync(async (writer) => {
      await cleanUpSessions(context, writer, [group.session('api')], { force: false });
    });
    // Whether it throws or returns a failure: nothing is changed from that step on.
    await cleaning.catch(() => {});
    const killed = died();
    if (killed) expect(await archive(group)).toMatchObject({ code: 0 });
    expect([user.worktrees(), user.branches(), group.hasWorkspace('api')]).toEqual([[], ['main'], false]);
    expect(user.world.files.list(join(group.path('api'), '..'))).not.toContain('worktree.removed');
    if (!killed) {
      expect(step).toBeGreaterThan(5);
      return;
    }
  }
}, 30_000);
