/**
 * Promises, with the real claude against the scripted API: `group run --rehearse` completes a group, prints pure JSON
 * lines, and has the documented exit codes. Transcripts are readable, and no process is left.
 */
import { expect, test } from 'bun:test';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createRealWorld } from '../../../src/system/real-world.ts';
import { launcher, user, withUser } from '../../support/cli/user.ts';
import { git, Repository } from '../../support/git/repository.ts';
import { TestTerminal } from '../../support/terminal.ts';

withUser();

test('a rehearsed group runs in dependency order, and its transcript can be read', async () => {
  const group = await user.makeGroup();
  const ran = await user.run('group', 'run', group, '--rehearse', '--output', 'json');
  expect(ran).toMatchObject({ code: 0, stderr: '' });
  const events = ran.stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  const logged = events.filter(({ type }) => type !== 'session_progress');
  expect(logged.map(({ type, sessionId }) => `${type} ${sessionId?.slice(0, 3) ?? ''}`.trim())).toEqual([
    'header',
    'group_started',
    'session_started 001',
    'session_completed 001',
    'session_started 002',
    'session_completed 002',
    'group_completed',
  ]);
  expect(logged[1]).toMatchObject({ rehearsal: true });
  expect(await user.json('group', 'show', group)).toMatchObject({ status: 'completed', progress: { completed: 2 } });
  const log = await user.ok('session', 'logs', `${group}/api`);
  expect(log).toMatch(/^== attempt 1 started .*\n-- claude /);
  expect(log).toMatch(/\n> Bash [\s\S]*\n-- done: .*\n== attempt 1 completed: \$0\.\d\d/);
  expect(await user.ok('session', 'logs', `${group}/api`, '--grep', '^-- done')).not.toContain('\n');
  const raw = await user.ok('session', 'logs', `${group}/api`, '--raw');
  expect(raw.split('\n').map((line) => JSON.parse(line).type)).toContain('result');
  expect(await user.run('session', 'logs', `${group}/api`, '--follow')).toMatchObject({ code: 0, stdout: `${log}\n` });
  for (const what of ['show', 'budget']) {
    const shown = await user.ok('group', what, group);
    expect(shown).toContain('Rehearsal with a scripted model; the costs are not real.\n');
  }
  expect(await user.json('group', 'budget', group)).toMatchObject({ rehearsal: true });
  const again = await user.run('group', 'run', group, '--rehearse');
  expect(again).toMatchObject({ code: 0, stdout: '' });
  expect(again.stderr).toContain('already completed');
  const folder = join(user.data, 'session-groups', group);
  expect(createRealWorld().files.info(join(folder, 'rehearsal.json'))).toBeNull();
}, 120_000);

test('merging the work of a rehearsal asks for confirmation, and a script gets an error', async () => {
  const repository = new Repository(user.project('api'));
  repository.commit({ 'base.txt': 'base\n' });
  const script = join(user.folder, 'script.yaml');
  const step = `tool: Write, input: { file_path: "{{project}}/new.txt", content: x }`;
  await Bun.write(script, `version: 1\nsessions:\n  "*":\n    steps:\n      - { ${step} }\n      - text: done\n`);
  const group = await user.ok('group', 'create', 'auth');
  await user.ok('session', 'add', group, '--project', user.project('api'), '--isolate', 'worktree', '--prompt', 'x');
  await user.ok('group', 'run', group, '--rehearse', script, '--keep', '--output', 'quiet');
  const main = () => git(user.project('api'), 'rev-parse', 'main');
  const before = main();
  const fact = `Group ${group} is a rehearsal: its work comes from a script, not from a model.`;
  const wish = { cwd: user.folder, env: user.env, columns: 300 };
  for (const command of ['merge', 'pr']) {
    const terminal = new TestTerminal([launcher, 'group', command, group], wish);
    await terminal.until((screen) => screen.includes(`${fact} ${command === 'pr' ? 'Propose' : 'Merge'} it anyway?`));
    terminal.type('n\r');
    expect(await terminal.exited).toBe(0);
    terminal.close();
    expect(main()).toBe(before);
  }
  expect((await user.run('group', 'merge', group, '--dry-run')).stderr).not.toContain(fact);
  expect(await user.run('group', 'merge', group)).toMatchObject({
    code: 0,
    stderr: expect.stringContaining(`${fact}\n`),
  });
  expect(main()).not.toBe(before);
}, 120_000);

test('a retry of a rehearsal with --keep keeps its branches and worktrees', async () => {
  const repository = new Repository(user.project('api'));
  repository.commit({ 'base.txt': 'base\n' });
  const group = await user.ok('group', 'create', 'auth');
  await user.ok('session', 'add', group, '--project', user.project('api'), '--isolate', 'worktree', '--prompt', 'x');
  await user.ok('group', 'run', group, '--rehearse', '--keep', '--output', 'quiet');
  const retried = await user.run('session', 'retry', `${group}/001`, '--prompt', 'Again');
  expect(retried).toMatchObject({ code: 0, stderr: expect.not.stringContaining('Removed') });
  expect(git(user.project('api'), 'worktree', 'list').split('\n')).toHaveLength(2);
}, 120_000);

