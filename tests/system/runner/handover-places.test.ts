/**
 * Promises: resume files are copied between a project and its worktrees only when both are regular files of that
 * project. They are not copied without the handover system, into submodules, through symlinks, or after the project was
 * moved or switched to another branch.
 */
import { expect, test } from 'bun:test';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { git, Repository } from '../../support/git/repository.ts';
import type { GroupFixture } from '../../support/group-fixture.ts';
import { begin, rig, withRig } from '../../support/rig-ground.ts';
import {
  edit,
  facts,
  makeHandoverGroup,
  own,
  read,
  resume,
  resumeFileText,
} from '../../support/runner/handover-ground.ts';

withRig();

const branch = 'cca/fixture/001-a';
const work = (group: GroupFixture, from = 'main') =>
  git(group.project('app'), 'diff', '--name-status', '--no-renames', from, branch);
const changed = `M\t${resume}`;
const local = ['-c', 'protocol.file.allow=always', 'submodule', '--quiet'];

test('without the handover system a resume file is an ordinary file', async () => {
  const group = makeHandoverGroup([{ name: 'a', fields: { context: ['cpm'] } }]);
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

test('a submodule in the worktree is left to git', async () => {
  const group = makeHandoverGroup([{ name: 'a' }], { tree: {} });
  const app = group.project('app');
  const sub = new Repository(join(group.folder, 'sub'));
  sub.commit({ '28-b/01-planning/resume-context.md': resumeFileText('plan') });
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

test('a resume file replaced by a symlink is committed, and the file in the project stays', async () => {
  const tree = { 'docs/state.md': resumeFileText('plan'), [resume]: { link: '../../../docs/state.md' } };
  const group = makeHandoverGroup([{ name: 'a' }], { tree });
  const run = group.run(rig.env);
  const a = await begin(group, 'a');
  edit(a, '"plan"', '"build"');
  await a.succeed();
  expect(await run.result).toMatchObject({ status: 'completed' });
  expect(own(group)).toBe(resumeFileText('plan'));
  expect(git(group.project('app'), 'status', '--porcelain')).toBe('');
  expect(work(group)).toBe('M\tdocs/state.md');
});
