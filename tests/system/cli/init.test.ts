/**
 * Promises: `init` writes a workflow over the repositories in and below the folder that can be run unchanged: by
 * options, by --yes, or by at most five answers on a terminal. It replaces no file without a question.
 */
import { afterEach, beforeEach, expect, test } from 'bun:test';
import { mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { launcher, User } from '../../support/cli/user.ts';
import { TestTerminal } from '../../support/terminal.ts';

const timeoutMs = 120_000;
let user: User;
let here: string;
let terminals: TestTerminal[];
beforeEach(() => {
  user = new User();
  here = user.project('');
  terminals = [];
});
afterEach(() => {
  for (const terminal of terminals) terminal.close();
  user.remove();
});

function repository(name: string, files: Readonly<Record<string, string>> = {}): string {
  const path = user.project(name);
  Bun.spawnSync(['git', 'init', '--quiet', path]);
  for (const [file, text] of Object.entries(files)) writeFileSync(join(path, file), text);
  return path;
}

const init = (...words: string[]) => user.runWith({ cwd: here }, 'init', ...words);
const read = (file = 'workflow.yaml') => parse(readFileSync(join(here, file), 'utf8'));

function ask(...words: string[]): TestTerminal {
  const terminal = new TestTerminal([launcher, 'init', ...words], { cwd: here, env: user.env, columns: 120 });
  terminals.push(terminal);
  return terminal;
}

test(
  'a project that uses another by its path depends on it, and two that use each other have no cycle',
  async () => {
    const uses = (path: string) => JSON.stringify({ dependencies: { '@acme/x': `file:${path}` } });
    repository('docs', { 'package.json': uses('../web/packages/ui') });
    repository('lib', { 'package.json': uses('../web') });
    repository('service', { 'pyproject.toml': '[tool.uv.sources]\nacme = { path = "../lib", editable = true }\n' });
    repository('web', { 'package.json': uses('../lib') });
    await init('--yes');
    const sessions = read().sessions as Record<string, { dependsOn?: string[] }>;
    const order = Object.entries(sessions).map(([name, { dependsOn }]) => [name, dependsOn]);
    expect(order).toEqual([
      ['docs', ['web']],
      ['lib', ['web']],
      ['service', ['lib']],
      ['web', undefined],
    ]);
    expect(await user.runWith({ cwd: here }, 'template', 'validate', 'workflow.yaml')).toMatchObject({ code: 0 });
  },
  timeoutMs,
);

test(
  '--yes: the repositories of this folder, and a rehearsal of the file completes',
  async () => {
    const [api, web] = [repository('api'), repository('group/web')];
    repository('node_modules/other');
    repository('.hidden/other');
    repository('too/far/down/below');
    symlinkSync(here, join(here, 'round'));
    const early = await user.runWith({ cwd: here }, 'run', 'workflow.yaml');
    expect(early).toMatchObject({ code: 2, stdout: '', stderr: expect.stringMatching(/workflow\.yaml.* init\n$/) });
    const made = await init('--yes');
    expect(made).toMatchObject({ code: 0, stderr: '' });
    expect(made.stdout).toBe(
      'Wrote workflow.yaml: 2 projects, at most $5\n' +
        'Next, at no cost: claude-code-agent run workflow.yaml --rehearse\n' +
        'Then, for real: claude-code-agent run workflow.yaml\n',
    );
    expect(read().sessions).toEqual({
      api: { project: './api', prompt: '{{task}}' },
      web: { project: './group/web', prompt: '{{task}}' },
    });
    expect(await user.runWith({ cwd: here }, 'template', 'validate', 'workflow.yaml')).toMatchObject({ code: 0 });
    const ran = await user.runWith({ cwd: here }, 'run', 'workflow.yaml', '--rehearse', '--output', 'quiet');
    expect(ran).toMatchObject({ code: 0 });
    const sessions = await user.json<{ projectPath: string }[]>('session', 'list', '@');
    expect(await user.json('show', '@')).toMatchObject({ status: 'completed', sessions: [{}, {}] });
    expect(sessions).toHaveLength(2);
    expect((await user.json<{ sessions: { projectPath: string }[] }>('show', '@')).sessions.length).toBe(2);
    const projects = await Promise.all(
      ['api', 'web'].map((name) => user.json<{ projectPath: string }>('show', `@/${name}`)),
    );
    expect(projects.map(({ projectPath }) => projectPath)).toEqual([api, web]);
  },
  timeoutMs,
);

test('a check command that needs packages comes with the command that installs them', async () => {
  const tests = JSON.stringify({ scripts: { test: 'vitest run' } });
  repository('api', { 'package.json': tests, 'pnpm-lock.yaml': '' });
  repository('cli', { 'go.mod': 'module cli\n' });
  mkdirSync(join(repository('web', { 'package.json': tests, 'package-lock.json': '{}' }), '.claude-code-agent'));
  writeFileSync(join(here, 'web', '.claude-code-agent', 'project.yaml'), 'setup: make deps\n');
  await init('--yes');
  const { api, cli, web } = read().sessions;
  expect(api).toMatchObject({ setup: 'pnpm install --frozen-lockfile', accept: 'pnpm test' });
  expect(cli).toEqual({ project: './cli', prompt: '{{task}}', accept: 'go test ./...' });
  expect(web).toEqual({ project: './web', prompt: '{{task}}', accept: 'npm test' });
});

test('in a repository that repository is the project; without any, this folder is', async () => {
  here = repository('shop');
  mkdirSync(join(here, 'src'));
  await init('--yes');
  expect(read().sessions).toEqual({ shop: { project: '.', prompt: '{{task}}' } });
  here = user.project('plain');
  const made = await init('--yes');
  expect(made.stderr).toContain('No git repository was found here');
  expect(read().sessions).toEqual({ plain: { project: '.', prompt: '{{task}}' } });
});

test('each option is an answer, and the texts return from the file unchanged', async () => {
  repository('unasked');
  const [a, b] = [repository('a b'), user.project('x/a b')];
  const prompt = 'Say {{this}}: "a" # b\nand that.';
  const options = [
    '--project',
    a,
    '--project',
    'x/a b',
    '--project',
    b,
    '--accept',
    'grep "# x" f',
    '--max-budget-usd',
    '2.5',
  ];
  const made = await init('deep/mine.yaml', ...options, '--prompt', prompt, '--json');
  expect(made).toMatchObject({ code: 0, stderr: '' });
  expect(JSON.parse(made.stdout)).toEqual({ file: join(here, 'deep/mine.yaml'), projects: [a, b] });
  const sessions = {
    'a-b': { project: '../a b', prompt: '{{task}}', accept: 'grep "# x" f' },
    'a-b-2': { project: '../x/a b', prompt: '{{task}}', accept: 'grep "# x" f' },
  };
  expect(read('deep/mine.yaml')).toEqual({
    version: 1,
    name: 'deep',
    vars: { task: { default: prompt } },
    group: { maxBudgetUsd: 2.5, concurrent: 3 },
    sessions,
  });
  await user.runWith({ cwd: here }, 'group', 'create', 'made', '--from', 'deep/mine.yaml');
  expect(await user.json('show', 'made/a-b-2')).toMatchObject({ prompt, accept: 'grep "# x" f' });
  const piped = { cwd: here, stdin: 'From a pipe.\n' };
  expect(await user.runWith(piped, 'init', 'piped.yaml', '--prompt', '-')).toMatchObject({ code: 0 });
  expect(read('piped.yaml').vars.task.default).toBe('From a pipe.\n');
});

test('--from copies a template verbatim', async () => {
  const made = await init('--from', 'cross-repo-change');
  expect(made).toMatchObject({ code: 0, stdout: expect.stringContaining('run cross-repo-change.yaml --dry-run\n') });
  expect(readFileSync(join(here, 'cross-repo-change.yaml'), 'utf8')).toContain('run cross-repo-change --var');
});

test(
  'an existing file stays, unless the user confirms',
  async () => {
    repository('api');
    const file = join(here, 'workflow.yaml');
    writeFileSync(file, 'mine\n');
    for (const words of [['--yes'], ['--prompt', 'x'], ['workflow.yaml', '--from', 'cross-repo-change']]) {
      const refused = await init(...words);
      expect(refused).toMatchObject({ code: 2, stdout: '' });
      expect(refused.stderr).toContain('already exists. Give the path of another file, or remove it.');
    }
    const kept = ask('--prompt', 'x');
    await kept.shows('Replace it?');
    kept.type('n\r');
    expect(await kept.exited).toBe(0);
    expect(kept.text()).toContain('Nothing was written.');
    expect(readFileSync(file, 'utf8')).toBe('mine\n');
    const replaced = ask('--yes');
    await replaced.shows('Replace it?');
    replaced.type('y\r');
    expect(await replaced.exited).toBe(0);
    expect(read().version).toBe(1);
  },
  timeoutMs,
);

test(
  'on a terminal: five questions, each repeated after a mistake, and the rehearsal at the end',
  async () => {
    repository('api', { 'package.json': '{"scripts":{"test":"true"}}' });
    repository('web');
    const terminal = ask();
    await terminal.shows('Project folders', '[api, web]');
    terminal.type('api, nowhere\r');
    await terminal.shows('nowhere does not exist.');
    terminal.type('\r');
    await terminal.shows('What should be done in each?');
    terminal.type('Say hello.\r');
    await terminal.shows('Which command must succeed', '[npm test]');
    terminal.type('none\r');
    await terminal.shows('Budget cap in US dollars?', '[5]');
    terminal.type('nothing\r');
    await terminal.shows('It must be an amount in US dollars');
    terminal.type('3\r');
    await terminal.shows('Wrote workflow.yaml: 2 projects, at most $3', 'Rehearse it now');
    terminal.type('y\r');
    expect(await terminal.exited).toBe(0);
    expect(terminal.text()).toContain('2 of 2 sessions completed');
    expect(read()).toMatchObject({
      vars: { task: { default: 'Say hello.' } },
      group: { maxBudgetUsd: 3 },
      sessions: { api: { project: './api' }, web: {} },
    });
    expect(read().sessions.api.accept).toBeUndefined();
    expect(await user.json('ls')).toMatchObject([{ status: 'completed', rehearsal: true }]);
  },
  timeoutMs,
);

test.each<[string[], string]>([
  [[], 'there is no terminal to ask on'],
  [['', '--yes'], 'path of the file is empty'],
  [['-', '--yes'], 'written to a file'],
  [['.', '--yes'], 'is not a file'],
  [['--project', 'nowhere', '--yes'], 'nowhere does not exist'],
  [['--project', '', '--yes'], 'is empty'],
  [['--prompt', ' '], 'The text of --prompt'],
  [['--yes', '--accept', '{{x}}'], 'cannot be used in a shell command'],
  [['--yes', '--max-budget-usd', '0'], 'It must be an amount in US dollars'],
  [['--from', 'nothing'], 'nothing'],
  [['--from', 'cross-repo-change', '--prompt', 'x'], 'With --from, the template defines projects'],
  [['a.yaml', 'b.yaml'], 'Too many arguments'],
])('%j is refused, and nothing is written', async (words, said) => {
  const refused = await init(...words);
  expect(refused).toMatchObject({ code: 2, stdout: '' });
  expect(refused.stderr).toContain(said);
  expect(refused.stderr.split('\n')).toHaveLength(2);
  expect(readdirSync(here)).toEqual([]);
});
