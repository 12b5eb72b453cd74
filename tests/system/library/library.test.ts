/**
 * Promises: a program can import the package and run the demo's group in 40 lines: pause it, resume it and read the
 * results. A refused operation throws an error with a reason code and leaves nothing behind.
 */
import { afterEach, beforeEach, expect, test } from 'bun:test';
import { mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type GroupEvent, SessionGroup, SessionGroupError, SessionGroupRunner } from '../../../src/index.ts';
import { checkoutRoot, TestHome } from '../../support/cli.ts';

let machine: TestHome;
beforeEach(() => {
  machine = new TestHome();
});
afterEach(() => machine.remove());

const notes: string[] = [];
const surroundings = () => ({ env: machine.env, onNote: (line: string) => notes.push(line) });
const create = (fields: object = {}) => SessionGroup.create({ slug: 'own', ...fields }, surroundings());

/** The error it throws, as a SessionGroupError. */
async function refusal(work: () => Promise<unknown>): Promise<SessionGroupError> {
  const error = await work().then(
    () => null,
    (thrown: unknown) => thrown,
  );
  expect(error).toBeInstanceOf(SessionGroupError);
  return error as SessionGroupError;
}

test('the example creates, runs, pauses and resumes a group and prints its results', async () => {
  const example = join(checkoutRoot, 'examples', 'library', 'run.ts');
  expect(readFileSync(example, 'utf8').trim().split('\n').length).toBeLessThanOrEqual(45);
  const projects = join(machine.folder, 'projects');
  const setup = join(checkoutRoot, 'examples', 'cross-project-refactor', 'setup.sh');
  expect(Bun.spawnSync(['sh', setup, projects]).exitCode).toBe(0);
  const child = Bun.spawn([process.execPath, example, projects], {
    env: machine.env,
    cwd: machine.folder,
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'pipe',
  });
  const [stdout, stderr] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()]);
  expect({ stderr, code: await child.exited }).toEqual({ stderr: '', code: 0 });
  const lines = stdout.trim().split('\n');
  expect(lines).toContain('first run: paused');
  const told = lines.slice(lines.indexOf('second run: completed'));
  expect(told.map((line) => line.replace(/\$\d+\.\d\d/, '$'))).toEqual([
    'second run: completed',
    '  auth-module: completed, $',
    '  shared-library: completed, $',
    '  integration: completed, $',
    '  documentation: completed, $',
    'in all: $',
  ]);
  expect(lines.some((line) => line.startsWith('session_paused'))).toBe(true);
  expect(readFileSync(join(projects, 'project-a', 'src', 'auth.js'), 'utf8')).toContain('scrypt');
}, 120_000);

test('a group changed or run by a command is the same group in the library', async () => {
  const group = await create({ name: 'Own', config: { maxBudgetUsd: 2, maxConcurrentSessions: 1 } });
  const api = await group.add({ name: 'api', projectPath: machine.project('api'), prompt: 'Do it.', retries: 0 });
  await machine.ok('session', 'add', group.id, '--project', machine.project('web'), '--prompt', 'Go.', '--name', 'web');
  expect((await group.sessions()).map(({ id, name, status }) => [id, name, status])).toEqual([
    [api.id, 'api', 'pending'],
    [expect.any(String), 'web', 'pending'],
  ]);
  await group.raiseBudget(3);
  expect(await group.say(api, 'Mind the tests.')).toBe('next-attempt');
  await group.remove('web');
  const shown = JSON.parse(await machine.ok('group', 'show', group.id, '--json'));
  expect(shown).toMatchObject({ name: 'Own', config: { maxBudgetUsd: 3 }, sessions: [{ id: api.id }] });
  expect(await group.progress()).toEqual(shown.progress);
  const again = await SessionGroup.open('own', surroundings());
  expect([again.id, await again.status()]).toEqual([group.id, 'created']);

  const seen: GroupEvent['type'][] = [];
  for await (const { type } of group.events()) {
    seen.push(type);
    if (type === 'session_removed') break;
  }
  expect(seen[0]).toBe('group_created');
  const aborted = new AbortController();
  aborted.abort();
  for await (const _ of group.events({ signal: aborted.signal })) throw new Error('nothing more was asked for');

  await group.delete();
  expect((await refusal(() => group.progress())).reason).toBe('not-found');
  expect((await refusal(() => SessionGroup.open(group.id, surroundings()))).reason).toBe('not-found');
});

