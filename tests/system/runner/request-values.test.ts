/**
 * F12: what is asked of a runner by a file is checked like what a user types: nothing gets into a group this way that
 * no command would let in, the sender is told what is wrong with it, and the run goes on.
 */
import { expect, test } from 'bun:test';
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { NewSession, RequestBody } from '../../../src/store/requests.ts';
import { Machine } from '../../support/cli.ts';
import { begin, make, rig, withRig } from '../../support/rig-ground.ts';

withRig();

const bad: Readonly<Record<string, readonly [Partial<NewSession>, string]>> = {
  'a negative budget': [{ maxBudgetUsd: -5 }, 'maxBudgetUsd'],
  'a budget of nothing': [{ maxBudgetUsd: 0 }, 'maxBudgetUsd'],
  'a name that is a path': [{ name: '../../x' }, 'name'],
  'a name of control characters': [{ name: 'a\u001b[2J' }, 'name'],
  'a description of two lines': [{ description: 'a\n::error::b' }, 'description'],
  'a blank prompt': [{ prompt: ' \n' }, 'prompt'],
  'a prompt with a NUL': [{ prompt: 'a\0b' }, 'prompt'],
  'a model that is an option': [{ model: '--dangerously-skip-permissions' }, 'model'],
  'a permission mode that is none': [{ permissionMode: 'all' as 'plan' }, 'permissionMode'],
  'a rule that is an option': [{ allowedTools: ['Edit', '--mcp-config'] }, 'allowedTools'],
  'retries without end': [{ retries: 1e9 }, 'retries'],
  'half a retry': [{ retries: 0.5 }, 'retries'],
  'a timeout of a year': [{ timeoutMs: 365 * 24 * 3_600_000 }, 'timeoutMs'],
  'a stall timeout of nothing': [{ stallTimeoutMs: 0 }, 'stallTimeoutMs'],
  'a blank acceptance command': [{ accept: '  ' }, 'accept'],
  'a set-up command with a NUL': [{ setup: 'true\0' }, 'setup'],
  'a project that is not there': [{ projectPath: '/nowhere' }, 'is no folder'],
  'a project that is a file': [{ projectPath: '/etc/passwd' }, 'is no folder'],
  'a relative project': [{ projectPath: '../x' }, 'projectPath'],
  'a repository that is not its own': [{ repository: '/etc' }, 'is not the repository'],
};

test('F12: sessions that no command would add', async () => {
  const group = make([{ name: 'one' }]);
  const run = group.run(rig.env);
  const fake = await begin(group, 'one');
  const session: NewSession = {
    description: '',
    projectPath: group.project('one'),
    prompt: 'do it',
    dependsOn: [],
    createdAt: new Date().toISOString(),
  };
  for (const [name, [fields, what]] of Object.entries(bad)) {
    const answer = await run.ask({ kind: 'add-session', session: { ...session, ...fields } });
    expect([name, answer]).toEqual([
      name,
      expect.objectContaining({ done: false, message: expect.stringContaining(what) }),
    ]);
  }
  symlinkSync(group.project('one'), join(group.folder, 'link'));
  const linked = { ...session, projectPath: join(group.folder, 'link') };
  expect(await run.ask({ kind: 'add-session', session: linked })).toMatchObject({ done: false });
  const wishes: readonly RequestBody[] = [
    { kind: 'edit-group', config: { maxBudgetUsd: -5 } },
    { kind: 'edit-group', config: { maxBudgetUsd: 1e300 } },
    { kind: 'resume-session', sessionId: group.id('one'), maxBudgetUsd: -1 },
    { kind: 'say', sessionId: group.id('one'), text: ' ' },
    { kind: 'say', sessionId: group.id('one'), text: 'a\0b' },
    { kind: 'retry-session', sessionId: group.id('one'), prompt: '' },
    { kind: 'edit-group', config: { warningThreshold: 0 } },
    { kind: 'edit-group', config: { onEvent: ' ' } },
    { kind: 'edit-group', add: [{ ...session, id: '002-x', projectPath: '/nowhere' }] },
    { kind: 'edit-session', sessionId: group.id('one'), changes: { prompt: null } },
  ];
  for (const wish of wishes) expect(await run.ask(wish)).toMatchObject({ done: false });
  expect(await run.ask({ kind: 'add-session', session })).toMatchObject({ done: true });
  await fake.succeed();
  const added = [...group.state().sessions.keys()].at(-1) as string;
  const second = await rig.nextFor(added.slice(4));
  await second.prompt();
  await second.init();
  await second.succeed();
  expect(await run.result).toMatchObject({ kind: 'settled', status: 'completed' });
  expect(group.state().sessions.size).toBe(2);
});

test('F12: files that are no requests', async () => {
  const group = make([{ name: 'one' }]);
  const run = group.run(rig.env);
  const fake = await begin(group, 'one');
  const runId = group.state().run?.id;
  const at = new Date().toISOString();
  const put = (name: string, text: string) => writeFileSync(join(group.paths.requests, name), text);
  put('huge.json', `"${'x'.repeat(17 * 1024 * 1024)}"`);
  put('deep.json', '['.repeat(100_000));
  put('list.json', '[]');
  put('kind.json', JSON.stringify({ id: 'kind', runId, at, kind: 'constructor' }));
  mkdirSync(join(group.paths.requests, 'folder.json'));
  expect(await run.ask({ kind: 'thaw' })).toMatchObject({ done: false });
  await fake.succeed();
  expect(await run.result).toMatchObject({ kind: 'settled', status: 'completed' });
});

test('F12: a schema that is nested too deep for the log is refused, and the run goes on', async () => {
  const group = make([{ name: 'one' }]);
  const run = group.run(rig.env);
  const fake = await begin(group, 'one');
  const session = {
    description: '',
    projectPath: group.project('one'),
    prompt: 'x',
    dependsOn: [],
    outputSchema: 'deep',
  };
  const at = new Date().toISOString();
  const body = {
    id: 'deep',
    runId: group.state().run?.id,
    at,
    kind: 'add-session',
    session: { ...session, createdAt: at },
  };
  const schema = `${'{"a":'.repeat(60_000)}1${'}'.repeat(60_000)}`;
  writeFileSync(
    join(group.paths.requests, 'deep.json'),
    JSON.stringify(body).replace('"outputSchema":"deep"', `"outputSchema":${schema}`),
  );
  const answer = await run.event('request_answered');
  expect(answer).toMatchObject({
    requestId: 'deep',
    done: false,
    message: expect.stringContaining('cannot be recorded'),
  });
  await fake.succeed();
  expect(await run.result).toMatchObject({ kind: 'settled', status: 'completed' });
});

test('F12: a command says the same of a session whose values it was not asked for', async () => {
  const machine = new Machine();
  const group = await machine.ok('group', 'create', 'x');
  const add = (...more: string[]) =>
    machine.run('session', 'add', group, '--project', machine.project('p'), '--prompt', 'x', ...more);
  for (const [option, value] of [
    ['--max-budget-usd', '-5'],
    ['--name', '../../x'],
    ['--model', '--x'],
    ['--timeout', '365d'],
    ['--accept', ' '],
  ] as const) {
    expect((await add(`${option}=${value}`)).code).toBe(2);
  }
  machine.remove();
});
