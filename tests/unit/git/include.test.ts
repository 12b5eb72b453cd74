/**
 * Promises: ignored files listed in `.worktreeinclude` are copied to a new worktree. Tracked and existing files are
 * not replaced, nothing outside the two folders is read or written, and pipes are skipped. Skipped files have a
 * reason.
 */

import { afterEach, beforeEach, expect, test } from 'bun:test';
import { chmodSync, existsSync, mkdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Workspace } from '../../../src/core/group.ts';
import { copyIncluded } from '../../../src/git/include.ts';
import { makeWorkspace } from '../../../src/git/worktrees/workspace.ts';
import { type FileTree, git, writeTree } from '../../support/git/repository.ts';
import { made, value, WorkspaceRig } from '../../support/git/workspace-rig.ts';

let rig: WorkspaceRig;
let workspace: Workspace;
beforeEach(() => {
  rig = new WorkspaceRig();
});
afterEach(() => rig.remove());

async function begin(tracked: FileTree, rest: FileTree): Promise<void> {
  rig.repository.commit({ '.gitignore': '.env*\nsecret/\n*.key\nbuild/\n', 'a.txt': 'a\n', ...tracked });
  writeTree(rig.top, rest);
  workspace = made(await makeWorkspace(rig.git, rig.plan()));
}

const copy = () => copyIncluded(rig.git, workspace, rig.top);
const nothing = { copied: [], notes: [] };
const read = (name: string): string => readFileSync(join(workspace.path, name), 'utf8');

test('ignored files listed in .worktreeinclude are copied, and no others', async () => {
  await begin(
    { '.worktreeinclude': '# what a session needs\n.env*\n!.env.mine\n/secret/\nsub/**/x y.key\na.txt\nnew.txt\n' },
    {
      '.env': 'A=1\n',
      '.env.mine': 'B=2\n',
      'app/.env.local': 'C=3\n',
      'secret/deep/odd\n"name".txt': 'D\n',
      'sub/z/x y.key': 'E\n',
      'other.key': 'F\n',
      'new.txt': 'not ignored\n',
      'a.txt': 'changed\n',
    },
  );
  chmodSync(join(rig.top, '.env'), 0o640);
  chmodSync(join(rig.top, 'secret/deep/odd\n"name".txt'), 0o750);
  const before = rig.checkout();
  const expected = ['.env', 'app/.env.local', 'secret/deep/odd\n"name".txt', 'sub/z/x y.key'];
  const { copied, notes } = value(await copy());
  expect([...copied].sort()).toEqual(expected);
  const reason = 'git does not ignore them: commit them, or add them to .gitignore';
  expect(notes).toEqual([`Listed in .worktreeinclude but not copied, because ${reason}: new.txt.`]);
  expect(expected.map(read)).toEqual(['A=1\n', 'C=3\n', 'D\n', 'E\n']);
  expect([statSync(join(workspace.path, '.env')).mode & 0o777]).toEqual([0o640]);
  expect(statSync(join(workspace.path, 'secret/deep/odd\n"name".txt')).mode & 0o777).toBe(0o750);
  for (const name of ['.env.mine', 'other.key', 'new.txt']) expect(existsSync(join(workspace.path, name))).toBe(false);
  expect(read('a.txt')).toBe('a\n');
  expect(git(workspace.path, 'status', '--porcelain')).toBe('');
  expect(rig.checkout()).toEqual(before);
  // Repeated after a crash, the copy leaves existing files alone.
  writeFileSync(join(workspace.path, '.env'), 'A=session\n');
  expect(value(await copy())).toEqual({ copied: [], notes });
  expect(read('.env')).toBe('A=session\n');
});

test('an uncommitted .worktreeinclude is used, even for a project in a folder of the checkout', async () => {
  await begin({ 'app/x.txt': 'x\n' }, { '.worktreeinclude': '.env\n', '.env': 'A=1\n' });
  writeFileSync(join(rig.top, '.worktreeinclude'), 'nothing\n');
  expect(value(await copy())).toEqual(nothing);
  writeFileSync(join(rig.top, '.worktreeinclude'), '.env\n');
  const included = value(await copyIncluded(rig.git, workspace, join(rig.top, 'app')));
  expect(included).toEqual({ copied: ['.env'], notes: [] });
});

test('no .worktreeinclude copies nothing, and a long list needs several commands', async () => {
  await begin({}, { '.env': 'A=1\n' });
  expect(value(await copy())).toEqual(nothing);
  const many = Array.from({ length: 450 }, (_, index) => `secret/${index % 3}/${index}.txt`);
  writeTree(rig.top, { ...Object.fromEntries(many.map((name) => [name, name])), '.worktreeinclude': 'secret/\n' });
  expect([...value(await copy()).copied].sort()).toEqual([...many].sort());
  expect(many.every((name) => read(name) === name)).toBe(true);
});

test('.worktreeinclude copies nothing from or to places outside the two folders', async () => {
  await begin(
    { 'build-link': { link: '../home' } },
    { '.worktreeinclude': '../\n../**\n/etc/passwd\n*.key\nbuild/\nsecret/\nbuild-link/\n' },
  );
  writeFileSync(join(rig.folder, 'outside.key'), 'outside\n');
  mkdirSync(join(rig.top, 'secret'));
  mkdirSync(join(rig.top, 'build'));
  symlinkSync(join(rig.folder, 'outside.key'), join(rig.top, 'link.key'));
  symlinkSync(rig.folder, join(rig.top, 'secret/folder'));
  Bun.spawnSync(['mkfifo', join(rig.top, 'secret/pipe.key')]);
  writeFileSync(join(rig.top, 'build/out.txt'), 'mine\n');
  // A folder that is a symlink in the worktree would lead the copy outside.
  symlinkSync(join(rig.folder, 'home'), join(workspace.path, 'build'));
  mkdirSync(join(rig.top, 'secret/nested'));
  git(join(rig.top, 'secret/nested'), 'init', '--quiet');
  writeFileSync(join(rig.top, 'secret/nested/a.txt'), 'a\n');
  const why = (reason: string, names: string) =>
    `Listed in .worktreeinclude but not copied, because ${reason}: ${names}.`;
  expect(value(await copy())).toEqual({
    copied: [],
    notes: [
      why('the worktree has a symlink or file where a folder is needed', 'build/out.txt'),
      why('symlinks are not followed', 'link.key, secret/folder'),
      why('nested repositories are not copied', 'secret/nested/'),
    ],
  });
  expect(existsSync(join(rig.folder, 'home/out.txt'))).toBe(false);
  expect(existsSync(join(workspace.path, 'secret'))).toBe(false);
});