test('a run returns its outcome and can be stopped by an AbortSignal', async () => {
  const group = await create();
  await group.add({ name: 'api', projectPath: machine.project('api'), prompt: 'Do it.' });
  const stop = new AbortController();
  const runner = new SessionGroupRunner({ rehearse: true, signal: stop.signal });
  const run = runner.start(group);
  const seen: GroupEvent['type'][] = [];
  for await (const { type } of run.events) {
    seen.push(type);
    if (type === 'session_started') stop.abort();
  }
  expect(await run.result).toMatchObject({ status: 'paused', reason: 'signal', sessions: [{ status: 'paused' }] });
  expect(seen.at(-1)).toBe('group_paused');
  const result = await new SessionGroupRunner({ rehearse: true }).run(group, { maxConcurrent: 2, maxBudgetUsd: 4 });
  expect(result).toMatchObject({ status: 'completed', sessions: [{ name: 'api', status: 'completed' }] });
  expect(result.progress).toMatchObject({ totalSessions: 1, completed: 1, totalCost: result.sessions[0]?.cost });
  expect(await machine.ok('group', 'show', group.id)).toContain('2 sessions at once, cap $4.00');
  await group.archive();
  expect(await group.status()).toBe('archived');
}, 60_000);

test('a refused operation throws an error with a reason code and leaves nothing behind', async () => {
  const bad: readonly (readonly [object, string])[] = [
    [{ slug: 'No Slug' }, 'slug'],
    [{ name: 'a\nb' }, 'name of the group must be one line'],
    [{ config: { maxBudgetUsd: -1 } }, 'maxBudgetUsd of the group must be an amount'],
    [{ config: { maxConcurrentSessions: 0 } }, 'maxConcurrentSessions of the group must be a whole number'],
    [{ config: { onBudgetExceeded: 'ask' } }, 'onBudgetExceeded of the group must be one of'],
    [{ config: { maxConcurent: 2 } }, 'no setting "maxConcurent"'],
    [{ config: { constructor: 2 } }, 'no setting "constructor"'],
  ];
  for (const [fields, sentence] of bad) {
    const error = await refusal(() => create(fields));
    expect([error.reason, error.message]).toEqual(['usage', expect.stringContaining(sentence)]);
  }
  mkdirSync(join(machine.data, 'session-groups'), { recursive: true });
  expect(readdirSync(join(machine.data, 'session-groups'))).toEqual([]);

  const group = await create();
  const projectPath = machine.project('api');
  const refused = [
    await refusal(() => group.add({ projectPath: '/nowhere', prompt: 'Do it.' })),
    await refusal(() => group.add({ projectPath, prompt: ' ' })),
    await refusal(() => group.add({ projectPath })),
    await refusal(() => group.add({ projectPath, prompt: 'Do it.', dependsOn: ['nobody'] })),
    await refusal(() => group.add({ projectPath, prompt: 'Do it.', maxBudgetUsd: -1 })),
    await refusal(() => group.raiseBudget(0)),
    await refusal(() => group.retrySession('nobody')),
  ];
  expect(refused.map(({ reason }) => reason)).toEqual([
    ...['usage', 'usage', 'usage', 'not-found', 'usage', 'usage', 'not-found'],
  ] as SessionGroupError['reason'][]);
  expect(await group.sessions()).toEqual([]);

  const runner = new SessionGroupRunner({ rehearse: true });
  const empty = await refusal(() => runner.run(group));
  // The next step is a separate field, not part of the sentence.
  expect(empty.message).toMatch(/has no sessions\.$/);
  expect(empty.next).toContain('session add');
  expect((await refusal(() => runner.run(group, { errorThreshold: 0 }))).message).toContain('errorThreshold');
  const started = runner.start(group);
  const read = async () => {
    for await (const _ of started.events);
  };
  expect((await refusal(read)).message).toBe(empty.message);
  expect((await refusal(() => started.result)).message).toBe(empty.message);
});
