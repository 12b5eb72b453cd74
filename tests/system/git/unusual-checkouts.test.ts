/**
 * Promises: in a sparse checkout exactly the session's work is committed. Hooks that could not run are named. The
 * user's filters get the user's variables.
 */
import { afterEach, beforeEach, expect, test } from 'bun:test';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Workspace } from '../../../src/core/group.ts';
import { commitWork } from '../../../src/git/commit.ts';
import { makeWorkspace } from '../../../src/git/worktrees/workspace.ts';
import { git, writeTree } from '../../support/git/repository.ts';
import { made, value, WorkspaceRig } from '../../support/git/workspace-rig.ts';

let rig: WorkspaceRig;
beforeEach(() => {
  rig = new WorkspaceRig();
});
afterEach(() => rig.remove());

const filesOf = (folder: string, commit: string): string[] =>
  git(folder, 'ls-tree', '-r', '--name-only', commit).split('\n');
const commit = async (workspace: Workspace) => value(await commitWork(rig.git, workspace, 'Work'));

test('sparse checkout: new folders outside of it are committed, and excluded files stay', async () => {
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

test('hooks whose folder exists only in the checkout are named as not run', async () => {
  rig.repository.commit({ '.gitignore': '.husky/_/\n', '.husky/pre-commit': 'npm test\n' });
  rig.run('config', 'core.hooksPath', '.husky/_');
  writeTree(rig.top, { '.husky/_/pre-commit': '#!/bin/sh\n' });
  const workspace = { ...made(await makeWorkspace(rig.git, rig.plan())), checkout: rig.top };
  expect((await commit(workspace)).notes).toEqual([]);
  writeTree(workspace.path, { 'new.txt': 'new\n' });
  expect((await commit(workspace)).notes).toEqual([
    expect.stringMatching(
      /^Hooks of the repository did not run for the session's own commits: \.husky\/_ exists only in the/,
    ),
  ]);
  writeTree(workspace.path, { '.husky/_/pre-commit': '#!/bin/sh\n', 'more.txt': 'more\n' });
  expect((await commit(workspace)).notes).toEqual([]);
});

test("a user's filter gets the variables of the user’s shell, but no login of claude", async () => {
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
