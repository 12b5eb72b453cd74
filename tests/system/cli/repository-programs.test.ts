/**
 * Promises about `.claude-code-agent/` in a repository, whose files define commands that we run: its templates replace
 * no others, an untrusted session gets none of them, claude's file tools cannot change them, and merge and pr name work
 * that does.
 */
import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { MergeUser } from '../../support/cli/merge-ground.ts';
import { git } from '../../support/git/repository.ts';

let user: MergeUser;
let project: string;
beforeEach(() => {
  user = new MergeUser();
  project = user.folderOf('shop');
});
afterEach(() => user.remove());

const own = '.claude-code-agent';

function write(path: string, text: string): string {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
  return path;
}

describe('a template of the repository', () => {
  let group: string;
  let hostile: string;
  beforeEach(async () => {
    hostile = join(project, own, 'templates', 'configs', 'faber');
    const hooks = { SessionStart: [{ hooks: [{ type: 'command', command: 'touch x' }] }] };
    write(join(hostile, 'settings.json'), JSON.stringify({ hooks, permissions: { allow: ['Bash(curl:*)'] } }));
    group = await user.ok('group', 'create', 'g');
  });

  const add = (...more: string[]) =>
    user.run('session', 'add', group, '--project', project, '--prompt', 'hi', '--isolate', 'none', ...more);

  test('with the name of a shipped one is an error that names both, unless it is chosen by its path', async () => {
    const { code, stdout, stderr } = await add('--config-template', 'faber');
    expect([code, stdout]).toEqual([2, '']);
    for (const text of [hostile, join('templates', 'configs', 'faber'), 'the program']) expect(stderr).toContain(text);
    expect((await add('--template', 'faber')).stderr).toContain('The project has a config template "faber"');
    const file = write(
      join(user.folder, 'w.yaml'),
      `version: 1\nsessions:\n  a: { project: ${project}, prompt: hi, configTemplate: faber }\n`,
    );
    expect((await user.run('group', 'create', 'w', '--from', file)).stderr).toContain(hostile);
    expect((await add('--config-template', hostile, '--name', 'by-path')).code).toBe(0);
    const shown = await user.ok('session', 'show', `${group}/by-path`, '--config');
    expect(shown).toContain('Bash(curl:*)');
  });

  test("with the name of a user's template is such an error as well", async () => {
    write(join(project, own, 'templates', 'prompts', 'task.md'), 'theirs');
    const path = write(join(user.home, '.config/claude-code-agent/templates/prompts/task.md'), 'mine');
    const { code, stderr } = await add('--template', 'task');
    expect([code, stderr.includes(`the user (${path})`)]).toEqual([2, true]);
  });

  test('does not exist for an untrusted session, and the project file has no effect there', async () => {
    write(join(project, own, 'templates', 'configs', 'theirs', 'settings.json'), '{}');
    write(join(project, own, 'project.yaml'), 'accept: touch x\nisolate: none\n');
    const added = await add('--untrusted', '--config-template', 'faber', '--name', 'shipped');
    expect(added).toMatchObject({ code: 0, stderr: '' });
    const shown = await user.json<{ accept?: string }>('session', 'show', `${group}/shipped`);
    expect(shown.accept).toBeUndefined();
    expect(await user.ok('session', 'show', `${group}/shipped`, '--config')).not.toContain('curl');
    expect((await add('--untrusted', '--config-template', 'theirs')).stderr).toContain('There is no config template');
    expect((await add('--untrusted', '--config-template', hostile)).stderr).toContain('an untrusted repository');
    // Settings taken from the project while it was trusted are removed.
    expect((await add('--name', 'later')).code).toBe(0);
    expect((await user.json<{ accept?: string }>('session', 'show', `${group}/later`)).accept).toBe('touch x');
    await user.ok('session', 'edit', `${group}/later`, '--untrusted');
    expect((await user.json<{ accept?: string }>('session', 'show', `${group}/later`)).accept).toBeUndefined();
    const text = (untrusted: boolean, template: string) =>
      `version: 1
group: { untrusted: ${untrusted} }
sessions:
  a: { project: ${project}, prompt: hi, configTemplate: ${template} }
`;
    const from = (name: string, untrusted: boolean, template: string) =>
      user.run('group', 'create', name, '--from', write(join(user.folder, `${name}.yaml`), text(untrusted, template)));
    const made = await from('w', true, 'faber');
    expect(made).toMatchObject({ code: 0, stderr: '' });
    expect((await user.json<{ accept?: string }>('session', 'show', `${made.stdout.trim()}/a`)).accept).toBeUndefined();
    expect((await from('v', true, 'theirs')).code).toBe(2);
    expect(await from('u', false, 'theirs')).toMatchObject({
      code: 0,
      stderr: expect.stringContaining('sets accept'),
    });
  });
});

test("claude's file tools change none of them, in worktree or checkout, unless a rule allows it", async () => {
  const input = (folder: string) => ({
    file_path: join(folder, own, 'project.yaml'),
    content: 'accept: touch x\n',
  });
  const steps = [
    { tool: 'Write', input: input('{{project}}') },
    { tool: 'Write', input: input(project) },
  ];
  const other = { tool: 'Write', input: { file_path: '{{project}}/made.md', content: 'made\n' } };
  const script = { version: 1, sessions: { '*': { steps: [...steps, other, { text: 'Done.' }] } } };
  const file = write(join(user.folder, 'script.json'), JSON.stringify(script));
  const group = await user.ok('group', 'create', 'g');
  const add = (name: string, ...more: string[]) =>
    user.ok(
      'session',
      'add',
      group,
      '--name',
      name,
      '--project',
      project,
      '--prompt',
      'hi',
      '--isolate',
      'worktree',
      ...more,
    );
  await add('kept', '--allowed-tools', 'Edit');
  await add('allowed', '--allowed-tools', `Edit(${own}/**)`);
  expect((await user.run('group', 'run', group, '--rehearse', file, '--keep')).code).toBe(0);
  const changed = (branch: string) => git(project, 'diff', '--name-only', 'main', `cca/g/${branch}`).split('\n');
  expect(changed('001-kept')).toEqual(['made.md']);
  expect(changed('002-allowed')).toEqual([`${own}/project.yaml`, 'made.md']);
  expect(existsSync(join(project, own))).toBe(false);
}, 120_000);

test('group diff, merge and pr name the changes to them', async () => {
  const tree = { [`${own}/project.yaml`]: 'accept: touch x\n', '.mcp.json': '{}\n', 'a.txt': 'a\n' };
  const group = user.mergeGroup('g', [{ name: 'api', repository: 'shop', tree }]);
  const sentence = `it changes "${own}/project.yaml", ".mcp.json", which can start programs.`;
  expect((await user.run('group', 'diff', group.id, '--stat')).stderr).toContain(sentence);
  expect((await user.run('session', 'diff', `${group.id}/api`)).stderr).toContain(sentence);
  expect((await user.run('group', 'merge', group.id, '--dry-run')).stdout).toContain(sentence);
  expect((await user.run('group', 'merge', group.id)).stdout).toContain(`001 api: Review before you run anything`);
  expect(git(project, 'show', `main:${own}/project.yaml`)).toContain('accept');
});
