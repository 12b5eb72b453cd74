/**
 * Promises of every command that removes worktrees: work that is on no branch is named before it is deleted, or the
 * worktree stays. Files made by set-up or recreated by tools do not count.
 */
import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import { existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { type MergeGroup, MergeUser, type WorkSketch } from '../../support/cli/merge-ground.ts';
import { git, Repository, writeTree } from '../../support/git/repository.ts';

const shop = 'shop';

let user: MergeUser;
beforeEach(() => {
  user = new MergeUser();
});
afterEach(() => {
  user.expectSound(shop);
  user.remove();
});

const sketch: WorkSketch = { name: 'a', repository: shop, tree: { 'a.txt': 'a\n' } };
const merge = (group: MergeGroup, ...more: string[]) => user.run('group', 'merge', group.id, ...more);

describe('ignored files written by a session', () => {
  let group: MergeGroup;
  beforeEach(() => {
    user.repository(shop).commit({ '.gitignore': 'out/\nnode_modules/\ntarget/\n*.log\n' });
    group = user.mergeGroup('pdf', [sketch]);
    writeTree(group.path('a'), {
      'out/report.pdf': 'pdf\n',
      'out/made-by-setup.txt': 'setup\n',
      'packages/x/node_modules/left-pad/index.js': '1',
      'target/CACHEDIR.TAG': 'Signature: 8a477f597d28d172789f06886806bc55',
      'target/debug/x.o': '1',
    });
    const folder = join(group.paths.sessions, group.session('a'));
    writeTree(folder, { 'ignored-before.txt': 'out/made-by-setup.txt\0.env' });
  });
  const named = 'The worktree of 001 a contains files that git ignores: out/report.pdf.';

  test('group merge --dry-run names them and how to keep them', async () => {
    const { code, stdout } = await merge(group, '--dry-run');
    expect(code).toBe(0);
    expect(stdout).toContain(`${named} --keep-ignored keeps it.`);
  });

  test('group merge --keep-ignored keeps the worktree until a merge without it', async () => {
    const kept = await merge(group, '--keep-ignored');
    expect(kept.code).toBe(0);
    expect(kept.stdout).toContain('Kept the worktree of 001 a: It contains files that git ignores: out/report.pdf.');
    expect(readFileSync(join(group.path('a'), 'out/report.pdf'), 'utf8')).toBe('pdf\n');
    const { code, stderr } = await merge(group);
    expect(code).toBe(0);
    expect(stderr).toContain(`${named} They are removed with it.`);
    expect(group.worktrees()).toEqual([]);
  }, 20_000);

  test('group archive and group delete name them', async () => {
    const other = user.mergeGroup('other', [{ ...sketch, name: 'b' }]);
    writeTree(other.path('b'), { 'run.log': 'log\n' });
    const deleted = await user.run('group', 'delete', other.id, '--yes');
    expect(deleted.code).toBe(0);
    expect(deleted.stderr).toContain(
      'The worktree of 001 b contains files that git ignores: run.log. They are removed',
    );
    git(user.folderOf(shop), 'merge', '--quiet', '--no-edit', group.branch('a'));
    const archived = await user.run('group', 'archive', group.id);
    expect(archived.code).toBe(0);
    expect(archived.stderr).toContain(`${named} They are removed with it.`);
    expect(group.worktrees()).toEqual([]);
  }, 20_000);
});

describe('commits on no ref', () => {
  test('commits on a detached HEAD keep the worktree or get a branch', async () => {
    const group = user.mergeGroup('aside', [sketch]);
    const path = group.path('a');
    git(path, 'checkout', '--quiet', '--detach');
    writeTree(path, { 'idea.txt': 'idea\n' });
    git(path, 'add', '--all');
    git(path, 'commit', '--quiet', '-m', 'An idea');
    const idea = git(path, 'rev-parse', 'HEAD');
    git(path, 'checkout', '--quiet', group.branch('a'));
    const { code, stdout } = await merge(group);
    expect(code).toBe(0);
    const why = `1 commit is only in it, on no branch: ${idea.slice(0, 12)}.`;
    expect(stdout).toContain(`Kept the worktree of 001 a: ${why}`);
    expect(await user.run('group', 'delete', group.id, '--yes')).toMatchObject({
      code: 1,
      stderr: expect.stringContaining(why),
    });
    const deleted = await user.run('group', 'delete', group.id, '--force');
    expect(deleted.code).toBe(0);
    const branch = `${group.branch('a')}-${idea.slice(0, 12)}`;
    expect(deleted.stderr).toContain(`Kept on ${branch}`);
    expect(git(user.folderOf(shop), 'show', `${branch}:idea.txt`)).toBe('idea');
  }, 20_000);
});

describe('submodules in the worktree', () => {
  const library = () => join(user.folder, 'code', 'library');
  const file = ['-c', 'protocol.file.allow=always'];
  beforeEach(() => {
    new Repository(library()).commit({ 'lib.txt': 'lib\n' });
    const folder = user.folderOf(shop);
    git(folder, ...file, 'submodule', '--quiet', 'add', library(), 'vendor/library');
    git(folder, 'commit', '--quiet', '-m', 'Use the library');
  });

  test('are removed with it when all their commits are pushed, otherwise it stays', async () => {
    const group = user.mergeGroup('modules', [sketch, { ...sketch, name: 'b', tree: { 'b.txt': 'b\n' } }]);
    // The first one's submodule is shallow and no longer knows a branch of its server.
    git(group.path('a'), ...file, 'submodule', '--quiet', 'update', '--init', '--depth', '1');
    git(join(group.path('a'), 'vendor/library'), 'remote', 'remove', 'origin');
    git(group.path('b'), ...file, 'submodule', '--quiet', 'update', '--init');
    const inside = join(group.path('b'), 'vendor/library');
    git(inside, 'checkout', '--quiet', '-b', 'mine');
    git(inside, 'commit', '--quiet', '--allow-empty', '-m', 'Mine');
    git(inside, 'checkout', '--quiet', '--detach', 'HEAD^');
    const { code, stdout } = await merge(group);
    expect(code).toBe(0);
    expect(stdout).toContain('Kept the worktree of 002 b: It holds submodules with commits that were not pushed');
    expect(group.worktrees()).toEqual(['b']);
    git(inside, 'branch', '--quiet', '-D', 'mine');
    expect(await merge(group)).toMatchObject({ code: 0 });
    expect(group.worktrees()).toEqual([]);
  }, 20_000);
});

test('group delete: of a group folder that is a symlink only the symlink is removed', async () => {
  const group = user.mergeGroup('here', [sketch]);
  const target = join(user.folder, 'somewhere else');
  mkdirSync(target);
  writeTree(target, { 'mine.txt': 'mine\n' });
  const id = '20260104-143023-linked';
  const link = join(user.data, 'session-groups', id);
  symlinkSync(target, link);
  const { code, stderr } = await user.run('group', 'delete', id, '--yes');
  expect({ code, stderr }).toMatchObject({ code: 0, stderr: expect.stringContaining('Removed only the symlink') });
  expect(readdirSync(target)).toEqual(['mine.txt']);
  expect([existsSync(link), existsSync(group.paths.folder)]).toEqual([false, true]);
});
