/**
 * Promises: work is committed whole, and nothing else is, where a checkout is no plain one: a sparse checkout, a
 * submodule whose configuration names its folder for all worktrees; and filters of the user get the user's variables.
 */
import { afterEach, beforeEach, expect, test } from 'bun:test';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Workspace } from '../../../src/core/group.ts';
import { commitWork } from '../../../src/git/commit.ts';
import { standingOf } from '../../../src/git/worktrees/discard.ts';
import { makeScratch } from '../../../src/git/worktrees/scratch.ts';
import { makeWorkspace } from '../../../src/git/worktrees/workspace.ts';
import { git, Repository, writeTree } from '../../support/git/repository.ts';
import { made, value, WorkspaceRig } from '../../support/git/workspace-rig.ts';

let rig: WorkspaceRig;
beforeEach(() => {
  rig = new WorkspaceRig();
});
afterEach(() => rig.remove());

const filesOf = (folder: string, commit: string): string[] =>
  git(folder, 'ls-tree', '-r', '--name-only', commit).split('\n');
const commit = async (workspace: Workspace) => value(await commitWork(rig.git, workspace, 'Work'));

test('sparse checkout: new folders outside of it are committed, and what is not checked out stays', async () => {
  rig.repository.commit({ 'apps/web/a.txt': 'a\n', 'apps/api/b.txt': 'b\n', 'README.md': '#\n' });
  rig.run('sparse-checkout', 'set', 'apps/web');
  const workspace = made(await makeWorkspace(rig.git, rig.plan()));
  writeTree(workspace.path, { 'apps/web/a.txt': 'changed\n', 'tools/new.txt': 'new\n', 'apps/api/c.txt': 'c\n' });
  const done = await commit(workspace);
  expect(done).toMatchObject({ committed: true, notes: [], stat: { files: 3 } });
  const all = ['README.md', 'apps/api/b.txt', 'apps/api/c.txt', 'apps/web/a.txt', 'tools/new.txt'];
  expect(filesOf(workspace.path, done.commit)).toEqual(all);
  expect(git(workspace.path, 'status', '--porcelain')).toBe('');
});

test('submodule with a shared core.worktree: only what the session changed is committed', async () => {
  const library = new Repository(join(rig.folder, 'library'));
  library.commit({ 'lib/a.txt': 'a\n', 'lib/b.txt': 'b\n' });
  rig.repository.commit({ 'README.md': '#\n' });
  rig.run('-c', 'protocol.file.allow=always', 'submodule', '--quiet', 'add', library.folder, 'lib');
  const project = join(rig.top, 'lib');
  // As an older git leaves it after `git sparse-checkout init`, and as it is typed by hand.
  git(project, 'config', 'extensions.worktreeConfig', 'true');
  const repository = join(rig.gitDir, 'modules', 'lib');
  const workspace = made(await makeWorkspace(rig.git, rig.plan(1, { projectPath: project, repository })));
  writeTree(workspace.path, { 'hi.txt': 'hi\n' });
  expect(git(workspace.path, 'status', '--porcelain')).toBe('?? hi.txt');
  const done = await commit(workspace);
  expect(filesOf(workspace.path, done.commit)).toEqual(['hi.txt', 'lib/a.txt', 'lib/b.txt']);
  const scratch = join(rig.folder, 'scratch');
  value(await makeScratch(rig.git, repository, scratch, done.commit));
  expect(git(scratch, 'status', '--porcelain')).toBe('');
  const { path } = workspace;
  const standing = value(await standingOf(rig.git, { repository, path, branch: workspace.branch, into: [] }));
  expect(standing).toMatchObject({ uncommitted: [], unmerged: 1, submodules: false });
  expect(git(project, 'status', '--porcelain')).toBe('');
});

test('worktree in which git works elsewhere: nothing is committed, and a sentence says why', async () => {
  rig.repository.commit({ 'a.txt': 'a\n' });
  const workspace = made(await makeWorkspace(rig.git, rig.plan()));
  const own = git(workspace.path, 'rev-parse', '--absolute-git-dir');
  rig.run('config', 'extensions.worktreeConfig', 'true');
  rig.run('config', 'core.worktree', rig.top);
  git(workspace.path, 'config', '--worktree', 'core.worktree', join(rig.folder, 'home'));
  writeFileSync(join(own, 'config.worktree.lock'), '');
  writeTree(workspace.path, { 'hi.txt': 'hi\n' });
  const refused = await commitWork(rig.git, workspace, 'Work');
  expect(refused).toMatchObject({ ok: false, failure: { reason: 'worktree-failed' } });
  expect(refused.ok ? '' : refused.failure.message).toContain('git works on the files of another folder');
  expect(git(rig.top, '--git-dir=.git', '--work-tree=.', 'rev-list', '--count', '--all')).toBe('1');
});

test('hooks whose folder only the checkout has: that they did not run is said', async () => {
  rig.repository.commit({ '.gitignore': '.husky/_/\n', '.husky/pre-commit': 'npm test\n' });
  rig.run('config', 'core.hooksPath', '.husky/_');
  writeTree(rig.top, { '.husky/_/pre-commit': '#!/bin/sh\n' });
  const workspace = { ...made(await makeWorkspace(rig.git, rig.plan())), checkout: rig.top };
  expect((await commit(workspace)).notes).toEqual([]);
  writeTree(workspace.path, { 'new.txt': 'new\n' });
  expect((await commit(workspace)).notes).toEqual([
    expect.stringMatching(/^Hooks of the repository did not run for the session's own commits: \.husky\/_ is in the/),
  ]);
  writeTree(workspace.path, { '.husky/_/pre-commit': '#!/bin/sh\n', 'more.txt': 'more\n' });
  expect((await commit(workspace)).notes).toEqual([]);
});

test('a filter of the user is given the variables of the user’s shell, but no login of claude', async () => {
  const seen = join(rig.folder, 'seen');
  const command = `sh -c 'env > "${seen}"; cat'`;
  writeFileSync(rig.globalConfig, `[filter "mine"]\n\tclean = ${JSON.stringify(command)}\n`, { flag: 'a' });
  rig.repository.commit({ '.gitattributes': '*.bin filter=mine\n' });
  const known = rig.gitOf(rig.world, {
    MY_FILTER_KEY: 'abc',
    GIT_INDEX_FILE: '/nowhere',
    GIT_EXTERNAL_DIFF: 'false',
    ANTHROPIC_API_KEY: 'secret',
  });
  const workspace = made(await makeWorkspace(known, rig.plan()));
  writeTree(workspace.path, { 'x.bin': 'x\n' });
  value(await commitWork(known, workspace, 'Work'));
  const variables = await Bun.file(seen).text();
  expect(variables).toContain('MY_FILTER_KEY=abc');
  expect(variables).not.toMatch(/nowhere|GIT_EXTERNAL_DIFF|secret/);
});
