/**
 * Promises of worktrees made for FABER runs: on a branch of their own, tracked, kept while anything could be lost, and
 * removed when their run is over. A failed creation leaves nothing.
 */
import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { FaberUser } from '../../support/cli/faber-ground.ts';
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

test('created beside the project on its own branch, tracked, and removed after completion', async () => {
  const first = await user.begin();
  const second = await user.begin('259', '--worktree');
  expect(git(beside(), 'branch', '--show-current')).toBe('feature/259');
  expect([user.activeRun(), user.activeRun(beside())]).toEqual([`${first}\n`, `${second}\n`]);
  const list = JSON.parse(readFileSync(join(user.shop, '.fractary/faber/worktrees.json'), 'utf8'));
  expect(list.worktrees).toMatchObject([
    { work_id: '259', run_id: second, path: '../shop-issue-259', branch: 'feature/259' },
  ]);
  expect(await tracked()).toMatchObject([{ run_id: second, status: 'in progress', path: beside() }]);
  // Called from within, it must not remove the session's current folder.
  await complete(second);
  expect(existsSync(beside())).toBe(true);
  const resumed = await user.faber('resume', first);
  expect(resumed.stderr).toContain('Removed the worktree');
  expect(existsSync(beside())).toBe(false);
  expect(git(user.shop, 'branch', '--list', 'feature/259')).toContain('feature/259');
  expect(git(user.shop, 'worktree', 'list').split('\n')).toHaveLength(1);
  expect(user.stateOf(second)).toMatchObject({ status: 'completed', worktree: { branch: 'feature/259' } });
  expect(await tracked()).toEqual([]);
});

test('kept while it has changes or an open session; --prune names the reason', async () => {
  await user.begin('259', '--worktree');
  const [entry] = await tracked();
  writeFileSync(join(beside(), 'work.txt'), 'not committed');
  await complete(entry.run_id);
  expect(await user.faber('worktrees', '--prune')).toMatchObject({ code: 2 });
  const kept = await user.faber('worktrees', '--prune', '--force');
  expect(kept).toMatchObject({ code: 1 });
  expect(kept.stdout).toContain('It has uncommitted files: work.txt.');
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

describe('removed automatically when its run is completed and it is clean and merged', () => {
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

  test.each(['merge', 'squash'] as const)('by the next faber resume in the repository: %s', async (how) => {
    const main = await user.begin('258');
    git(user.shop, 'add', '.');
    git(user.shop, 'commit', '--quiet', '-m', 'The run');
    await completed();
    // Not merged: the run is over, but its work is not on another branch.
    expect(await user.faber('resume', main)).toMatchObject({ code: 0, stderr: '' });
    expect(existsSync(beside())).toBe(true);
    others[how]();
    writeFileSync(join(beside(), 'more.txt'), 'not committed');
    await user.faber('resume', main);
    expect(existsSync(beside())).toBe(true);
    rmSync(join(beside(), 'more.txt'));
    expect((await user.faber('resume', main)).stderr).toContain('Removed the worktree');
    expect(existsSync(beside())).toBe(false);
    expect(git(user.shop, 'worktree', 'list').split('\n')).toHaveLength(1);
    expect(git(user.shop, 'branch', '--list', 'feature/259')).toContain('feature/259');
  });
});

test('orphans: a missing folder, a missing run', async () => {
  await user.begin('259', '--worktree');
  rmSync(beside(), { recursive: true });
  expect(await tracked()).toMatchObject([{ status: 'missing' }]);
  expect(await user.faber('worktrees', '--prune')).toMatchObject({ code: 0 });
  expect(await tracked()).toEqual([]);
  // The branch exists and is used again.
  const run = await user.begin('259', '--worktree');
  rmSync(join(beside(), '.fractary/runs', run), { recursive: true });
  expect(await tracked()).toMatchObject([{ status: 'orphaned' }]);
  expect(await user.faber('worktrees', '--prune', '--force')).toMatchObject({ code: 0 });
  expect(existsSync(beside())).toBe(false);
});
