/**
 * Promises: merging a session's branch leaves files under `apart` as they are, even if the session merged changes of
 * others. What the session committed of them stays in its history and worktree.
 */
import { afterEach, beforeEach, expect, test } from 'bun:test';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Workspace } from '../../../src/core/group.ts';
import { commitWork } from '../../../src/git/commit.ts';
import { makeWorkspace } from '../../../src/git/worktrees/workspace.ts';
import { type FileTree, git, writeTree } from '../../support/git/repository.ts';
import { made, value, WorkspaceRig } from '../../support/git/workspace-rig.ts';

const state = '02-projects/x/01-planning/resume-context.md';
const apart = [state, ':(top)/resume-context.md'];
let rig: WorkspaceRig;
let workspace: Workspace;
beforeEach(async () => {
  rig = new WorkspaceRig();
  rig.repository.commit({ [state]: 'as it was\n', 'a.txt': 'a\n' });
  workspace = made(await makeWorkspace(rig.git, rig.plan()));
});
afterEach(() => {
  rig.fsck();
  rig.remove();
});

const run = (...args: string[]): string => git(workspace.path, ...args);
const commit = async () => value(await commitWork(rig.git, workspace, 'Work', { apart }));
const own = (tree: FileTree): void => {
  writeTree(workspace.path, tree);
  run('add', '--all');
  run('commit', '--quiet', '-m', 'Mine');
};
const changes = () => rig.run('diff', '--name-only', `main...${workspace.branch}`);
const inBranch = () => rig.run('show', `${workspace.branch}:${state}`);

test('changed, deleted and new files that are kept apart are not part of the merged branch', async () => {
  own({ [state]: 'of the session\n', ':(top)/resume-context.md': 'new\n', 'a.txt': 'changed\n' });
  expect((await commit()).committed).toBe(true);
  expect(changes()).toBe('a.txt');
  expect(rig.run('show', `${workspace.branch}^:${state}`)).toBe('of the session');
  expect(readFileSync(join(workspace.path, state), 'utf8')).toBe('of the session\n');
  expect((await commit()).committed).toBe(false);
  own({ [state]: null });
  await commit();
  expect(changes()).toBe('a.txt');
});

test.each([true, false])(
  'a merge brings changes of other people to files that are kept apart; committed: %p',
  async (isCommitted) => {
    own({ 'a.txt': 'of the session\n' });
    rig.repository.commit({ [state]: 'of a person\n', 'a.txt': 'of a person\n' });
    expect(() => run('merge', '--quiet', '--no-edit', 'main')).toThrow();
    writeTree(workspace.path, { 'a.txt': 'of both\n' });
    run('add', 'a.txt');
    if (isCommitted) {
      run('commit', '--quiet', '--no-edit');
      own({ [state]: 'of the session\n' });
    }
    await commit();
    expect(inBranch()).toBe('of a person');
    expect(changes()).toBe('a.txt');
    rig.run('merge', '--quiet', '--no-edit', workspace.branch);
    expect(readFileSync(join(rig.top, state), 'utf8')).toBe('of a person\n');
  },
);

test('a branch without a target is compared with its base', async () => {
  const { target: _, ...rest } = workspace;
  workspace = rest;
  own({ [state]: 'of the session\n' });
  await commit();
  expect(inBranch()).toBe('as it was');
});
