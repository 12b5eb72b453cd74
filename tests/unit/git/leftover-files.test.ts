/**
 * Promises: new files of a command are removed from a worktree. Earlier files, tracked and ignored files, and targets
 * of symlinks stay. Changes to tracked files are reported.
 */
import { afterEach, beforeEach, expect, test } from 'bun:test';
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import type { Workspace } from '../../../src/core/group.ts';
import { commitWork } from '../../../src/git/commit.ts';
import { changedTracked, clearNewFiles, untrackedFiles } from '../../../src/git/leftover-files.ts';
import { makeWorkspace } from '../../../src/git/worktrees/workspace.ts';
import { type FileTree, git, writeTree } from '../../support/git/repository.ts';
import { failure, made, value, WorkspaceRig } from '../../support/git/workspace-rig.ts';

let rig: WorkspaceRig;
let workspace: Workspace;
beforeEach(async () => {
  rig = new WorkspaceRig();
  rig.repository.commit({ '.gitignore': '*.log\n', 'a.txt': 'a\n', 'app/b.txt': 'b\n' });
  workspace = made(await makeWorkspace(rig.git, rig.plan()));
});
afterEach(() => rig.remove());

const status = () => git(workspace.path, 'status', '--porcelain', '--untracked-files=all', '--ignored');

/** What a command does between the two looks. */
async function command(act: () => void): Promise<void> {
  const before = value(await untrackedFiles(rig.git, workspace.path));
  act();
  value(await clearNewFiles(rig.git, workspace.path, before));
}
const writing = (tree: FileTree) => command(() => writeTree(workspace.path, tree));

test('new files of a command are removed from every folder, whatever their names', async () => {
  const names = ['junit.xml', 'app/report/deep/x.xml', 'odd\n"name".txt', '-rf', 'a b.txt', ':(top)x', 'ä.txt', '*'];
  await writing(Object.fromEntries(names.map((name) => [name, 'junk'])));
  expect(status()).toBe('');
  expect(readFileSync(join(workspace.path, 'app/b.txt'), 'utf8')).toBe('b\n');
});

test('after cleanup the next commit of the session contains only its own work', async () => {
  writeTree(workspace.path, { 'work.txt': 'w\n' });
  const first = value(await commitWork(rig.git, workspace, 'Work'));
  await writing({ 'junit.xml': 'junk' });
  expect(value(await commitWork(rig.git, workspace, 'More'))).toMatchObject({ commit: first.commit, committed: false });
});

test('files that existed before the command stay, even if the command wrote to them', async () => {
  writeTree(workspace.path, { 'notes.txt': 'mine\n', 'app/draft.txt': 'mine\n' });
  await writing({ 'notes.txt': 'more\n', 'app/draft.txt.orig': 'junk' });
  expect(readFileSync(join(workspace.path, 'notes.txt'), 'utf8')).toBe('more\n');
  expect(status()).toBe('?? app/draft.txt\n?? notes.txt');
});

test('tracked files, ignored files, the program’s own files and other repositories stay', async () => {
  await command(() => {
    writeTree(workspace.path, { 'a.txt': 'changed\n', 'app/b.txt': null, 'debug.log': 'x', '.cpm-progress-1.md': 'x' });
    mkdirSync(join(workspace.path, 'nested'));
    git(join(workspace.path, 'nested'), 'init', '--quiet');
    writeTree(workspace.path, { 'nested/x.txt': 'x', 'staged.txt': 'x' });
    git(workspace.path, 'add', 'staged.txt');
  });
  const left = ['.cpm-progress-1.md', 'a.txt', 'debug.log', 'nested/x.txt', 'staged.txt'];
  expect(left.filter((name) => !existsSync(join(workspace.path, name)))).toEqual([]);
  expect(value(await changedTracked(rig.git, workspace.path))).toEqual(['a.txt', 'app/b.txt', 'staged.txt']);
});

test('new symlinks are removed, and their targets stay', async () => {
  const outside = join(rig.folder, 'outside');
  writeTree(outside, { 'precious.txt': 'p\n' });
  await command(() => {
    symlinkSync(outside, join(workspace.path, 'link'));
    symlinkSync(join(outside, 'precious.txt'), join(workspace.path, 'file-link'));
    symlinkSync('nowhere', join(workspace.path, 'broken'));
    // The folder of a tracked file is now a symlink, and its new files are elsewhere.
    writeTree(workspace.path, { 'app/new.txt': 'n\n' });
    renameSync(join(workspace.path, 'app'), join(outside, 'app'));
    symlinkSync(join(outside, 'app'), join(workspace.path, 'app'));
  });
  expect(['precious.txt', 'app/new.txt', 'app/b.txt'].map((name) => existsSync(join(outside, name)))).toEqual([
    true,
    true,
    true,
  ]);
  expect(status()).toBe('D app/b.txt');
});

test.each<readonly [string, (path: string) => void]>([
  ['removes the .git file', (path) => rmSync(join(path, '.git'))],
  [
    'replaces .git with a new repository',
    (path) => {
      rmSync(join(path, '.git'));
      git(path, 'init', '--quiet');
    },
  ],
])('a command that %s does not make the session’s work look new', async (_what, act) => {
  const before = value(await untrackedFiles(rig.git, workspace.path));
  writeTree(workspace.path, { 'a.txt': 'changed\n' });
  act(workspace.path);
  const cleared = await clearNewFiles(rig.git, workspace.path, before);
  expect(cleared.ok || cleared.failure.message.includes('is no longer a worktree')).toBe(true);
  expect(['a.txt', 'app/b.txt'].map((name) => readFileSync(join(workspace.path, name), 'utf8'))).toEqual([
    'changed\n',
    'b\n',
  ]);
});

test('cleanup accepts an unchanged worktree and a missing worktree', async () => {
  expect(value(await untrackedFiles(rig.git, workspace.path))).toEqual([]);
  expect(value(await changedTracked(rig.git, workspace.path))).toEqual([]);
  await writing({});
  renameSync(workspace.path, `${workspace.path} moved`);
  expect(failure(await clearNewFiles(rig.git, workspace.path, [])).reason).toBe('worktree-failed');
});
