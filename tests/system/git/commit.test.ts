/**
 * Promises: whatever a session did with git in its worktree, its work ends on its branch, or stays where it is, and a
 * note says so. The session's commits are kept, our own files are never committed, and the user's checkout and other
 * branches are unchanged.
 */
import { afterEach, beforeEach, expect, test } from 'bun:test';
import { existsSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Workspace } from '../../../src/core/group.ts';
import { commitWork } from '../../../src/git/commit.ts';
import { makeWorkspace } from '../../../src/git/worktrees/workspace.ts';
import { type FileTree, git, Repository, writeTree } from '../../support/git/repository.ts';
import { failure, made, value, WorkspaceRig } from '../../support/git/workspace-rig.ts';

let rig: WorkspaceRig;
let workspace: Workspace;
let before: unknown;
beforeEach(async () => {
  rig = new WorkspaceRig();
  rig.repository.commit({ '.gitignore': '*.log\n', 'a.txt': 'a\n', 'b.txt': 'b\n' });
  workspace = made(await makeWorkspace(rig.git, rig.plan()));
  before = rig.checkout();
});
afterEach(() => {
  expect(rig.checkout()).toEqual(before);
  rig.fsck();
  rig.remove();
});

const message = 'api: Add a login\n\n# no comment\nSecond line\n';
const commit = (options = {}) => commitWork(rig.git, workspace, message, options);
/** Runs in the worktree, as the session does. */
const run = (...args: string[]): string => git(workspace.path, ...args);
const write = (tree: FileTree): void => writeTree(workspace.path, tree);
const tip = (): string => rig.run('rev-parse', workspace.branch);
const status = (): string => run('status', '--porcelain', '--untracked-files=all');
/** Names of the files in the branch's last commit. */
const names = (): string[] => run('ls-tree', '-r', '-z', '--name-only', workspace.branch).split('\0').slice(0, -1);
const commitOnBranch = (text: string, tree: FileTree): string => {
  write(tree);
  run('add', '--all');
  run('commit', '--quiet', '-m', text);
  return run('rev-parse', 'HEAD');
};
const isHome = (): void => expect(run('symbolic-ref', 'HEAD')).toBe(`refs/heads/${workspace.branch}`);

test('changed, new, removed, staged and partly staged files are committed, whatever their names', async () => {
  write({ 'a.txt': 'changed\n', 'b.txt': null, 'odd\n"name"\t.txt': '1', '- x': '2', ':(top)': '3', 'é/*.txt': '4' });
  write({ 'staged.txt': 'staged\n' });
  run('add', 'staged.txt');
  write({ 'staged.txt': 'and changed\n', 'ignored.log': 'noise\n' });
  const done = value(await commit());
  expect(done).toMatchObject({ commit: tip(), committed: true, notes: [] });
  expect(status()).toBe('');
  expect(names()).toEqual(['- x', '.gitignore', ':(top)', 'a.txt', 'odd\n"name"\t.txt', 'staged.txt', 'é/*.txt']);
  expect(run('show', 'HEAD:staged.txt')).toBe('and changed');
  expect(run('log', '-1', '--format=%an <%ae>%n%B')).toBe(`Ada <ada@example.org>\n${message.trim()}`);
  expect(run('rev-parse', 'HEAD^')).toBe(workspace.base);
  expect(existsSync(join(workspace.path, 'ignored.log'))).toBe(true);
  expect(value(await commit())).toMatchObject({ commit: done.commit, committed: false, notes: [] });
});

test("the session's commits are kept, and uncommitted changes follow in a new commit", async () => {
  const own = commitOnBranch('Mine', { 'a.txt': 'mine\n' });
  expect(value(await commit())).toMatchObject({ commit: own, committed: false, notes: [] });
  write({ 'c.txt': 'rest\n' });
  value(await commit());
  expect(run('rev-parse', 'HEAD^')).toBe(own);
});

