/**
 * Promises: with the handover system, session ids and changes to resume-context.md reach the user's own file from every
 * worktree, whether or not git tracks it and whatever the session does with git. Concurrent edits by people are kept,
 * and branches do not contain the file.
 */
import { expect, test } from 'bun:test';
import { readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { git } from '../../support/git/repository.ts';
import { begin, rig, withRig } from '../../support/rig-ground.ts';
import {
  commitsItsState,
  edit,
  facts,
  hook,
  makeHandoverGroup,
  own,
  read,
  resume,
  resumeFileText,
  unchanged,
  warnings,
} from '../../support/runner/handover-ground.ts';

withRig();

test('ids and state reach the project, and the next session receives them', async () => {
  const group = makeHandoverGroup([{ name: 'a' }, { name: 'b', after: ['a'] }]);
  const run = group.run(rig.env);
  const a = await begin(group, 'a');
  expect(a.hello.cwd).toBe(group.session('a').worktree);
  expect(facts(group).sessionIds).toEqual([group.claudeId('a')]);
  edit(a, 'next_action: "plan"', 'next_action: "build"');
  await a.succeed();
  const b = await begin(group, 'b');
  expect(read(b.hello.cwd)).toBe(own(group));
  const said = hook(b, 'session-start', group.claudeId('b'));
  expect(said).toContain('project 28-b (this session belongs to it');
  expect(said).toContain('Next action: build');
  expect(said).toContain(`Resume file: ${join(b.hello.cwd, resume)}`);
  edit(b, 'Notes.', 'Notes of b.');
  await b.succeed();
  expect(await run.result).toMatchObject({ status: 'completed' });
  expect(facts(group)).toMatchObject({
    nextAction: 'build',
    sessionIds: [group.claudeId('a'), group.claudeId('b')],
    sessionId: group.claudeId('b'),
  });
  expect(own(group)).toEndWith('\n\nNotes of b.\n');
  for (const branch of ['cca/fixture/001-a', 'cca/fixture/002-b']) unchanged(group, branch);
  expect([...warnings(group, 'a'), ...warnings(group, 'b')]).toEqual([]);
});

test.each([
  ['untracked', {}],
  ['ignored', { '.gitignore': '02-projects\n' }],
])('in a project without git: %s', async (_, tree) => {
  const later = { [resume]: resumeFileText('plan'), '02-projects/28-b/plan.md': 'THE PLAN' };
  const group = makeHandoverGroup([{ name: 'a' }], { tree, later });
  const run = group.run(rig.env);
  const a = await begin(group, 'a');
  const said = hook(a, 'session-start', group.claudeId('a'));
  expect(said).toContain('Next action: plan');
  expect(said).toContain('THE PLAN');
  edit(a, '"plan"', '"build"');
  writeFileSync(join(a.hello.cwd, 'new.txt'), 'new');
  // Claude often does this. A committed resume file must not block a merge.
  git(a.hello.cwd, 'add', '--all');
  git(a.hello.cwd, 'commit', '--quiet', '-m', 'All of it');
  await a.succeed();
  expect(await run.result).toMatchObject({ status: 'completed' });
  expect(facts(group).nextAction).toBe('build');
  expect(git(group.project('app'), 'diff', '--name-only', 'main', 'cca/fixture/001-a')).toBe('new.txt');
});

test('committed state reaches the project, and the branch contains no change to the file', async () => {
  const group = makeHandoverGroup([{ name: 'a' }], { later: { [resume]: resumeFileText('plan', 'Of a person.\n') } });
  await commitsItsState(group);
  expect(own(group)).toEndWith('Of a person.\n');
  unchanged(group, 'cca/fixture/001-a');
});

test.each([[['reset', '--quiet', '--hard']], [['checkout', '--quiet', '--', '.']], [['stash', '--quiet']]])(
  'a session that discards its changes removes nothing from the project: git %p',
  async (args) => {
    const group = makeHandoverGroup([{ name: 'a' }], {
      later: { [resume]: resumeFileText('of a person', 'More of a person.\n') },
    });
    const run = group.run(rig.env);
    const a = await begin(group, 'a');
    const before = own(group);
    git(a.hello.cwd, ...args);
    expect(read(a.hello.cwd)).toBe(resumeFileText('plan'));
    writeFileSync(join(a.hello.cwd, resume), resumeFileText('plan', 'Notes.\nDone.\n'));
    await a.succeed();
    expect(await run.result).toMatchObject({ status: 'completed' });
    expect(own(group)).toStartWith(before);
    expect(own(group)).toContain('    Done.\n');
  },
);

test('two sessions and a person write at once, and no text is lost', async () => {
  const group = makeHandoverGroup([{ name: 'a' }, { name: 'b' }]);
  const run = group.run(rig.env);
  const [a, b] = await Promise.all([begin(group, 'a'), begin(group, 'b')]);
  edit(a, '"plan"', '"from a"');
  edit(b, '"plan"', '"from b"');
  edit(b, 'Notes.\n', 'Notes.\nDone by b.\n');
  writeFileSync(join(group.project('app'), resume), own(group).replace('# LOADING', '# LOADING, says a person'));
  await Promise.all([a.succeed(), b.succeed()]);
  expect(await run.result).toMatchObject({ status: 'completed' });
  for (const words of ['"from a"', '"from b"', 'Done by b.', 'says a person']) expect(own(group)).toContain(words);
  expect(new Set(facts(group).sessionIds)).toEqual(new Set([group.claudeId('a'), group.claudeId('b')]));
  expect(own(group)).toContain('## Also written by session ');
});

test('a symlink in the worktree does not lead out of it or into the project', async () => {
  const group = makeHandoverGroup([{ name: 'a' }]);
  const run = group.run(rig.env);
  const a = await begin(group, 'a');
  const before = own(group);
  const secret = join(group.folder, 'secret.md');
  writeFileSync(secret, 'secret');
  rmSync(join(a.hello.cwd, resume));
  symlinkSync(secret, join(a.hello.cwd, resume));
  await a.succeed();
  expect(await run.result).toMatchObject({ status: 'completed' });
  expect(own(group)).toBe(before);
  expect(readFileSync(secret, 'utf8')).toBe('secret');
  expect(warnings(group, 'a').join()).toContain('is not a regular file of the worktree');
});

test.each([true, false])('after a pause both copies have both texts; record present: %p', async (isThere) => {
  const group = makeHandoverGroup([{ name: 'a' }]);
  const first = group.run(rig.env);
  const a = await begin(group, 'a');
  edit(a, '"plan"', '"half"');
  first.signal('SIGINT');
  a.exit(143);
  expect(await first.result).toMatchObject({ status: 'paused' });
  writeFileSync(join(group.project('app'), resume), `${own(group)}Of a person.\n`);
  // As after a crash just before the record was written.
  if (!isThere) rmSync(group.session('a').handoverCopies);
  const second = group.run(rig.env);
  const again = await begin(group, 'a');
  expect(read(again.hello.cwd)).toContain('next_action: "half"');
  expect(read(again.hello.cwd)).toEndWith('Notes.\nOf a person.\n');
  expect(read(again.hello.cwd)).toBe(own(group));
  await again.succeed();
  expect(await second.result).toMatchObject({ status: 'completed' });
});
