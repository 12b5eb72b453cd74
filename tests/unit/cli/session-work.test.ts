/**
 * Promises: place of work and acceptance commands of a session are stored as typed, also by a live runner. Impossible
 * values are refused in one sentence, and commands from a project file are announced and frozen.
 */
import { describe, expect, test } from 'bun:test';
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { nightUser, withNight } from '../../support/cli/night.ts';
import { Repository } from '../../support/git/repository.ts';

withNight();

interface Shown {
  readonly name: string;
  readonly repository?: string;
  readonly accept?: string;
  readonly isolation?: { readonly mode: string; readonly why: string };
}

/** Creates a repository with a commit as a project and returns its path. */
function repository(name: string): string {
  const made = new Repository(join(nightUser.folder, 'projects', name));
  made.commit({ 'README.md': name });
  return made.folder;
}

function write(path: string, text: string): string {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
  return path;
}

const show = (session: string) => nightUser.json<Shown>('session', 'show', session);

const everything = [
  ...['--isolate', 'worktree', '--accept', "npm test -- 'a b'", '--accept-retries', '0', '--accept-timeout', '90s'],
  ...['--setup', 'npm ci', '--setup-timeout', '1h', '--expect-changes', '--no-commit'],
];
const kept = {
  isolate: 'worktree',
  accept: "npm test -- 'a b'",
  acceptRetries: 0,
  acceptTimeoutMs: 90_000,
  setup: 'npm ci',
  setupTimeoutMs: 3_600_000,
  expectChanges: true,
  commit: false,
};

test('work options are stored with the project’s repository, from any folder of it', async () => {
  const project = repository('mono');
  mkdirSync(join(project, 'packages/web'), { recursive: true });
  const group = await nightUser.ok('group', 'create', 'work');
  const add = ['session', 'add', group, '--prompt', 'hi', '--project'];
  await nightUser.ok(...add, project, '--name', 'api', ...everything);
  await nightUser.ok(...add, join(project, 'packages/web'), '--name', 'web');
  await nightUser.ok(...add, nightUser.project('plain'), '--name', 'plain', '--accept', 'true');
  expect(await show('work/api')).toMatchObject({ ...kept, repository: join(project, '.git') });
  expect((await show('work/web')).repository).toBe(join(project, '.git'));
  expect((await show('work/plain')).repository).toBeUndefined();
  const shown = await nightUser.ok('session', 'show', 'work/api');
  expect(shown).toContain("Accept: npm test -- 'a b' (0 retries, at most 1m 30s)");
  expect(shown).toContain('Works in: its own worktree, because it was requested');
});

test('a live runner stores the same work options', async () => {
  const group = await nightUser.group('auth', { api: [] });
  const run = nightUser.start('group', 'run', group, '--output', 'quiet', '--concurrent', '1');
  const api = await nightUser.begun(group, 'api');
  const project = repository('late');
  const add = ['session', 'add', group, '--project', project, '--prompt', 'hi', '--depends-on', 'api'];
  await nightUser.ok(...add, '--name', 'late', ...everything);
  expect(await show('auth/late')).toMatchObject({ ...kept, repository: join(project, '.git') });
  const bad = await nightUser.run(...add, '--name', 'bad', '--accept', ' ');
  expect(bad).toMatchObject({ code: 2, stdout: '' });
  await nightUser.ok('session', 'remove', 'auth/late', '--force');
  await api.succeed(0.01);
  expect((await run.finished).code).toBe(0);
}, 60_000);

describe('refused work options', () => {
  test.each([
    [['--isolate', 'worktree'], 'is not in a git repository. Make it a repository with git init and a first commit'],
    [['--isolate', 'clone'], 'Allowed choices are none, worktree'],
    [['--accept', ''], 'The command is blank.'],
    [['--accept', ' \t'], 'The command is blank.'],
    [['--setup', '\n'], 'The command is blank.'],
    [['--accept', 'make {{target}}'], '{{target}} cannot be used in a shell command'],
    [['--accept', 'x'.repeat(40_000)], 'The command is longer than 32 KiB'],
    [['--accept', 'x', '--accept-retries', '11'], 'It must be a whole number from 0 to 10.'],
    [['--accept', 'x', '--accept-retries', '-1'], 'It must be a whole number from 0 to 10.'],
    [['--accept', 'x', '--accept-timeout', '0'], 'It must be a time from 1s to 30d'],
    [['--accept-retries', '2'], '--accept-retries has no effect without an accept command.'],
    [['--no-accept', '--accept-timeout', '5m'], '--accept-timeout has no effect without an accept command.'],
    [['--setup', 'npm ci'], '--setup applies only to a new worktree, and the project is not in a git repository.'],
    [['--isolate', 'none', '--no-commit'], '--no-commit applies only to worktrees, and the session gets none.'],
    [['--expect-changes'], '--expect-changes needs a git repository, and the project is not in one.'],
  ])('the work options %j are refused, and no session is added', async (options, words) => {
    const group = await nightUser.ok('group', 'create', 'work');
    const { code, stdout, stderr } = await nightUser.run(
      ...['session', 'add', group, '--project', nightUser.project('plain'), '--prompt', 'hi', ...options],
    );
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr.trimEnd().split('\n')).toEqual([expect.stringContaining(words)]);
    expect(await nightUser.json('session', 'list', group)).toEqual([]);
  });
});