test('a rehearsal runs setup and acceptance like a real run, and removes its branches and worktrees', async () => {
  const repository = new Repository(user.project('api'));
  repository.commit({ 'base.txt': 'base\n' });
  const group = await user.ok('group', 'create', 'auth');
  // Package managers and toolchains need the home folder; registries and proxies need their variables.
  const check = `test "$HOME" = "${user.home}" && test "$SHOP_REGISTRY" = mine && test -z "$ANTHROPIC_API_KEY"`;
  const own = ['--project', user.project('api'), '--isolate', 'worktree', '--setup', check, '--accept', check];
  await user.ok('session', 'add', group, ...own, '--prompt', 'x');
  user.env.SHOP_REGISTRY = 'mine';
  user.env.ANTHROPIC_API_KEY = 'key';
  const ran = await user.run('group', 'run', group, '--rehearse');
  expect(ran).toMatchObject({ code: 0, stderr: expect.stringContaining('use --keep to keep them') });
  // Commands on removed branches are not suggested.
  expect(ran.stdout).not.toContain('group diff');
  expect(git(user.project('api'), 'branch', '--format=%(refname:short)')).toBe('main');
  expect(git(user.project('api'), 'worktree', 'list').split('\n')).toHaveLength(1);
  expect(readdirSync(join(user.data, 'w'))).toEqual([]);
}, 120_000);

test('a failed rehearsal names the command that removes its branches and worktrees, and it works', async () => {
  const project = user.project('api');
  new Repository(project).commit({ 'base.txt': 'base\n' });
  const group = await user.ok('group', 'create', 'auth');
  const own = ['--project', project, '--isolate', 'worktree', '--accept', 'false', '--accept-retries', '0'];
  await user.ok('session', 'add', group, ...own, '--prompt', 'x');
  const ran = await user.run('group', 'run', group, '--rehearse', '--output', 'quiet');
  const command = `group archive ${group} --force`;
  const said = `is not finished, so its branches and worktrees stay. Remove them with: claude-code-agent ${command}`;
  expect(ran).toMatchObject({ code: 1, stderr: expect.stringContaining(said) });
  await user.ok(...command.split(' '));
  expect(git(project, 'branch', '--format=%(refname:short)')).toBe('main');
  expect(git(project, 'worktree', 'list').split('\n')).toHaveLength(1);
}, 120_000);

test('a rehearsal obeys the hooks, rules and slash commands of the project', async () => {
  const project = user.project('api');
  const hook = { type: 'command', command: 'cat >> hooked.jsonl' };
  const settings = {
    permissions: { allow: ['Bash(sh allowed.sh)'] },
    hooks: { PreToolUse: [{ matcher: 'Bash', hooks: [hook] }] },
  };
  await Bun.write(join(project, '.claude/settings.json'), JSON.stringify(settings));
  await Bun.write(join(project, '.claude/commands/ship.md'), 'Ship it.\n');
  for (const name of ['allowed', 'denied']) await Bun.write(join(project, `${name}.sh`), `touch ${name}\n`);
  const steps = ['sh allowed.sh', 'sh denied.sh'].map((command) => ({ tool: 'Bash', input: { command } }));
  const script = join(user.folder, 'script.json');
  await Bun.write(script, JSON.stringify({ version: 1, sessions: { '*': { steps: [...steps, { text: 'done' }] } } }));
  const group = await user.ok('group', 'create', 'auth');
  await user.ok('session', 'add', group, '--project', project, '--trust', '--prompt', '/ship');
  await user.ok('group', 'run', group, '--rehearse', script, '--output', 'quiet');
  expect(readdirSync(project)).toContain('allowed');
  expect(readdirSync(project)).not.toContain('denied');
  expect(readFileSync(join(project, 'hooked.jsonl'), 'utf8')).toContain('sh allowed.sh');
}, 120_000);

test('a restarted conversation follows the script', async () => {
  const script = join(user.folder, 'script.json');
  const steps = [{ status: 400, message: 'Not this one.' }];
  await Bun.write(script, JSON.stringify({ version: 1, sessions: { api: { steps } } }));
  const group = await user.ok('group', 'create', 'auth');
  await user.ok('session', 'add', group, '--name', 'api', '--project', user.project('api'), '--prompt', 'x');
  expect((await user.run('group', 'run', group, '--rehearse', script)).code).toBe(1);
  // Without the script it would list its files and complete.
  expect((await user.run('session', 'retry', `${group}/api`, '--fresh')).code).toBe(1);
  expect(await user.json('session', 'show', `${group}/api`)).toMatchObject({ status: 'failed', attempts: 2 });
}, 120_000);

test('merging sessions that changed nothing says that the branch already has their work', async () => {
  new Repository(user.project('api')).commit({ 'base.txt': 'base\n' });
  const group = await user.ok('group', 'create', 'auth');
  await user.ok('session', 'add', group, '--project', user.project('api'), '--isolate', 'worktree', '--prompt', 'x');
  await user.ok('group', 'run', group, '--rehearse', '--keep', '--output', 'quiet');
  const merged = await user.ok('group', 'merge', group);
  expect(merged).toContain(`main of ${user.project('api')} already has the work of 1 session.`);
}, 120_000);
