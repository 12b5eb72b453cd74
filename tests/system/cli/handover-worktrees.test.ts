/**
 * Promises: the resume file that sessions and their hooks change in the user's checkout is in the way of no merge that
 * leaves it alone, and stays as it is; and before a worktree goes, what its session wrote for the next one is in the
 * project, or the worktree stays.
 */
import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { readResumeFile } from '../../../src/context/handover/resume-file.ts';
import { sessionPaths } from '../../../src/store/paths.ts';
import { type MergeGroup, MergeUser } from '../../support/cli/merge-ground.ts';
import { git } from '../../support/git/repository.ts';

const resume = '02-projects/28-b/01-planning/resume-context.md';
const text = (next: string) => `---\nsession_ids: []\n\nnext_action: "${next}"\n---\n\nNotes.\n`;

let user: MergeUser;
beforeEach(() => {
  user = new MergeUser();
  user.repository('app').commit({ [resume]: text('plan') });
});
afterEach(() => {
  user.expectSound('app');
  user.remove();
});

const folder = () => user.folderOf('app');
const own = () => readFileSync(join(folder(), resume), 'utf8');
const change = (path = resume, content = text('changed')) => writeFileSync(join(folder(), path), content);
const status = () => git(folder(), 'status', '--porcelain');
const copy = (group: MergeGroup, name: string, content: string, path = resume) => {
  mkdirSync(dirname(join(group.path(name), path)), { recursive: true });
  writeFileSync(join(group.path(name), path), content);
};

describe('merging into a checkout whose resume file is changed', () => {
  const sketch = { name: 'a', repository: 'app', tree: { 'a.txt': 'a\n' } } as const;
  const merge = (group: MergeGroup, ...more: string[]) => user.run('group', 'merge', group.id, ...more);

  test.each([false, true])('it stays as it is; staged: %p', async (isStaged) => {
    const group = user.mergeGroup('shop', [sketch]);
    change();
    if (isStaged) git(folder(), 'add', '--all');
    const before = status();
    expect(await merge(group, '--dry-run')).toMatchObject({ code: 0 });
    expect(await merge(group)).toMatchObject({ code: 0 });
    expect(own()).toBe(text('changed'));
    expect(status()).toBe(before);
    expect(readFileSync(join(folder(), 'a.txt'), 'utf8')).toBe('a\n');
    expect(group.worktrees()).toEqual([]);
  });

  test('another changed file is in the way as ever, and only that one is named', async () => {
    const group = user.mergeGroup('shop', [sketch]);
    change();
    change('shared.txt');
    const { code, stderr } = await merge(group);
    expect(code).not.toBe(0);
    expect(stderr).toContain('holds changes that are in no commit: "shared.txt".');
  });

  test('one that the work brings as well is never written over', async () => {
    const tree = { [resume]: text('of the branch') };
    const group = user.mergeGroup('shop', [sketch, { name: 'b', repository: 'app', after: ['a'], tree }]);
    change();
    for (const more of [['--dry-run'], []]) {
      const { code, stderr } = await merge(group, ...more);
      expect(code).not.toBe(0);
      expect(stderr).toContain(`holds changes that are in no commit: "${resume}".`);
      expect(own()).toBe(text('changed'));
    }
  });

  test('one that is deleted, or in a conflict, is the user’s matter', async () => {
    const group = user.mergeGroup('shop', [sketch]);
    renameSync(join(folder(), resume), join(folder(), 'moved.md'));
    expect((await merge(group)).stderr).toContain('holds changes that are in no commit');
  });
});

describe('before a worktree goes', () => {
  const sketches = [{ name: 'a', repository: 'app', status: 'failed' }] as const;
  const failed = () => user.mergeGroup('shop', sketches, 'failed');
  const remove = (group: MergeGroup) => user.run('group', 'delete', group.id, '--force');

  test('what a failed session wrote reaches the project', async () => {
    const group = failed();
    copy(group, 'a', text('half way'));
    expect(await remove(group)).toMatchObject({ code: 0 });
    expect(readResumeFile(own()).nextAction).toBe('half way');
    expect(existsSync(group.paths.folder)).toBe(false);
  });

  test('beside what a person wrote there', async () => {
    const group = failed();
    change(resume, text('of a person'));
    copy(group, 'a', text('half way'));
    expect(await remove(group)).toMatchObject({ code: 0 });
    expect(own()).toStartWith(text('of a person'));
    expect(own()).toContain('    next_action: "half way"\n');
  });

  test('a project that was only begun there is work like any other', async () => {
    const group = failed();
    const path = '02-projects/29-c/01-planning/resume-context.md';
    copy(group, 'a', text('begin'), path);
    const refused = await user.run('group', 'archive', group.id);
    expect(refused.code).not.toBe(0);
    expect(refused.stderr).toContain(path);
    const removed = await remove(group);
    expect(removed).toMatchObject({ code: 0 });
    expect(removed.stdout + removed.stderr).toContain(`Committed on ${group.branch('a')}`);
    expect(git(folder(), 'show', `${group.branch('a')}:${path}`)).toBe(text('begin').trim());
  });

  /** As when the session was begun with what the checkout held. */
  const begin = (group: MergeGroup, content: string) => {
    copy(group, 'a', content);
    const files = { [resume]: Buffer.from(content).toString('base64') };
    writeFileSync(sessionPaths(group.paths, group.session('a')).handoverCopies, JSON.stringify({ version: 1, files }));
  };
  const leaveBranch = () => {
    git(folder(), 'checkout', '--quiet', '-b', 'other');
    git(folder(), 'rm', '-r', '--quiet', '02-projects');
    git(folder(), 'commit', '--quiet', '-m', 'Without the project');
  };

  test('a copy of a project that is on another branch is no work, and in the way of nothing', async () => {
    const group = failed();
    begin(group, text('of a person'));
    leaveBranch();
    expect(await user.run('group', 'archive', group.id)).toMatchObject({ code: 0 });
    expect(existsSync(group.path('a'))).toBe(false);
  });

  test('what the session wrote of it is not lost', async () => {
    const group = failed();
    begin(group, text('of a person'));
    copy(group, 'a', text('half way'));
    leaveBranch();
    const refused = await user.run('group', 'archive', group.id);
    expect(refused.code).not.toBe(0);
    expect(refused.stderr).toContain(resume);
    expect(await remove(group)).toMatchObject({ code: 0 });
    expect(git(folder(), 'show', `${group.branch('a')}:${resume}`)).toBe(text('half way').trim());
  });

  test('what the project cannot take keeps the worktree', async () => {
    const group = failed();
    copy(group, 'a', text('half way'));
    change(resume, 'x'.repeat(1024 * 1024 + 1));
    const refused = await remove(group);
    expect(refused.code).not.toBe(0);
    expect(refused.stderr).toContain('What the session wrote for the next one cannot be kept');
    expect(readFileSync(join(group.path('a'), resume), 'utf8')).toBe(text('half way'));
    change(resume, text('plan'));
    expect(await remove(group)).toMatchObject({ code: 0 });
    expect(readResumeFile(own()).nextAction).toBe('half way');
  });

  test('with the work that is thrown away goes what was written of it', async () => {
    const group = failed();
    copy(group, 'a', text('half way'));
    expect(await user.run('group', 'archive', group.id, '--force')).toMatchObject({ code: 0 });
    expect(own()).toBe(text('plan'));
  });
});
