/** Promises: a crash at any moment of moving work onto its branch loses nothing, and the next call finishes. */
import { afterEach, beforeEach, expect, test } from 'bun:test';
import { rmSync } from 'node:fs';
import type { Workspace } from '../../../src/core/group.ts';
import { commitWork } from '../../../src/git/commit.ts';
import { makeWorkspace } from '../../../src/git/worktrees/workspace.ts';
import { type FileTree, git, writeTree } from '../../support/git/repository.ts';
import { crashingWorld, made, SimulatedCrash, value, WorkspaceRig } from '../../support/git/workspace-rig.ts';
import { isLongRun } from '../../support/long.ts';

let rig: WorkspaceRig;
beforeEach(() => {
  rig = new WorkspaceRig();
  rig.repository.commit({ 'a.txt': 'a\n' });
});
afterEach(() => rig.remove());

/** Steps from one crash to the next; odd, so that crashes before and after a step alternate. */
const stride = isLongRun ? 1 : 9;

/** What a session did before its end; afterwards these files are in its branch's last commit, besides a.txt. */
const stories: Readonly<Record<string, { readonly act: (workspace: Workspace) => void; readonly files: string[] }>> = {
  'uncommitted files': { act: ({ path }) => writeTree(path, { 'b.txt': 'b\n' }), files: ['b.txt'] },
  'commits and files on another branch': {
    act: ({ path }) => {
      git(path, 'checkout', '--quiet', '-B', 'feature');
      commit(path, { 'b.txt': 'b\n' });
      writeTree(path, { 'c.txt': 'c\n', 'docs/plans/.cpm-progress-1.md': 'ours\n' });
    },
    files: ['b.txt', 'c.txt'],
  },
  'a branch that was deleted': {
    act: ({ path, branch, base }) => {
      commit(path, { 'b.txt': 'b\n' });
      git(path, 'checkout', '--quiet', '--detach', base);
      git(path, 'branch', '-D', branch);
      writeTree(path, { 'c.txt': 'c\n' });
    },
    files: ['b.txt', 'c.txt'],
  },
};

function commit(path: string, tree: FileTree): void {
  writeTree(path, tree);
  git(path, 'add', '--all');
  git(path, 'commit', '--quiet', '-m', 'Work');
}

for (const [title, { act, files }] of Object.entries(stories)) {
  test(`a crash at any step: ${title}`, async () => {
    let crashes = 0;
    for (let at = 1; ; at += stride) {
      const plan = rig.plan(1);
      const workspace = made(await makeWorkspace(rig.git, plan));
      act(workspace);
      const { world } = crashingWorld(rig.world, Math.ceil(at / 2), at % 2 === 0 ? 'after' : 'before');
      const crashed = await commitWork(rig.gitOf(world), workspace, 'Rest').then(
        (result) => value(result) === null,
        (error) => {
          if (error instanceof SimulatedCrash) return true;
          throw error;
        },
      );
      if (crashed) crashes += 1;
      const { commit: last } = value(await commitWork(rig.git, workspace, 'Rest'));
      const names = git(workspace.path, 'ls-tree', '-r', '--name-only', workspace.branch).split('\n');
      expect([at, names]).toEqual([at, ['a.txt', ...files]]);
      expect(rig.run('rev-parse', workspace.branch)).toBe(last);
      expect(git(workspace.path, 'symbolic-ref', 'HEAD')).toBe(`refs/heads/${workspace.branch}`);
      expect(git(workspace.path, 'status', '--porcelain', '--', ':!docs')).toBe('');
      rig.run('worktree', 'remove', '--force', workspace.path);
      rig.run('branch', '-D', workspace.branch);
      rmSync(plan.intentFile);
      if (!crashed) break;
    }
    expect(crashes).toBeGreaterThan(8 / stride);
    rig.fsck();
  }, 120_000);
}
