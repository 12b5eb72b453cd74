/**
 * Promises: numbers and text of a diff are those of git, whatever the user's git configuration. A diff with a
 * worktree shows new files, leaves out the program's own files, and changes nothing in the worktree.
 */
import { afterEach, beforeEach, expect, test } from 'bun:test';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Workspace } from '../../../src/core/group.ts';
import { diffStat, diffText } from '../../../src/git/diff.ts';
import { makeWorkspace } from '../../../src/git/worktrees/workspace.ts';
import { git, writeTree } from '../../support/git/repository.ts';
import { failure, made, value, WorkspaceRig } from '../../support/git/workspace-rig.ts';

let rig: WorkspaceRig;
let workspace: Workspace;
beforeEach(async () => {
  rig = new WorkspaceRig();
  rig.repository.commit({ 'a.txt': 'a\nb\n', 'gone.txt': 'gone\n', 'old name.txt': 'one\ntwo\nthree\n' });
  workspace = made(await makeWorkspace(rig.git, rig.plan()));
});
afterEach(() => rig.remove());

const run = (...args: string[]): string => git(workspace.path, ...args);

test('a diff between two commits works even if only the objects exist', async () => {
  writeTree(workspace.path, { 'a.txt': 'a\nc\nd\n', 'gone.txt': null, 'x.bin': new Uint8Array([0, 1]) });
  run('mv', 'old name.txt', 'new name.txt');
  run('add', '--all');
  run('commit', '--quiet', '-m', 'Work');
  const to = run('rev-parse', 'HEAD');
  const stat = { files: 4, insertions: 2, deletions: 2 };
  expect(value(await diffStat(rig.git, workspace.path, { from: workspace.base, to: to }))).toEqual(stat);
  expect(value(await diffStat(rig.git, workspace.path, { from: to, to }))).toEqual({
    files: 0,
    insertions: 0,
    deletions: 0,
  });
  rig.run('worktree', 'remove', workspace.path);
  rig.run('branch', '-D', workspace.branch);
  expect(value(await diffStat(rig.git, rig.gitDir, { from: workspace.base, to: to }))).toEqual(stat);
  const text = value(await diffText(rig.git, rig.gitDir, { from: workspace.base, to }));
  expect(text).toMatch(/^diff --git a\/a\.txt b\/a\.txt$/m);
  expect(text).toMatch(/^rename from old name\.txt$/m);
  const lines = value(await diffText(rig.git, rig.gitDir, { from: workspace.base, to, stat: 80 }))
    .trim()
    .split('\n');
  expect(lines.at(-1)).toBe(' 4 files changed, 2 insertions(+), 2 deletions(-)');
  expect(failure(await diffStat(rig.git, rig.gitDir, { from: workspace.base, to: '12'.repeat(20) })).reason).toBe(
    'worktree-failed',
  );
});

test('a diff includes the uncommitted files of a running session’s worktree', async () => {
  writeTree(workspace.path, {
    'a.txt': 'a\nb\nstaged\n',
    'staged.txt': 'staged\n',
    'odd\nname.txt': 'new\n',
    'docs/plans/.cpm-progress-1.md': 'ours\n',
  });
  run('add', 'a.txt', 'staged.txt');
  writeFileSync(join(workspace.path, 'gone.txt'), 'back\n');
  git(workspace.path, 'init', '--quiet', 'within');
  writeFileSync(join(workspace.path, 'within/x.txt'), 'x\n');
  const gitDir = run('rev-parse', '--absolute-git-dir');
  const state = () => [run('status', '--porcelain', '-uall'), readFileSync(join(gitDir, 'index')), readdirSync(gitDir)];
  const before = state();
  const text = value(await diffText(rig.git, workspace.path, { from: workspace.base }));
  const files = [...text.matchAll(/^\+\+\+ (.*)$/gm)].map((match) => match[1]);
  expect(files).toEqual(['b/a.txt', 'b/gone.txt', '"b/odd\\nname.txt"', 'b/staged.txt']);
  expect(value(await diffStat(rig.git, workspace.path, { from: workspace.base }))).toEqual({
    files: 4,
    insertions: 4,
    deletions: 1,
  });
  expect(state()).toEqual(before);
});

test('a failed diff names the git command that failed', async () => {
  const refused = failure(await diffText(rig.git, workspace.path, { from: 'f'.repeat(40), to: workspace.base }));
  expect(refused.message).toStartWith('git diff refused: ');
});
