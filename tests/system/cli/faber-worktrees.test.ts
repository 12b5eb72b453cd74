/**
 * Promises of work trees made for runs of FABER: on a branch of their own, tracked, kept while anything could be lost,
 * and removed when their run is over; when one cannot be made, nothing is half made.
 */
import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { faber } from '../../../src/context/faber/hooks.ts';
import type { HookCall } from '../../../src/context/hook-call.ts';
import { createFiles } from '../../../src/system/files.ts';
import { FaberUser } from '../../support/cli/faber-ground.ts';
import { until } from '../../support/cli.ts';
import { git } from '../../support/git/repository.ts';

let user: FaberUser;
beforeEach(() => {
  user = new FaberUser();
});
afterEach(() => user.remove());

const beside = () => join(user.folder, 'shop-issue-259');
const tracked = async () => JSON.parse((await user.faber('worktrees', '--json')).stdout);

async function complete(run: string): Promise<void> {
  for (const phase of ['frame', 'architect', 'build', 'evaluate', 'release']) {
    const done = await user.runWith({ cwd: beside() }, 'faber', 'phase', phase);
    if (done.code !== 0) throw new Error(done.stderr);
  }
  expect(user.stateOf(run, beside()).status).toBe('completed');
}

test('made beside the project, on a branch of its own, tracked, and gone after completion', async () => {
  const first = await user.begin();
  const second = await user.begin('259', '--worktree');
  expect(git(beside(), 'branch', '--show-current')).toBe('feature/259');
  expect([user.activeRun(), user.activeRun(beside())]).toEqual([`${first}\n`, `${second}\n`]);
  const list = JSON.parse(readFileSync(join(user.shop, '.fractary/faber/worktrees.json'), 'utf8'));
  expect(list.worktrees).toMatchObject([
    { work_id: '259', run_id: second, path: '../shop-issue-259', branch: 'feature/259' },
  ]);
  expect(await tracked()).toMatchObject([{ run_id: second, status: 'in progress', path: beside() }]);
  // Called from within, it must not remove the ground under the session.
  await complete(second);
  expect(existsSync(beside())).toBe(true);
  const resumed = await user.faber('resume', first);
  expect(resumed.stderr).toContain('Removed the work tree');
  expect(existsSync(beside())).toBe(false);
  expect(git(user.shop, 'branch', '--list', 'feature/259')).toContain('feature/259');
  expect(git(user.shop, 'worktree', 'list').split('\n')).toHaveLength(1);
  expect(user.stateOf(second)).toMatchObject({ status: 'completed', worktree: { branch: 'feature/259' } });
  expect(await tracked()).toEqual([]);
});

test('kept while it holds changes or an open session; --prune says why', async () => {
  await user.begin('259', '--worktree');
  const [entry] = await tracked();
  writeFileSync(join(beside(), 'work.txt'), 'not committed');
  await complete(entry.run_id);
  expect(await user.faber('worktrees', '--prune')).toMatchObject({ code: 2 });
  const kept = await user.faber('worktrees', '--prune', '--force');
  expect(kept).toMatchObject({ code: 1 });
  expect(kept.stdout).toContain('It holds files that are in no commit: work.txt.');
  git(beside(), 'add', 'work.txt');
  git(beside(), 'commit', '--quiet', '-m', 'Work');
  const state = user.stateOf(entry.run_id, beside());
  state.sessions = { current_session_id: 'x', current_session: { session_id: 'x' } };
  writeFileSync(user.stateFile(entry.run_id, beside()), JSON.stringify(state));
  await user.begin('260');
  expect(existsSync(beside())).toBe(true);
  expect((await user.faber('worktrees', '--prune', '--force')).stdout).toContain('Removed');
  expect(existsSync(beside())).toBe(false);
  expect(git(user.shop, 'show', 'feature/259:work.txt')).toBe('not committed');
});

describe('S9: cleaned up by itself when its run is completed, and it is clean and merged', () => {
  const others = {
    merge: () => git(user.shop, 'merge', '--quiet', '--no-ff', '-m', 'Merge', 'feature/259'),
    squash: () => {
      git(user.shop, 'merge', '--quiet', '--squash', 'feature/259');
      git(user.shop, 'commit', '--quiet', '-m', 'Squashed');
    },
  };
  async function completed(): Promise<string> {
    const run = await user.begin('259', '--worktree');
    writeFileSync(join(beside(), 'work.txt'), 'work');
    git(beside(), 'add', '.');
    git(beside(), 'commit', '--quiet', '-m', 'Work');
    await complete(run);
    git(beside(), 'add', '.');
    git(beside(), 'commit', '--quiet', '-m', 'The end of the run');
    return run;
  }

  test.each(['merge', 'squash'] as const)('by the hooks of the next session in the repository: %s', async (how) => {
    await completed();
    const tidy = ['worktrees', '--prune', '--merged'];
    // Not merged: the run is over, its work is not.
    expect(await user.faber(...tidy)).toMatchObject({ code: 0, stderr: '' });
    expect(existsSync(beside())).toBe(true);
    others[how]();
    writeFileSync(join(beside(), 'more.txt'), 'not committed');
    await user.faber(...tidy);
    expect(existsSync(beside())).toBe(true);
    rmSync(join(beside(), 'more.txt'));
    // Never under the feet of a session that is in it.
    await user.hook('session-end', { session_id: 's1', reason: 'other' }, beside());
    await user.hook('session-start', { session_id: 's2', source: 'startup' });
    await until(() => !existsSync(beside()));
    await until(() => git(user.shop, 'worktree', 'list').split('\n').length === 1);
    expect(git(user.shop, 'branch', '--list', 'feature/259')).toContain('feature/259');
  });

  test('a session in it, a session of a group and a compaction set nothing off', async () => {
    await completed();
    const call = { event: 'session-start', projectFolder: user.shop, isWorker: false, nowMs: 0, host: 'here', env: {} };
    const asideOf = (more: object) => faber.answer({ ...call, files: createFiles(), ...more } as HookCall).aside;
    const args = ['faber', 'worktrees', '--prune', '--merged', '--project', user.shop];
    expect(asideOf({})).toEqual({ args, cwd: user.shop });
    expect(asideOf({ event: 'session-end' })).toEqual({ args, cwd: user.shop });
    expect(asideOf({ projectFolder: beside() })).toBeUndefined();
    expect(asideOf({ isWorker: true })).toBeUndefined();
    expect(asideOf({ event: 'pre-compact' })).toBeUndefined();
  });
});

test('orphans: a folder that is gone, a run that is gone', async () => {
  await user.begin('259', '--worktree');
  rmSync(beside(), { recursive: true });
  expect(await tracked()).toMatchObject([{ status: 'missing' }]);
  expect(await user.faber('worktrees', '--prune')).toMatchObject({ code: 0 });
  expect(await tracked()).toEqual([]);
  // The branch is there, and is used again.
  const run = await user.begin('259', '--worktree');
  rmSync(join(beside(), '.fractary/runs', run), { recursive: true });
  expect(await tracked()).toMatchObject([{ status: 'orphaned' }]);
  expect(await user.faber('worktrees', '--prune', '--force')).toMatchObject({ code: 0 });
  expect(existsSync(beside())).toBe(false);
});
