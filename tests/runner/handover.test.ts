/**
 * Promises: a project of the handover system stays one project when its sessions work in worktrees: their ids and what
 * they write into resume-context.md reach the user's own file, whether git knows it or not and whatever the session
 * does with git; what people write there meanwhile stays; and branches do not carry it.
 */
import { afterAll, afterEach, beforeAll, expect, test } from 'bun:test';
import { existsSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { readResumeFile } from '../../src/context/handover/resume-file.ts';
import type { SessionDefinition } from '../../src/core/group.ts';
import { isolatedBunFlags } from '../../src/world/own-program.ts';
import { git, Repository, type Tree } from '../git/repository.ts';
import { removeGroup } from '../support/crash-rig.ts';
import { type Invocation, type Rig, startRig } from '../support/fake-claude-rig.ts';
import { type GroupFixture, makeGroup, packageRoot } from '../support/group-fixture.ts';

let rig: Rig;
const groups: GroupFixture[] = [];
beforeAll(async () => {
  rig = await startRig();
});
afterAll(() => rig.stop());
afterEach(() => {
  for (const group of groups.splice(0)) removeGroup(group);
});

const resume = '02-projects/28-b/01-planning/resume-context.md';
const text = (next: string, body = 'Notes.\n') =>
  `---\nsession_id: ""\nsession_ids: []\n\n# LOADING\nnext_action: "${next}"\n` +
  `files_to_load: ["plan.md"]\n---\n\n${body}`;

/** Sessions in one repository, each with a worktree; the project's files are committed unless `later` brings them. */
function make(
  sketches: readonly {
    readonly name: string;
    readonly after?: readonly string[];
    fields?: Partial<SessionDefinition>;
  }[],
  {
    tree = { [resume]: text('plan') },
    later = {},
  }: { readonly tree?: Tree; readonly later?: Record<string, string> } = {},
): GroupFixture {
  let folder = '';
  const all = sketches.map(({ fields, ...sketch }) => {
    const late: Partial<SessionDefinition> = {
      isolate: 'worktree',
      get repository() {
        return join(folder, '.git');
      },
      ...fields,
    };
    return { ...sketch, project: 'app', fields: late };
  });
  const group = makeGroup(
    all,
    {},
    {
      beforeSessions: (root) => {
        folder = join(root, 'projects', 'app');
        new Repository(folder).commit({ 'base.txt': 'base\n', '.gitignore': 'ignored\n', ...tree });
        for (const [path, content] of Object.entries(later)) write(folder, path, content);
      },
    },
  );
  groups.push(group);
  return group;
}

function write(folder: string, path: string, content: string): void {
  mkdirSync(dirname(join(folder, path)), { recursive: true });
  writeFileSync(join(folder, path), content);
}

const read = (folder: string) => readFileSync(join(folder, resume), 'utf8');
const own = (group: GroupFixture) => read(group.project('app'));
const facts = (group: GroupFixture) => readResumeFile(own(group));
const warnings = (group: GroupFixture, name: string) =>
  group
    .state()
    .sessions.get(group.id(name))
    ?.warnings.map(({ message }) => message) ?? [];

async function begin(group: GroupFixture, name: string): Promise<Invocation> {
  const fake = await rig.nextFor(group.claudeId(name));
  await fake.prompt();
  await fake.init();
  return fake;
}

/** As claude edits the file. */
function edit(fake: Invocation, from: string, to: string): void {
  const before = read(fake.hello.cwd);
  expect(before).toContain(from);
  writeFileSync(join(fake.hello.cwd, resume), before.replace(from, to));
}

/** What the real hook prints in the worker. */
function hook(fake: Invocation, event: string, sessionId: string): string {
  const ran = Bun.spawnSync(
    [process.execPath, ...isolatedBunFlags, join(packageRoot, 'src', 'hook-main.ts'), 'handover', event],
    {
      env: { ...fake.hello.env, CLAUDE_PROJECT_DIR: fake.hello.cwd },
      stdin: Buffer.from(JSON.stringify({ session_id: sessionId })),
      stdout: 'pipe',
    },
  );
  return ran.stdout.toString();
}

const unchanged = (group: GroupFixture, branch: string) =>
  expect(git(group.project('app'), 'diff', '--name-only', 'main', branch)).not.toContain('resume-context');

test('ids and state reach the project, and the next session is handed them', async () => {
  const group = make([{ name: 'a' }, { name: 'b', after: ['a'] }]);
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

test('a new id of claude is noted in the project, before a compaction', async () => {
  const group = make([{ name: 'a' }]);
  const run = group.run(rig.env);
  const a = await begin(group, 'a');
  const copy = read(a.hello.cwd);
  expect(hook(a, 'pre-compact', 'after-clear')).toBe('');
  expect(facts(group).sessionIds).toEqual([group.claudeId('a'), 'after-clear']);
  expect(read(a.hello.cwd)).toBe(copy);
  await a.succeed();
  expect(await run.result).toMatchObject({ status: 'completed' });
});

test.each([
  ['untracked', {}],
  ['ignored', { '.gitignore': '02-projects\n' }],
])('where git does not know the project: %s', async (_, tree) => {
  const later = { [resume]: text('plan'), '02-projects/28-b/plan.md': 'THE PLAN' };
  const group = make([{ name: 'a' }], { tree, later });
  const run = group.run(rig.env);
  const a = await begin(group, 'a');
  const said = hook(a, 'session-start', group.claudeId('a'));
  expect(said).toContain('Next action: plan');
  expect(said).toContain('THE PLAN');
  edit(a, '"plan"', '"build"');
  writeFileSync(join(a.hello.cwd, 'new.txt'), 'new');
  // As claude often does; what it took along must not stand in the way of a merge.
  git(a.hello.cwd, 'add', '--all');
  git(a.hello.cwd, 'commit', '--quiet', '-m', 'All of it');
  await a.succeed();
  expect(await run.result).toMatchObject({ status: 'completed' });
  expect(facts(group).nextAction).toBe('build');
  expect(git(group.project('app'), 'diff', '--name-only', 'main', 'cca/fixture/001-a')).toBe('new.txt');
});

test('what the session commits of it reaches the project, and its branch leaves it as it was', async () => {
  const group = make([{ name: 'a' }], { later: { [resume]: text('plan', 'Of a person.\n') } });
  const run = group.run(rig.env);
  const a = await begin(group, 'a');
  edit(a, '"plan"', '"build"');
  git(a.hello.cwd, 'commit', '--quiet', '--all', '-m', 'State');
  await a.succeed();
  expect(await run.result).toMatchObject({ status: 'completed' });
  expect(facts(group).nextAction).toBe('build');
  expect(own(group)).toEndWith('Of a person.\n');
  unchanged(group, 'cca/fixture/001-a');
});

test.each([[['reset', '--quiet', '--hard']], [['checkout', '--quiet', '--', '.']], [['stash', '--quiet']]])(
  'a session that throws its changes away takes nothing from the project: git %p',
  async (args) => {
    const group = make([{ name: 'a' }], { later: { [resume]: text('of a person', 'More of a person.\n') } });
    const run = group.run(rig.env);
    const a = await begin(group, 'a');
    const before = own(group);
    git(a.hello.cwd, ...args);
    expect(read(a.hello.cwd)).toBe(text('plan'));
    writeFileSync(join(a.hello.cwd, resume), text('plan', 'Notes.\nDone.\n'));
    await a.succeed();
    expect(await run.result).toMatchObject({ status: 'completed' });
    expect(own(group)).toStartWith(before);
    expect(own(group)).toContain('    Done.\n');
  },
);

test('two at once and a person: nobody’s words are lost', async () => {
  const group = make([{ name: 'a' }, { name: 'b' }]);
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

test('a project that the session makes is part of its work', async () => {
  const group = make([{ name: 'a' }]);
  const run = group.run(rig.env);
  const a = await begin(group, 'a');
  const made = '02-projects/29-c/01-planning/resume-context.md';
  write(a.hello.cwd, made, text('begin'));
  await a.succeed();
  expect(await run.result).toMatchObject({ status: 'completed' });
  expect(git(group.project('app'), 'diff', '--name-only', 'main', 'cca/fixture/001-a')).toBe(made);
  expect(existsSync(join(group.project('app'), made))).toBe(false);
});

test('a project that the session deletes is deleted by its work, and not before that is merged', async () => {
  const group = make([{ name: 'a' }]);
  const run = group.run(rig.env);
  const a = await begin(group, 'a');
  const before = own(group);
  git(a.hello.cwd, 'rm', '-r', '--quiet', '--force', '02-projects');
  git(a.hello.cwd, 'commit', '--quiet', '-m', 'Done with it');
  await a.succeed();
  expect(await run.result).toMatchObject({ status: 'completed' });
  expect(git(group.project('app'), 'diff', '--name-status', 'main', 'cca/fixture/001-a')).toBe(`D\t${resume}`);
  expect(own(group)).toBe(before);
});

test('a link in the worktree leads nothing out of it, nor into the project', async () => {
  const group = make([{ name: 'a' }]);
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
  expect(warnings(group, 'a').join()).toContain('is no regular file of the worktree');
});

test.each([true, false])('after a pause both sides have both words; memory of the copies: %p', async (isThere) => {
  const group = make([{ name: 'a' }]);
  const first = group.run(rig.env);
  const a = await begin(group, 'a');
  edit(a, '"plan"', '"half"');
  first.signal('SIGINT');
  a.exit(143);
  expect(await first.result).toMatchObject({ status: 'paused' });
  writeFileSync(join(group.project('app'), resume), `${own(group)}Of a person.\n`);
  // As after a crash, just before it was written.
  if (!isThere) rmSync(group.session('a').handoverCopies);
  const second = group.run(rig.env);
  const again = await begin(group, 'a');
  expect(read(again.hello.cwd)).toContain('next_action: "half"');
  expect(read(again.hello.cwd)).toEndWith('Notes.\nOf a person.\n');
  expect(read(again.hello.cwd)).toBe(own(group));
  await again.succeed();
  expect(await second.result).toMatchObject({ status: 'completed' });
});
