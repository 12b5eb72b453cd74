/**
 * Promises of the list of work trees when sessions of a group work on a FABER run: an entry when one is made, none
 * when it is gone, everything else in the file untouched, and `faber worktrees` removes nothing of theirs.
 */
import { afterEach, beforeEach, expect, test } from 'bun:test';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { forgetSessionWorktree, noteSessionWorktree } from '../../../src/context/faber/worktrees.ts';
import { makeGroupId, makeSessionId } from '../../../src/core/id.ts';
import { groupPaths, sessionPaths } from '../../../src/store/paths.ts';
import { createRealWorld } from '../../../src/system/real-world.ts';
import { FaberUser } from '../../support/cli/faber-ground.ts';
import { git } from '../../support/git/repository.ts';

const { files } = createRealWorld();
const nowMs = Date.UTC(2026, 0, 4, 14, 30, 22);
let user: FaberUser;
beforeEach(() => {
  user = new FaberUser();
});
afterEach(() => user.remove());

const list = (root = user.shop) => join(root, '.fractary/faber/worktrees.json');
const entries = (root = user.shop) => JSON.parse(readFileSync(list(root), 'utf8')).worktrees;

function worktreeOf(projectPath: string, number = 1) {
  const paths = groupPaths(user.data, makeGroupId(nowMs, 'auth'));
  const path = sessionPaths(paths, makeSessionId(number, crypto.randomUUID())).worktree;
  const branch = `cca/auth/00${number}`;
  git(user.shop, 'worktree', 'add', '--quiet', '-b', branch, path);
  return { projectPath, repository: join(user.shop, '.git'), path, branch };
}

test('an entry while it is there, in the format of the other entries', async () => {
  const run = await user.begin();
  user.write('.fractary/faber/worktrees.json', '{"theirs": 1, "worktrees": [7]}');
  const worktree = worktreeOf(user.shop);
  expect(noteSessionWorktree(files, worktree, nowMs)).toMatchObject({ ok: true });
  // Said again after a crash it is still one entry.
  expect(noteSessionWorktree(files, worktree, nowMs)).toMatchObject({ ok: true });
  const created_at = new Date(nowMs).toISOString();
  expect(entries()).toEqual([
    7,
    { work_id: '258', run_id: run, path: expect.stringMatching(/^\.\.\//), branch: 'cca/auth/001', created_at },
  ]);
  const listed = JSON.parse((await user.faber('worktrees', '--json')).stdout);
  expect(listed).toMatchObject([{ path: worktree.path, status: 'in progress', run_id: run }]);
  expect(forgetSessionWorktree(files, worktree)).toMatchObject({ ok: true });
  expect(JSON.parse(readFileSync(list(), 'utf8'))).toEqual({ theirs: 1, worktrees: [7] });
});

test('a run that is over: faber leaves the work tree to its group', async () => {
  const run = await user.begin();
  const worktree = worktreeOf(user.shop);
  noteSessionWorktree(files, worktree, nowMs);
  const state = user.stateOf(run);
  writeFileSync(user.stateFile(run), JSON.stringify({ ...state, status: 'completed' }));
  const pruned = await user.faber('worktrees', '--prune', '--force');
  expect(pruned.stdout).toContain('belongs to a session');
  expect([existsSync(worktree.path), entries().length]).toEqual([true, 1]);
});

test('a project in a folder, or in a second work tree of the user’s: the first one keeps the list', async () => {
  const second = join(user.folder, 'second');
  git(user.shop, 'worktree', 'add', '--quiet', '-b', 'topic', second);
  const started = await user.runWith({ cwd: second }, 'faber', 'start', '--work-id', '7');
  expect(started.code).toBe(0);
  const worktree = worktreeOf(second);
  expect(noteSessionWorktree(files, worktree, nowMs)).toMatchObject({ ok: true });
  expect(entries()).toMatchObject([{ work_id: '7', run_id: started.stdout.trim() }]);
  expect(existsSync(list(second))).toBe(false);
  mkdirSync(join(user.shop, 'api/.fractary'), { recursive: true });
  expect((await user.runWith({ cwd: join(user.shop, 'api') }, 'faber', 'start', '--work-id', '8')).code).toBe(0);
  expect(noteSessionWorktree(files, worktreeOf(join(user.shop, 'api'), 2), nowMs)).toMatchObject({ ok: true });
  expect(entries(join(user.shop, 'api'))).toMatchObject([{ work_id: '8', branch: 'cca/auth/002' }]);
});

test('without a run nothing is written; a list that cannot be read is left alone', async () => {
  const worktree = worktreeOf(user.shop);
  expect(noteSessionWorktree(files, worktree, nowMs)).toMatchObject({ ok: true });
  expect(forgetSessionWorktree(files, worktree)).toMatchObject({ ok: true });
  expect(existsSync(join(user.shop, '.fractary'))).toBe(false);
  await user.begin();
  user.write('.fractary/faber/worktrees.json', '{"worktrees": 7}');
  expect(noteSessionWorktree(files, worktree, nowMs)).toMatchObject({ ok: false, failure: { reason: 'corrupt-file' } });
  expect(forgetSessionWorktree(files, worktree)).toMatchObject({ ok: true });
  expect(readFileSync(list(), 'utf8')).toBe('{"worktrees": 7}');
});
