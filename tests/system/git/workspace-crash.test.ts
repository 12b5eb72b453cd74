/**
 * Promises: after a crash at any moment, or after the folder, the branch or both were removed, the next call creates
 * one worktree on one branch, and no commit of the session is lost.
 */

import { afterEach, beforeEach, expect, test } from 'bun:test';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { adviceText } from '../../../src/core/advice.ts';
import { makeWorkspace } from '../../../src/git/worktrees/workspace.ts';
import { git } from '../../support/git/repository.ts';
import { crashingWorld, failure, made, SimulatedCrash, value, WorkspaceRig } from '../../support/git/workspace-rig.ts';

let rig: WorkspaceRig;
beforeEach(() => {
  rig = new WorkspaceRig();
});
afterEach(() => rig.remove());

const remade = { remadeAt: expect.any(String) as string };

const begin = (): string => rig.repository.commit({ 'a.txt': 'a\n', 'b.txt': 'b\n' });

for (const when of ['before', 'after'] as const) {
  test(`a crash ${when} any step: the next call makes one worktree and one branch`, async () => {
    const base = begin();
    const one = rig.sideCommit('one', base, { 'a.txt': 'one\n' });
    const two = rig.sideCommit('two', base, { 'b.txt': 'two\n' });
    const before = rig.checkout();
    let crashes = 0;
    for (let at = 1; ; at += 1) {
      const plan = rig.plan(at % 9, { branch: `cca/group/${at}`, parents: [one, two] });
      rmSync(join(plan.path, '..'), { recursive: true, force: true });
      mkdirSync(join(plan.path, '..'), { recursive: true });
      rig.run('worktree', 'prune');
      const { world } = crashingWorld(rig.world, at, when);
      const crashed = await makeWorkspace(rig.gitOf(world), plan).then(
        (result) => value(result) === null,
        (error) => {
          if (error instanceof SimulatedCrash) return true;
          throw error;
        },
      );
      if (crashed) crashes += 1;
      const again = value(await makeWorkspace(rig.git, plan));
      expect(again.workspace.branch).toBe(plan.branch);
      expect(git(plan.path, 'status', '--porcelain')).toBe('');
      expect(git(plan.path, 'rev-parse', 'HEAD')).toBe(again.workspace.base);
      expect(readFileSync(join(plan.path, 'b.txt'), 'utf8')).toBe('two\n');
      expect(rig.branches().filter((name) => name.startsWith(plan.branch))).toEqual([plan.branch]);
      expect(rig.worktrees().filter((path) => path === plan.path)).toEqual([plan.path]);
      rig.run('worktree', 'remove', '--force', plan.path);
      rig.run('branch', '-D', plan.branch);
      if (!crashed) break;
    }
    expect(crashes).toBeGreaterThan(8);
    expect(rig.checkout()).toEqual(before);
    rig.fsck();
  }, 120_000);
}

test('git is killed while it checks out files', async () => {
  rig.repository.commit({ '.gitattributes': '*.bin filter=big\n', 'a.txt': 'a\n', 'x.bin': 'x\n' });
  const plan = rig.plan();
  // The filter kills the git that checks out and its parent, as a power cut would.
  rig.run('config', 'filter.big.smudge', 'kill -9 $PPID $(ps -o ppid= -p $PPID)');
  const { reason } = failure(await makeWorkspace(rig.git, plan));
  expect(reason).toBe('worktree-failed');
  expect([rig.worktrees(), rig.branches(), existsSync(plan.path)]).toEqual([[], [], false]);
  // The same, and our own process dies with it, so nothing was rolled back.
  const { world } = crashingWorld(rig.world, 8, 'before');
  await expect(makeWorkspace(rig.gitOf(world), plan)).rejects.toThrow(SimulatedCrash);
  rig.run('config', '--unset', 'filter.big.smudge');
  expect(git(made(await makeWorkspace(rig.git, plan)).path, 'status', '--porcelain')).toBe('');
  expect([rig.worktrees(), rig.branches()]).toEqual([[plan.path], [plan.branch]]);
  rig.fsck();
});

/** A world whose power fails when the disks are asked to sync. */
function failingPower(): typeof rig.world {
  const { run } = rig.world.processes;
  const processes = Object.assign(Object.create(rig.world.processes), {
    run: (options: Parameters<typeof run>[0]) => {
      if (options.program === 'sync') throw new SimulatedCrash('the power fails');
      return run(options);
    },
  });
  return { ...rig.world, processes };
}

/** Files that git had not synced exist by name and are empty. */
function empty(plan: ReturnType<typeof rig.plan>): void {
  const admin = join(rig.repository.folder, '.git', 'worktrees', basename(plan.path));
  const files = readdirSync(admin, { withFileTypes: true }).filter((entry) => entry.isFile());
  for (const { name } of files) writeFileSync(join(admin, name), '');
  for (const path of [join(plan.path, '.git'), join(plan.path, 'a.txt')]) writeFileSync(path, '');
}

