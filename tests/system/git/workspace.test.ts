/**
 * Promises: a worktree is created on a branch of its own, and nothing else in the repository or the checkout changes.
 * After a crash the next call continues. Concurrent calls do not interfere. Each refusal is one sentence and leaves
 * nothing behind.
 */

import { afterEach, beforeEach, expect, test } from 'bun:test';
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { adviceText } from '../../../src/core/advice.ts';
import { findRepository } from '../../../src/git/git.ts';
import { branchName, makeWorkspace } from '../../../src/git/worktrees/workspace.ts';
import { git, Repository } from '../../support/git/repository.ts';
import { failure, made, value, WorkspaceRig } from '../../support/git/workspace-rig.ts';
import { fc } from '../../support/property.ts';

let rig: WorkspaceRig;
beforeEach(() => {
  rig = new WorkspaceRig();
});
afterEach(() => rig.remove());

/** The commit that the user has checked out. */
function begin(): string {
  return rig.repository.commit({ 'a.txt': 'a\n', 'b.txt': 'b\n', 'sub/c.txt': 'c\n' });
}

test('a worktree gets its own branch, and the checkout is unchanged', async () => {
  const base = begin();
  const before = rig.checkout();
  const plan = rig.plan();
  const { workspace, notes, isNew } = value(await makeWorkspace(rig.git, plan));
  expect(workspace).toEqual({
    path: plan.path,
    folder: plan.path,
    repository: rig.gitDir,
    branch: 'cca/group/001-work',
    base,
    target: 'main',
  });
  expect({ notes, isNew }).toEqual({ notes: [], isNew: true });
  expect(git(plan.path, 'symbolic-ref', 'HEAD')).toBe('refs/heads/cca/group/001-work');
  expect(git(plan.path, 'status', '--porcelain')).toBe('');
  expect(readFileSync(join(plan.path, 'sub/c.txt'), 'utf8')).toBe('c\n');
  expect(rig.checkout()).toEqual(before);
  rig.fsck();
  expect(value(await makeWorkspace(rig.git, plan))).toEqual({ workspace, notes: [], isNew: false });
});

test('a project in a subfolder of the repository, and one that is itself a linked worktree', async () => {
  begin();
  const inFolder = value(await makeWorkspace(rig.git, rig.plan(1, { projectPath: join(rig.top, 'sub') })));
  expect(inFolder.workspace.folder).toBe(join(inFolder.workspace.path, 'sub'));
  const linked = join(rig.folder, 'linked');
  rig.run('worktree', 'add', '--quiet', '-b', 'feature', linked);
  writeFileSync(join(linked, 'new.txt'), 'new\n');
  git(linked, 'add', '--all');
  git(linked, 'commit', '--quiet', '-m', 'New');
  const before = [rig.checkout(), rig.checkout(linked)];
  const second = made(await makeWorkspace(rig.git, rig.plan(2, { projectPath: linked })));
  expect(second).toMatchObject({ base: git(linked, 'rev-parse', 'HEAD'), target: 'feature', repository: rig.gitDir });
  expect(existsSync(join(second.folder, 'new.txt'))).toBe(true);
  expect([rig.checkout(), rig.checkout(linked)]).toEqual(before);
  rig.fsck();
});

test('paths with newlines, quotes and spaces', async () => {
  rig.remove();
  rig = new WorkspaceRig(' two\nlines \'"$x`');
  begin();
  const before = rig.checkout();
  const plan = rig.plan(1);
  const odd = join(rig.folder, 'sessions', 'a\n"b" c');
  mkdirSync(odd);
  const moved = { ...plan, path: join(odd, 'worktree'), intentFile: join(odd, 'workspace.json') };
  const workspace = made(await makeWorkspace(rig.git, moved));
  expect(findRepository(rig.world.files, workspace.folder)).toEqual({ repository: rig.gitDir, top: moved.path });
  expect(value(await makeWorkspace(rig.git, moved)).isNew).toBe(false);
  expect(rig.checkout()).toEqual(before);
  rig.fsck();
});