describe('project files', () => {
  test('a project file applies without options and is announced once; later changes have no effect', async () => {
    const project = repository('api');
    const file = write(join(project, '.claude-code-agent/project.yaml'), 'accept: npm test\nsetup: npm ci\n');
    const group = await nightUser.ok('group', 'create', 'work');
    const add = ['session', 'add', group, '--project', project, '--prompt', 'hi'];
    const added = await nightUser.run(...add, '--name', 'one');
    expect(added).toMatchObject({
      code: 0,
      stderr: `${file} sets accept "npm test" and setup "npm ci"; leave them out with --no-accept and --no-setup.\n`,
    });
    write(file, 'accept: rm -rf .\n');
    expect(await show('work/one')).toMatchObject({ accept: 'npm test', setup: 'npm ci' });
    const other = await nightUser.run(...add, '--name', 'two', '--accept', 'make');
    expect(other.stderr).toBe('');
    expect((await show('work/two')).accept).toBe('make');
    expect((await nightUser.run(...add, '--name', 'three', '--no-accept')).stderr).toBe('');
    expect((await show('work/three')).accept).toBeUndefined();
  });

  test('errors in a project file are reported with places by session add, run and template validate', async () => {
    const project = repository('api');
    const file = write(join(project, '.claude-code-agent/project.yaml'), 'acept: x\n');
    const line = `${file}:1:1: the project file has no "acept"; did you mean "accept"?`;
    const group = await nightUser.ok('group', 'create', 'work');
    const flow = write(
      join(nightUser.folder, 'flow.yaml'),
      `version: 1\nsessions: { a: { project: "${project}", prompt: hi } }`,
    );
    for (const args of [
      ['session', 'add', group, '--project', project, '--prompt', 'hi'],
      ['group', 'create', 'other', '--from', flow],
      ['template', 'validate', file],
    ]) {
      const { code, stdout, stderr } = await nightUser.run(...args);
      expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
      expect(stderr).toContain(line);
    }
    write(file, 'setup: npm ci\n');
    expect(await nightUser.ok('template', 'validate', file)).toBe('The project file is valid.');
  });
});

const flow = (projects: string) => `version: 1
name: flow
group: { shareCheckouts: true, accept: npm test }
sessions:
  one: { project: "${projects}/api", prompt: hi }
  two: { project: "${projects}/api", prompt: hi, setup: npm ci }
  three: { project: "${projects}/web", prompt: hi, dependsOn: two, accept: false }
  four: { project: "${projects}/plain", prompt: "{{sessions.two.branch}} {{sessions.two.diffStat}}", dependsOn: two }
`;

test('group plan shows which sessions get worktrees and why, and every command that will run', async () => {
  for (const name of ['api', 'web']) repository(name);
  nightUser.project('plain');
  const file = write(join(nightUser.folder, 'flow.yaml'), flow(join(nightUser.folder, 'projects')));
  const group = await nightUser.ok('group', 'create', 'flow', '--from', file);
  const { config } = await nightUser.json<{ config: object }>('group', 'show', group);
  expect(config).toMatchObject({ shareCheckouts: true });
  const plan = await nightUser.run('group', 'plan', group);
  expect(plan.stdout).toContain(`
Works in
  its own worktree, because sessions may share a repository, or one requested it: 001 one, 002 two, 003 three

Shell commands
  accept npm test (1 retry, at most 10m 00s): 001 one, 002 two, 004 four
  setup npm ci (at most 10m 00s): 002 two
`);
  const { sessions } = JSON.parse((await nightUser.run('group', 'plan', group, '--json')).stdout) as {
    sessions: Shown[];
  };
  expect(sessions.map(({ name, isolation }) => [name, isolation?.mode])).toEqual([
    ['one', 'worktree'],
    ['two', 'worktree'],
    ['three', 'worktree'],
    ['four', 'none'],
  ]);
  const shared = await nightUser.ok('group', 'create', 'shared', '--share-checkouts');
  expect((await nightUser.json<{ config: object }>('group', 'show', shared)).config).toMatchObject({
    shareCheckouts: true,
  });
});

test('group plan says that a setup command does not run without a worktree', async () => {
  const group = await nightUser.ok('group', 'create', 'alone');
  await nightUser.ok('session', 'add', group, '--project', repository('api'), '--prompt', 'hi', '--setup', 'npm ci');
  const { stdout } = await nightUser.run('group', 'plan', group);
  expect(stdout).toContain('\nNot run without a worktree\n  setup npm ci: 001\n');
  expect(stdout).not.toContain('Shell commands');
});

test('only sessions that may get a branch can have theirs referenced', async () => {
  const project = repository('api');
  const group = await nightUser.ok('group', 'create', 'work');
  const add = ['session', 'add', group, '--project', project, '--prompt'];
  await nightUser.ok(...add, 'hi', '--name', 'own');
  await nightUser.ok(...add, 'hi', '--name', 'none', '--isolate', 'none');
  const ask = (name: string) =>
    nightUser.run(...add, `Look at {{sessions.${name}.branch}} ({{sessions.${name}.diffStat}})`, '--depends-on', name);
  expect((await ask('own')).code).toBe(0);
  const refused = await ask('none');
  expect(refused).toMatchObject({ code: 2, stdout: '' });
  expect(refused.stderr).toContain('{{sessions.none.branch}}: "none" works in the project folder itself');
});