test('a worktree counts as created only when it is on disk, and after a power cut it is created again', async () => {
  begin();
  const plan = rig.plan();
  await expect(makeWorkspace(rig.gitOf(failingPower()), plan)).rejects.toThrow(SimulatedCrash);
  empty(plan);
  expect(git(made(await makeWorkspace(rig.git, plan)).path, 'status', '--porcelain')).toBe('');
  expect([rig.worktrees(), rig.branches()]).toEqual([[plan.path], [plan.branch]]);
  expect(git(plan.path, 'rev-parse', 'HEAD')).toBe(git(plan.path, 'rev-parse', plan.branch));
  rig.run('worktree', 'prune');
  rig.fsck();
  // The same while it is being restored.
  rmSync(plan.path, { recursive: true });
  await expect(makeWorkspace(rig.gitOf(failingPower()), plan)).rejects.toThrow(SimulatedCrash);
  empty(plan);
  expect(git(made(await makeWorkspace(rig.git, plan)).path, 'status', '--porcelain')).toBe('');
  rig.run('worktree', 'prune');
  rig.fsck();
});

test("a worktree whose folder is gone is restored from its branch with the session's commits", async () => {
  begin();
  const plan = rig.plan();
  const workspace = made(await makeWorkspace(rig.git, plan));
  writeFileSync(join(plan.path, 'work.txt'), 'work\n');
  git(plan.path, 'add', '--all');
  git(plan.path, 'commit', '--quiet', '-m', 'Work');
  rmSync(plan.path, { recursive: true });
  const again = value(await makeWorkspace(rig.git, plan));
  expect(again).toEqual({ workspace: { ...workspace, ...remade }, isNew: true, notes: [] });
  // The result is the same until the restored worktree is recorded.
  expect(value(await makeWorkspace(rig.git, plan))).toEqual({ ...again, isNew: false });
  expect(readFileSync(join(plan.path, 'work.txt'), 'utf8')).toBe('work\n');
  // Pruned by the user, and the branch is gone too.
  rmSync(plan.path, { recursive: true });
  rig.run('worktree', 'prune');
  rig.run('branch', '-D', workspace.branch);
  const fresh = value(await makeWorkspace(rig.git, plan));
  expect(fresh).toEqual({ workspace: { ...workspace, ...remade }, isNew: true, notes: [] });
  expect(fresh.workspace.remadeAt).not.toBe(again.workspace.remadeAt as string);
  rig.fsck();
});

test('a worktree locked by the user is not created again', async () => {
  begin();
  const plan = rig.plan();
  const workspace = made(await makeWorkspace(rig.git, plan));
  rig.run('worktree', 'lock', '--reason', 'on a stick', plan.path);
  rmSync(plan.path, { recursive: true });
  const { reason, message, next } = failure(await makeWorkspace(rig.git, plan));
  expect(reason).toBe('worktree-failed');
  expect(`${message} ${adviceText(next)}`).toMatch(/is locked: on a stick.*git worktree unlock/);
  rig.run('worktree', 'unlock', plan.path);
  expect(made(await makeWorkspace(rig.git, plan))).toEqual({ ...workspace, ...remade });
});

test('a crash at any step of the restore: it is recorded once as created again', async () => {
  begin();
  let crashes = 0;
  for (let at = 1; ; at += 1) {
    const plan = rig.plan(at % 9, { branch: `cca/group/${at}` });
    rmSync(join(plan.path, '..'), { recursive: true, force: true });
    mkdirSync(join(plan.path, '..'), { recursive: true });
    rig.run('worktree', 'prune');
    const workspace = made(await makeWorkspace(rig.git, plan));
    rmSync(plan.path, { recursive: true });
    const { world } = crashingWorld(rig.world, at, 'after');
    const crashed = await makeWorkspace(rig.gitOf(world), plan).then(
      (result) => value(result) === null,
      (error) => {
        if (error instanceof SimulatedCrash) return true;
        throw error;
      },
    );
    const again = made(await makeWorkspace(rig.git, plan));
    expect(again).toEqual({ ...workspace, ...remade });
    expect(made(await makeWorkspace(rig.git, plan))).toEqual(again);
    if (!crashed) break;
    crashes += 1;
  }
  expect(crashes).toBeGreaterThan(4);
}, 60_000);

test('a session that ran before gets a new worktree when nothing of the old one is found', async () => {
  begin();
  expect(made(await makeWorkspace(rig.git, rig.plan(1, { isKnown: true })))).toMatchObject(remade);
});

test('a folder that is no longer a worktree is not changed', async () => {
  begin();
  const plan = rig.plan();
  made(await makeWorkspace(rig.git, plan));
  writeFileSync(join(plan.path, 'work.txt'), 'work\n');
  rmSync(join(plan.path, '.git'));
  const { message, next } = failure(await makeWorkspace(rig.git, plan));
  expect(`${message} ${adviceText(next)}`).toMatch(/no longer a worktree.*save its files/);
  expect(readFileSync(join(plan.path, 'work.txt'), 'utf8')).toBe('work\n');
});