test('works without an identity, with required signatures, and with hooks that refuse', async () => {
  const config =
    '[commit]\n\tgpgSign = true\n\tcleanup = strip\n[gpg]\n\tprogram = false\n[user]\n\tuseConfigOnly = true\n';
  writeFileSync(rig.globalConfig, config);
  const hooks = join(rig.folder, 'hooks');
  mkdirSync(hooks);
  for (const hook of ['pre-commit', 'commit-msg'])
    writeFileSync(join(hooks, hook), '#!/bin/sh\nexit 1\n', { mode: 0o755 });
  writeFileSync(rig.globalConfig, `${config}[core]\n\thooksPath = ${JSON.stringify(hooks)}\n`);
  write({ 'c.txt': 'c\n' });
  value(await commit());
  const who = 'claude-code-agent <claude-code-agent@localhost>';
  expect(run('log', '-1', '--format=%an <%ae>%n%cn <%ce>%n%B')).toBe(`${who}\n${who}\n${message.trim()}`);
  writeFileSync(rig.globalConfig, '[user]\n\temail = only@example.org\n');
  write({ 'c.txt': 'd\n' });
  value(await commit());
  expect(run('log', '-1', '--format=%an <%ae>')).toBe('claude-code-agent <only@example.org>');
});

test('messages that git could misread are kept', async () => {
  for (const text of ['', '  \n', '# only a comment', '--amend', 'x'.repeat(200_000), 'a\0b']) {
    write({ 'c.txt': `${text.length}` });
    expect(value(await commitWork(rig.git, workspace, text)).committed).toBe(true);
  }
  expect(run('rev-list', '--count', `${workspace.base}..HEAD`)).toBe('6');
});

const ours = [
  'docs/plans/.cpm-progress-0b9f.md',
  'app/docs/plans/.cpm-progress.md',
  'docs/plans/..cpm-progress-0b9f.md.lock',
  'docs/plans/.cpm-compact-summary-0b9f.md',
  'app/docs/plans/.cpm-cleancheck-0b9f',
  '.fractary/runs/x/state.json',
  'app/.fractary/faber/.active-run-id',
  '.fractary/faber/worktrees.json',
  '.fractary/faber/.worktrees.json.lock',
  '02-projects/x/01-planning/resume-context.md',
];

test('a change of our own files only makes no commit', async () => {
  write(Object.fromEntries(ours.map((name) => [name, 'ours\n'])));
  run('add', '--all');
  expect(value(await commit())).toMatchObject({ commit: workspace.base, committed: false, notes: [] });
  expect(run('diff', '--cached', '--name-only')).toBe('');
  for (const name of ours) expect(readFileSync(join(workspace.path, name), 'utf8')).toBe('ours\n');
});

test("our own files are left out beside work and inside the session's commits", async () => {
  write(Object.fromEntries(ours.map((name) => [name, 'ours\n'])));
  const own = commitOnBranch('All of it', { 'c.txt': 'c\n' });
  write({ 'd.txt': 'd\n', '.fractary/faber/config.json': '{}\n', 'docs/plans/plan.md': '# Plan\n' });
  expect(value(await commit()).committed).toBe(true);
  const kept = ['.fractary/faber/config.json', '.gitignore', '02-projects/x/01-planning/resume-context.md'];
  expect(names()).toEqual([...kept, 'a.txt', 'b.txt', 'c.txt', 'd.txt', 'docs/plans/plan.md']);
  expect(run('rev-parse', 'HEAD^')).toBe(own);
  for (const name of ours) expect(existsSync(join(workspace.path, name))).toBe(true);
});

test('a nested repository is reported and not committed', async () => {
  for (const name of ['with one', 'without']) git(workspace.path, 'init', '--quiet', name);
  write({ 'with one/x.txt': 'x\n', 'without/y.txt': 'y\n', 'c.txt': 'c\n' });
  git(join(workspace.path, 'with one'), 'add', '--all');
  git(join(workspace.path, 'with one'), 'commit', '--quiet', '-m', 'Within');
  const { notes, committed } = value(await commit());
  expect(committed).toBe(true);
  expect(notes).toEqual([expect.stringContaining('"with one", without')]);
  expect(names()).toEqual(['.gitignore', 'a.txt', 'b.txt', 'c.txt']);
  run('add', 'with one');
  run('commit', '--quiet', '-m', 'As a link');
  expect(value(await commit()).notes.at(-1)).toMatch(/refers to commits of nested repositories \("with one"\)/);
});

