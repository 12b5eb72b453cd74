/**
 * Promises, with the real claude against the scripted API: `group run --rehearse` completes a group, prints pure JSON
 * lines, exits as the table says; transcripts read well; nothing keeps running.
 */
import { afterEach, beforeEach, expect, test } from 'bun:test';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { findRehearsal } from '../../../src/rehearsal/serve.ts';
import { createRealWorld } from '../../../src/system/real-world.ts';
import { launcher, User } from '../../support/cli/user.ts';
import { git, Repository } from '../../support/git/repository.ts';
import { TestTerminal } from '../../support/terminal.ts';

let user: User;
beforeEach(() => {
  user = new User();
});
afterEach(() => user.remove());

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
    expect(shown).toContain('A rehearsal: no model is asked, and the figures are play money.\n');
  }
  expect(await user.json('group', 'budget', group)).toMatchObject({ rehearsal: true });
  const again = await user.run('group', 'run', group, '--rehearse');
  expect(again).toMatchObject({ code: 0, stdout: '' });
  expect(again.stderr).toContain('completed already');
  const folder = join(user.data, 'session-groups', group);
  expect(createRealWorld().files.info(join(folder, 'rehearsal.json'))).toBeNull();
}, 120_000);

test('a script that is piped in is kept: the rehearsal goes on with it', async () => {
  const group = await user.makeGroup();
  const piped = (stdin: string, ...args: string[]) => user.runWith({ stdin }, ...args);
  const faulty = await piped(
    'version: 1\nsessions: { api: { steps: [{ say: x }] } }\n',
    'resume',
    group,
    '--rehearse',
    '-',
  );
  expect(faulty).toMatchObject({ code: 2, stdout: '' });
  expect(faulty.stderr).toContain('standard input:2:');
  const script = 'version: 1\nsessions: { "*": { steps: [{ text: Piped. }, { text: Piped again. }] } }\n';
  const copied = await piped(script, 'group', 'copy', group, '--rehearse', '-');
  expect(copied).toMatchObject({ code: 0, stderr: '' });
  await user.ok('group', 'run', '@', '--output', 'quiet');
  expect(await user.json('show', '@/api')).toMatchObject({ result: 'Piped.' });
  await piped(script, 'resume', group, '--rehearse', '-', '--output', 'quiet');
  expect(await user.json('show', `${group}/api`)).toMatchObject({ result: 'Piped.' });
}, 120_000);

test('U4: whoever merges the work of a rehearsal is asked, and a script is told', async () => {
  const repository = new Repository(user.project('api'));
  repository.commit({ 'base.txt': 'base\n' });
  const script = join(user.folder, 'script.yaml');
  const step = `tool: Write, input: { file_path: "{{project}}/new.txt", content: x }`;
  await Bun.write(script, `version: 1\nsessions:\n  "*":\n    steps:\n      - { ${step} }\n      - text: done\n`);
  const group = await user.ok('group', 'create', 'auth');
  await user.ok('session', 'add', group, '--project', user.project('api'), '--isolate', 'worktree', '--prompt', 'x');
  await user.ok('group', 'run', group, '--rehearse', script, '--output', 'quiet');
  const main = () => git(user.project('api'), 'rev-parse', 'main');
  const before = main();
  const fact = `Group ${group} is a rehearsal: a script said what to do, no model.`;
  const wish = { cwd: user.folder, env: user.env, columns: 300 };
  for (const command of ['merge', 'pr']) {
    const terminal = new TestTerminal([launcher, 'group', command, group], wish);
    await terminal.until((screen) =>
      screen.includes(`${fact} ${command === 'pr' ? 'Propose' : 'Merge'} it all the same?`),
    );
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

test('in GitHub Actions ends are folded, failures annotated, and the table closes', async () => {
  const script = join(user.folder, 'script.yaml');
  await Bun.write(
    script,
    'version: 1\nsessions:\n  api: { steps: [{ text: "fine\\n::error::no" }] }\n' +
      '  web: { steps: [{ status: 400, errorType: invalid_request_error, message: "no\\n100%" }] }\n',
  );
  const group = await user.makeGroup();
  const ran = await user.runWith({ env: { GITHUB_ACTIONS: 'true' } }, 'group', 'run', group, '--rehearse', script);
  expect(ran).toMatchObject({ code: 1, stderr: '' });
  const log = readFileSync(join(user.data, 'session-groups', group, 'events.jsonl'), 'utf8');
  // For those who go on with it.
  expect(log).toContain(`"script":"${script}"`);
  const lines = ran.stdout.split('\n');
  const commands = lines.filter((line) => line.startsWith('::'));
  expect(commands.slice(0, 4)).toEqual([
    '::group::001 api: result',
    '::endgroup::',
    expect.stringMatching(/^::group::002 web: failed /),
    '::endgroup::',
  ]);
  expect(commands.slice(4).map((line) => line.replace(/ title=.*/, ''))).toEqual(['::error', '::error']);
  expect(lines).toContain('| ::error::no');
  expect(lines.findLastIndex((line) => line.startsWith('SESSION '))).toBeGreaterThan(lines.indexOf(commands[3] ?? ''));
}, 120_000);

test('a rehearsed session is taken over with the scripted API, which ends with that', async () => {
  const script = join(user.folder, 'script.yaml');
  const works = '{ text: Working., tool: Bash, input: { command: echo begun } }';
  const fails = '{ status: 400, errorType: invalid_request_error, message: no }';
  await Bun.write(script, `version: 1\nsessions:\n  api: { steps: [${works}, ${fails}] }\n`);
  const group = await user.ok('group', 'create', 'auth');
  await user.add(group, 'api');
  expect(await user.run('group', 'run', group, '--rehearse', script, '--output', 'quiet')).toMatchObject({ code: 1 });
  const folder = join(user.data, 'session-groups', group);
  const world = createRealWorld();
  expect(findRehearsal(world, folder)).toBeNull();
  const terminal = new TestTerminal([launcher, 'session', 'attach', '@/api'], {
    cwd: user.folder,
    env: user.env,
    columns: 120,
  });
  try {
    await terminal.shows('Working.', '❯');
    expect(findRehearsal(world, folder)).not.toBeNull();
    terminal.type('/exit\r');
    expect(await terminal.exited).toBe(0);
    await terminal.shows('Nothing was said.');
  } finally {
    terminal.close();
  }
  expect(findRehearsal(world, folder)).toBeNull();
}, 60_000);