test('uncommitted changes stay in the checkout and are reported', async () => {
  begin();
  writeFileSync(join(rig.top, 'a.txt'), 'changed\n');
  writeFileSync(join(rig.top, 'staged.txt'), 'staged\n');
  rig.run('add', 'staged.txt');
  writeFileSync(join(rig.top, 'odd\nname.txt'), 'new\n');
  mkdirSync(join(rig.top, 'docs/plans'), { recursive: true });
  writeFileSync(join(rig.top, 'docs/plans/.cpm-progress-1.md'), 'ours\n');
  const before = rig.checkout();
  const { workspace, notes } = value(await makeWorkspace(rig.git, rig.plan()));
  expect(notes).toHaveLength(1);
  expect(notes[0]).toContain('a.txt, staged.txt');
  expect(notes[0]).toContain('"odd\\nname.txt"');
  expect(readFileSync(join(workspace.path, 'a.txt'), 'utf8')).toBe('a\n');
  expect(rig.checkout()).toEqual(before);
  // Sessions that start from the same commit are not warned again.
  const second = value(await makeWorkspace(rig.git, rig.plan(2, { base: workspace.base })));
  expect(second.notes).toEqual([]);
});

test('a detached HEAD and a shallow clone are reported', async () => {
  begin();
  const last = rig.repository.commit({ 'a.txt': 'two\n' });
  const clone = join(rig.folder, 'clone');
  git(rig.folder, 'clone', '--quiet', '--depth=1', `file://${rig.top}`, clone);
  git(clone, 'checkout', '--quiet', '--detach');
  const plan = rig.plan(1, { projectPath: clone, repository: join(clone, '.git') });
  const { workspace, notes } = value(await makeWorkspace(rig.git, plan));
  expect(workspace.base).toBe(last);
  expect(workspace.target).toBeUndefined();
  expect(notes.map((note) => /--into BRANCH|shallow/.exec(note)?.[0])).toEqual(['--into BRANCH', 'shallow']);
});

test('submodules are reported', async () => {
  const other = new Repository(join(rig.folder, 'other'));
  other.commit({ 'x.txt': 'x\n' });
  begin();
  rig.run('-c', 'protocol.file.allow=always', 'submodule', '--quiet', 'add', other.folder, 'lib dir/x');
  rig.repository.commit({});
  const before = rig.checkout();
  const { notes } = value(await makeWorkspace(rig.git, rig.plan()));
  expect(notes).toEqual([expect.stringContaining('The submodule "lib dir/x" is empty in the worktree')]);
  expect(rig.checkout()).toEqual(before);
});

test('a dependent starts from the work of its dependency, or from several merged', async () => {
  const base = begin();
  const one = rig.sideCommit('one', base, { 'a.txt': 'one\n' });
  const two = rig.sideCommit('two', base, { 'b.txt': 'two\n' });
  const three = rig.sideCommit('three', base, { 'd.txt': 'three\n' });
  const before = rig.checkout();
  expect(made(await makeWorkspace(rig.git, rig.plan(1, { base, parents: [one] }))).base).toBe(one);
  const plan = rig.plan(2, { base, parents: [one, two, three] });
  const all = made(await makeWorkspace(rig.git, plan));
  expect(['a.txt', 'b.txt', 'd.txt'].map((name) => readFileSync(join(all.path, name), 'utf8'))).toEqual([
    'one\n',
    'two\n',
    'three\n',
  ]);
  expect(all.base).toBe(git(all.path, 'rev-parse', 'HEAD'));
  for (const parent of [one, two, three]) rig.run('merge-base', '--is-ancestor', parent, all.branch);
  expect(git(all.path, 'log', '-1', '--format=%an <%ae>')).toBe('Ada <ada@example.org>');
  expect(made(await makeWorkspace(rig.git, plan))).toEqual(all);
  expect(rig.checkout()).toEqual(before);
  rig.fsck();
});

test('conflicting work names its files and leaves nothing', async () => {
  const base = begin();
  const one = rig.sideCommit('one', base, { 'a.txt': 'one\n', 'odd\n"name".txt': '1\n' });
  const two = rig.sideCommit('two', base, { 'a.txt': 'two\n', 'odd\n"name".txt': '2\n' });
  const refs = rig.run('for-each-ref');
  const before = rig.checkout();
  const plan = rig.plan(1, { parents: [one, two] });
  const { reason, message } = failure(await makeWorkspace(rig.git, plan));
  expect(reason).toBe('merge-conflict');
  expect(message).toContain('a.txt');
  expect(message).toContain('"odd\\n\\"name\\".txt"');
  expect(existsSync(plan.path)).toBe(false);
  expect(existsSync(plan.intentFile)).toBe(false);
  expect(rig.worktrees()).toEqual([]);
  expect(rig.run('for-each-ref')).toBe(refs);
  expect(rig.checkout()).toEqual(before);
  rig.fsck();
});