test('work on another branch that started from ours is moved onto ours', async () => {
  commitOnBranch('First', { 'c.txt': 'c\n' });
  run('checkout', '--quiet', '-b', 'feature/login');
  const own = commitOnBranch('Document fast-forward (start)', { 'd.txt': 'd\n' });
  write({ 'e.txt': 'e\n' });
  const done = value(await commit());
  isHome();
  expect(done.notes).toEqual([expect.stringContaining('branch feature/login')]);
  expect(run('rev-parse', `${done.commit}^`)).toBe(own);
  expect(rig.run('rev-parse', 'feature/login')).toBe(own);
  expect(status()).toBe('');
});

test('another branch without a commit, and a detached HEAD with commits', async () => {
  run('checkout', '--quiet', '-b', 'feature');
  write({ 'c.txt': 'c\n' });
  expect(value(await commit()).notes).toEqual([]);
  isHome();
  run('checkout', '--quiet', '--detach');
  const own = commitOnBranch('Detached', { 'd.txt': 'd\n' });
  expect(value(await commit())).toMatchObject({ commit: own, committed: false, notes: [] });
  isHome();
});

test("the session's branch and another branch of the session both advanced", async () => {
  const own = commitOnBranch('On the branch', { 'c.txt': 'c\n' });
  run('checkout', '--quiet', '--detach', workspace.base);
  const aside = commitOnBranch('Aside', { 'd.txt': 'd\n' });
  const first = failure(await commit());
  expect(first.reason).toBe('merge-conflict');
  expect([tip(), run('rev-parse', 'HEAD')]).toEqual([own, aside]);
  // Do what the message advises.
  run('checkout', '--quiet', workspace.branch);
  run('merge', '--quiet', aside);
  expect(value(await commit()).committed).toBe(false);
  expect(names()).toContain('d.txt');
});

test('another person’s branch is not changed', async () => {
  const develop = join(rig.folder, 'develop');
  rig.run('worktree', 'add', '--quiet', '-b', 'develop', develop);
  writeTree(develop, { 'theirs.txt': 'theirs\n' });
  git(develop, 'add', '--all');
  git(develop, 'commit', '--quiet', '-m', 'Theirs');
  rig.run('worktree', 'remove', develop);
  // Checked out only.
  run('checkout', '--quiet', 'develop');
  expect(value(await commit())).toMatchObject({ commit: workspace.base, committed: false, notes: [] });
  isHome();
  // Changes that git can carry over.
  run('checkout', '--quiet', 'develop');
  write({ 'c.txt': 'c\n' });
  expect(value(await commit())).toMatchObject({ committed: true, notes: [] });
  expect(names()).toEqual(['.gitignore', 'a.txt', 'b.txt', 'c.txt']);
  // Checked out, then continued from our branch under another name.
  run('checkout', '--quiet', 'develop');
  run('checkout', '--quiet', '-b', 'again', workspace.branch);
  const own = commitOnBranch('Own', { 'd.txt': 'd\n' });
  expect(value(await commit()).commit).toBe(own);
  // With commits and uncommitted changes.
  run('checkout', '--quiet', 'develop');
  const theirs = commitOnBranch('Ours on theirs', { 'e.txt': 'e\n' });
  write({ 'theirs.txt': 'changed\n' });
  const { commit: last, committed, notes } = value(await commit());
  expect({ last, committed }).toEqual({ last: own, committed: false });
  expect(notes).toEqual([
    expect.stringMatching(/for the branch develop\. .*2 commits and uncommitted changes \(theirs\.txt\)/),
  ]);
  expect([run('symbolic-ref', 'HEAD'), run('rev-parse', 'HEAD'), status()]).toEqual([
    'refs/heads/develop',
    theirs,
    'M theirs.txt',
  ]);
});

