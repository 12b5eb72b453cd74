/**
 * Promises: a resume file changed by sessions and hooks in the user's checkout does not block a merge that leaves it
 * alone, and stays unchanged. Before a worktree is removed, its session's handover text is in the project, or the
 * worktree stays.
 */
import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { readResumeFile } from '../../../src/context/handover/resume-file.ts';
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

  test('a resume file that the work also changes is never overwritten', async () => {
    const tree = { [resume]: text('of the branch') };
    const group = user.mergeGroup('shop', [sketch, { name: 'b', repository: 'app', after: ['a'], tree }]);
    change();
    const { code, stdout, stderr } = await merge(group);
    expect(code).toBe(0);
    expect(stdout + stderr).toContain('were changed while it was updated. They are kept in a stash');
    expect(own()).toStartWith(text('changed'));
    expect(own()).toContain('next_action: "of the branch"');
    expect(git(folder(), 'show', `HEAD:${resume}`)).toContain('of the branch');
  });
});

describe('before a worktree is removed', () => {
  const sketches = [{ name: 'a', repository: 'app', status: 'failed' }] as const;
  const failed = () => user.mergeGroup('shop', sketches, 'failed');
  const remove = (group: MergeGroup) => user.run('group', 'delete', group.id, '--force');

  test("a failed session's text reaches the project", async () => {
    const group = failed();
    copy(group, 'a', text('half way'));
    expect(await remove(group)).toMatchObject({ code: 0 });
    expect(readResumeFile(own()).nextAction).toBe('half way');
    expect(existsSync(group.paths.folder)).toBe(false);
  });

  test("next to a person's own text", async () => {
    const group = failed();
    change(resume, text('of a person'));
    copy(group, 'a', text('half way'));
    expect(await remove(group)).toMatchObject({ code: 0 });
    expect(own()).toStartWith(text('of a person'));
    expect(own()).toContain('    next_action: "half way"\n');
  });
});