test('branch names that are already taken', async () => {
  begin();
  rig.run('branch', 'cca/group/001-work');
  rig.run('branch', 'CCA/group/001-WORK-2');
  rig.run('branch', 'cca/group/001-work-3/below');
  expect(made(await makeWorkspace(rig.git, rig.plan(1))).branch).toBe('cca/group/001-work-2');
  expect(made(await makeWorkspace(rig.git, rig.plan(2, { branch: 'cca/group/001-work' }))).branch).toBe(
    'cca/group/001-work-4',
  );
  rig.run('branch', 'ccb');
  const plan = rig.plan(3, { branch: 'ccb/group/003' });
  const { reason, message, next } = failure(await makeWorkspace(rig.git, plan));
  expect(reason).toBe('worktree-failed');
  expect(`${message} ${adviceText(next)}`).toMatch(/'refs\/heads\/ccb' exists.*Rename that branch/);
  expect(existsSync(plan.intentFile)).toBe(false);
});

test('a lock of another git command is waited for, and named if it stays', async () => {
  begin();
  const plan = rig.plan();
  const lock = join(rig.gitDir, 'refs/heads/cca/group/001-work.lock');
  mkdirSync(join(lock, '..'), { recursive: true });
  writeFileSync(lock, '');
  let tries = 0;
  const patient = rig.gitOf({
    ...rig.world,
    clock: {
      ...rig.world.clock,
      after: (_ms, action) => {
        tries += 1;
        if (tries === 2) rmSync(lock);
        return rig.world.clock.after(0, action);
      },
    },
  });
  writeFileSync(rig.globalConfig, '');
  expect(made(await makeWorkspace(patient, plan)).branch).toBe('cca/group/001-work');
  expect(tries).toBe(2);
}, 60_000);

test('line endings and large files are checked out as the user configured', async () => {
  writeFileSync(rig.globalConfig, '[core]\n\tautocrlf = true\n[filter "big"]\n\tsmudge = sed s/pointer/content/\n');
  rig.repository.commit({ '.gitattributes': '*.bin filter=big\n', 'a.txt': 'a\n', 'x.bin': 'pointer\n' });
  const { path } = made(await makeWorkspace(rig.git, rig.plan()));
  expect(readFileSync(join(path, 'a.txt'), 'utf8')).toBe('a\r\n');
  expect(readFileSync(join(path, 'x.bin'), 'utf8')).toBe('content\r\n');
});

test('every session name gives a valid branch name', () => {
  begin();
  expect(branchName('auth', '002-0b9f', 'api')).toBe('cca/auth/002-api');
  expect(branchName('auth', '1234-0b9f', undefined)).toBe('cca/auth/1234');
  expect(branchName('auth', '002-0b9f', 'x.lock')).toBe('cca/auth/002-x');
  void fc.assert(
    fc.property(fc.string({ maxLength: 80, unit: 'binary' }), (name) => {
      const branch = branchName('auth', '002-0b9f', name);
      expect(git(rig.top, 'check-ref-format', '--branch', branch)).toBe(branch);
    }),
    { numRuns: 60, examples: [['a..b'], ['-x'], ['.lock'], ['a.lock.lock'], ['@{'], ['a/../b'], ['...'], ['é']] },
  );
});

test('a worktree of a sparse checkout is sparse', async () => {
  rig.repository.commit({ 'in/a.txt': 'a', 'out/b.txt': 'b', 'top.txt': 't' });
  rig.run('sparse-checkout', 'set', '--cone', 'in');
  const before = rig.checkout();
  const { path } = made(await makeWorkspace(rig.git, rig.plan()));
  expect([existsSync(join(path, 'in/a.txt')), existsSync(join(path, 'out'))]).toEqual([true, false]);
  expect(rig.checkout()).toEqual(before);
});
