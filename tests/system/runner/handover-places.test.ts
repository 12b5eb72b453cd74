/**
 * Promises: resume files go between a project and the worktrees of its sessions only where both are what they seem:
 * not for sessions without the system, not into submodules, not through links; and not as a session's work because a
 * project was moved, or is not on the branch that is checked out.
 */
import { expect, test } from 'bun:test';
import { existsSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { git, Repository } from '../../support/git/repository.ts';
import type { GroupFixture } from '../../support/group-fixture.ts';
import { begin, rig, withRig } from '../../support/rig-ground.ts';
import {
  commitsItsState,
  edit,
  facts,
  make,
  own,
  read,
  resume,
  text,
  warnings,
} from '../../support/runner/handover-ground.ts';

withRig();

const branch = 'cca/fixture/001-a';
const work = (group: GroupFixture, from = 'main') =>
  git(group.project('app'), 'diff', '--name-status', '--no-renames', from, branch);
const changed = `M\t${resume}`;
const local = ['-c', 'protocol.file.allow=always', 'submodule', '--quiet'];

test('without the system it is a file like any other', async () => {
  const group = make([{ name: 'a', fields: { context: ['cpm'] } }]);
  const run = group.run(rig.env);
  const a = await begin(group, 'a');
  const before = own(group);
  expect(read(a.hello.cwd)).toBe(before);
  edit(a, '"plan"', '"build"');
  git(a.hello.cwd, 'commit', '--quiet', '--all', '-m', 'State');
  await a.succeed();
  expect(await run.result).toMatchObject({ status: 'completed' });
  expect(own(group)).toBe(before);
  expect(work(group)).toBe(changed);
});

test.each([false, true])(
  'a project that is not on the branch now is no work of the session; written: %p',
  async (writes) => {
    const group = make([{ name: 'a' }], { later: { [resume]: text('of a person') } });
    const app = group.project('app');
    const run = group.run(rig.env);
    const a = await begin(group, 'a');
    if (writes) edit(a, 'Notes.', 'Notes of a.');
    git(app, 'stash', '--quiet');
    git(app, 'rm', '-r', '--quiet', '02-projects');
    git(app, 'commit', '--quiet', '-m', 'Done with it');
    await a.succeed();
    expect(await run.result).toMatchObject({ status: 'completed' });
    expect(work(group, 'main~1')).toBe('');
    expect(existsSync(join(app, resume))).toBe(false);
    expect(read(a.hello.cwd)).toContain(writes ? 'Notes of a.' : 'of a person');
    const said = `${join(app, resume)} is gone; what the session wrote of it stays in its worktree, in no commit.`;
    expect(warnings(group, 'a').includes(said)).toBe(writes);
  },
);

test('what was copied into the worktree before the session ran is no word of its own', async () => {
  const old = '---\nnext_action: "plan"\n---\n\nNotes.\n';
  const tree = { '.gitignore': '02-projects\n', '.worktreeinclude': '02-projects\n' };
  const group = make([{ name: 'a' }], { tree, later: { [resume]: old } });
  const run = group.run(rig.env);
  const a = await begin(group, 'a');
  expect(own(group)).not.toContain('Also written by');
  expect(read(a.hello.cwd)).toBe(own(group));
  await a.succeed();
  expect(await run.result).toMatchObject({ status: 'completed' });
});

test('a submodule in the worktree is left to git', async () => {
  const group = make([{ name: 'a' }], { tree: {} });
  const app = group.project('app');
  const sub = new Repository(join(group.folder, 'sub'));
  sub.commit({ '28-b/01-planning/resume-context.md': text('plan') });
  git(app, ...local, 'add', sub.folder, '02-projects');
  git(app, 'commit', '--quiet', '-m', 'Submodule');
  const run = group.run(rig.env);
  const a = await begin(group, 'a');
  expect(existsSync(join(a.hello.cwd, resume))).toBe(false);
  git(a.hello.cwd, ...local, 'update', '--init');
  await a.succeed();
  expect(await run.result).toMatchObject({ status: 'completed' });
  expect(facts(group).sessionIds).toEqual([group.claudeId('a')]);
  expect(work(group)).toBe('');
});

test('a link of the project with its whole path leads to the file itself', async () => {
  const group = make([{ name: 'a' }], { tree: { 'state/resume-context.md': text('plan') } });
  const app = group.project('app');
  mkdirSync(dirname(join(app, resume)), { recursive: true });
  symlinkSync(join(app, 'state', 'resume-context.md'), join(app, resume));
  git(app, 'add', '--all');
  git(app, 'commit', '--quiet', '-m', 'Link');
  const run = group.run(rig.env);
  const a = await begin(group, 'a');
  await a.succeed();
  expect(await run.result).toMatchObject({ status: 'completed' });
  expect(warnings(group, 'a')).toEqual([]);
  expect(work(group)).toBe('');
});

test('a link to a file of another name: that is work, and the project’s own stays', async () => {
  const tree = { 'docs/state.md': text('plan'), [resume]: { link: '../../../docs/state.md' } };
  const group = make([{ name: 'a' }], { tree });
  const run = group.run(rig.env);
  const a = await begin(group, 'a');
  edit(a, '"plan"', '"build"');
  await a.succeed();
  expect(await run.result).toMatchObject({ status: 'completed' });
  expect(own(group)).toBe(text('plan'));
  expect(git(group.project('app'), 'status', '--porcelain')).toBe('');
  expect(work(group)).toBe('M\tdocs/state.md');
});

test('a linked folder: its branch does not carry the file there either', async () => {
  const tree = { 'p/28-b/01-planning/resume-context.md': text('plan'), '02-projects': { link: 'p' } };
  const group = make([{ name: 'a' }], { tree });
  await commitsItsState(group);
  expect(work(group)).toBe('');
});

test('a file that the session puts a link to is neither taken nor written over', async () => {
  const group = make([{ name: 'a' }]);
  const first = group.run(rig.env);
  const a = await begin(group, 'a');
  rmSync(join(a.hello.cwd, resume));
  symlinkSync('../../../base.txt', join(a.hello.cwd, resume));
  writeFileSync(join(a.hello.cwd, 'base.txt'), 'Work.\n');
  first.signal('SIGINT');
  a.exit(143);
  expect(await first.result).toMatchObject({ status: 'paused' });
  const second = group.run(rig.env);
  const again = await begin(group, 'a');
  expect(readFileSync(join(again.hello.cwd, 'base.txt'), 'utf8')).toBe('Work.\n');
  expect(own(group)).not.toContain('Work.');
  await again.succeed();
  expect(await second.result).toMatchObject({ status: 'completed' });
});

test('one that the session deleted stays deleted after a pause', async () => {
  const group = make([{ name: 'a' }]);
  const first = group.run(rig.env);
  const a = await begin(group, 'a');
  git(a.hello.cwd, 'rm', '-r', '--quiet', '--force', '02-projects');
  git(a.hello.cwd, 'commit', '--quiet', '-m', 'Done with it');
  first.signal('SIGINT');
  a.exit(143);
  expect(await first.result).toMatchObject({ status: 'paused' });
  const second = group.run(rig.env);
  const again = await begin(group, 'a');
  expect(existsSync(join(again.hello.cwd, resume))).toBe(false);
  await again.succeed();
  expect(await second.result).toMatchObject({ status: 'completed' });
  expect(work(group)).toBe(`D\t${resume}`);
});

test('bytes that are no UTF-8: a session that puts its file back has written nothing', async () => {
  const bytes = Buffer.from(text('plan', 'Gr\xfc\xdfe.\nK\xf6ln.\nEnd.\n'), 'latin1');
  const group = make([{ name: 'a' }], { tree: { [resume]: bytes } });
  const file = join(group.project('app'), resume);
  writeFileSync(file, Buffer.from(bytes.toString('latin1').replace('K\xf6ln', 'M\xfcnchen'), 'latin1'));
  const run = group.run(rig.env);
  const a = await begin(group, 'a');
  const before = readFileSync(file, 'latin1');
  expect(before).not.toContain('Also written by');
  git(a.hello.cwd, 'reset', '--quiet', '--hard');
  await a.succeed();
  expect(await run.result).toMatchObject({ status: 'completed' });
  expect(readFileSync(file, 'latin1')).toBe(before);
});