test('a branch that was renamed or deleted', async () => {
  const own = commitOnBranch('Own', { 'c.txt': 'c\n' });
  run('branch', '--move', 'better-name');
  write({ 'd.txt': 'd\n' });
  const renamed = value(await commit());
  isHome();
  expect(run('rev-parse', `${renamed.commit}^`)).toBe(own);
  expect(renamed.notes[0]).toContain('was missing');
  run('checkout', '--quiet', '--detach', workspace.base);
  run('branch', '-D', workspace.branch);
  const deleted = value(await commit());
  expect(deleted.commit).toBe(renamed.commit);
  isHome();
  expect(names()).toContain('d.txt');
  run('update-ref', '-d', `refs/heads/${workspace.branch}`);
  write({ 'e.txt': 'e\n' });
  const last = value(await commit());
  expect(run('rev-parse', `${last.commit}^`)).toBe(renamed.commit);
});

/** Creates a branch with another line in a.txt and merges it. */
function beginMerge(): void {
  run('checkout', '--quiet', '-b', 'other');
  commitOnBranch('Other', { 'a.txt': 'other\n', 'o.txt': 'o\n' });
  run('checkout', '--quiet', workspace.branch);
  commitOnBranch('Own', { 'a.txt': 'own\n' });
  expect(() => run('merge', '--quiet', 'other')).toThrow();
}

test('an unfinished merge', async () => {
  beginMerge();
  const own = tip();
  const { reason, message: said } = failure(await commit());
  expect({ reason, said }).toEqual({ reason: 'merge-conflict', said: expect.stringContaining(': a.txt.') });
  expect(tip()).toBe(own);
  // Resolved, but not yet added.
  write({ 'a.txt': 'both\n' });
  const done = value(await commit());
  expect(run('show', '-s', '--format=%P', done.commit).split(' ')).toHaveLength(2);
  expect(run('show', `${done.commit}:a.txt`)).toBe('both');
  expect(status()).toBe('');
});

test('an unfinished rebase', async () => {
  beginMerge();
  run('merge', '--abort');
  expect(() => run('rebase', '--quiet', 'other')).toThrow();
  const held = [tip(), status(), run('rev-parse', 'HEAD')];
  const { reason, message: said, next } = failure(await commit());
  expect({ reason, said }).toEqual({ reason: 'worktree-failed', said: expect.stringContaining('a rebase unfinished') });
  expect(next.sentence).toContain('git rebase --abort');
  expect([tip(), status(), run('rev-parse', 'HEAD')]).toEqual(held);
  expect(value(await commit({ leave: true })).notes).toEqual([expect.stringContaining('a rebase unfinished')]);
  write({ 'a.txt': 'both\n' });
  run('add', 'a.txt');
  run('-c', 'core.editor=true', 'rebase', '--continue');
  expect(value(await commit())).toMatchObject({ commit: run('rev-parse', 'HEAD'), committed: false });
});

test('with --no-commit uncommitted work stays', async () => {
  write({ 'a.txt': 'changed\n', 'c.txt': 'c\n' });
  run('add', 'c.txt');
  const held = status();
  expect(value(await commit({ leave: true }))).toMatchObject({ commit: workspace.base, committed: false, notes: [] });
  expect(status()).toBe(held);
});

test('in a folder that is no longer a worktree nothing is committed', async () => {
  write({ 'c.txt': 'c\n' });
  rmSync(join(workspace.path, '.git'));
  // A repository that contains the whole data folder, as some people have in their home folder.
  new Repository(rig.folder);
  expect(failure(await commit()).reason).toBe('worktree-failed');
  expect(() => git(rig.folder, 'rev-parse', 'HEAD')).toThrow();
  rmSync(join(rig.folder, '.git'), { recursive: true });
});

test('a worktree that was replaced by a symlink to the original is not committed', async () => {
  rmSync(workspace.path, { recursive: true });
  symlinkSync(rig.repository.folder, workspace.path);
  expect(failure(await commit()).reason).toBe('worktree-failed');
});
