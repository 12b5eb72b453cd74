/**
 * Promises: what a claude cannot do for a session, a project that would be refused and a version that is not there are
 * told before a run begins and by `group plan` and `--dry-run`, not session by session in the middle of it.
 */
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'bun:test';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { broken, holds, type Seen } from '../../src/trial/claims.ts';
import { type Rig, startRig } from '../support/fake-claude-rig.ts';
import { noteTried } from '../support/tried.ts';
import { Night } from './night.ts';

let rig: Rig;
let user: Night;
beforeAll(async () => {
  rig = await startRig();
});
afterAll(() => rig.stop());
beforeEach(() => {
  user = new Night(rig);
});
afterEach(() => user.remove());

interface Plan {
  readonly missing: { readonly sessionId?: string; readonly message: string; readonly next: string }[];
}

/** A workflow of two sessions, of which the second says this besides; its path. */
function workflow(session: string): string {
  const file = join(user.folder, 'change.yaml');
  const task = `project: "${user.project('api')}", prompt: Do it.`;
  writeFileSync(file, `version: 1\ntitle: W\nsessions: { a: { ${task} }, b: { ${task}, ${session} } }\n`);
  return file;
}

const trust = 'keep the hooks and variables of an untrusted project from having an effect';
const limits = 'limit the memory of its commands on this machine';
const unable: [string, string, string[], string, Seen | undefined][] = [
  ['untrusted', 'untrusted: true', ['--untrusted'], `was tried, and it cannot ${trust}.`, broken('untrusted', 'x')],
  ['memory', 'memory: 2000', ['--memory', '2000'], `was tried, and it cannot ${limits}.`, broken('memory', 'x')],
  ['memory, which nobody tried', 'memory: 2000', ['--memory', '2000'], `can ${limits}.`, undefined],
];

test.each(unable)('what claude cannot do is refused before anything is created or paid: %s', async (...given) => {
  const [, said, options, why, seen] = given;
  noteTried(user.data, rig.program, ...(seen === undefined ? [] : [seen]));
  const file = workflow(said);
  const before = rig.invocations.length;
  for (const more of [[], ['--detach']]) {
    const refused = await user.run('run', file, '--output', 'text', ...more);
    expect({ code: refused.code, stdout: refused.stdout }).toEqual({ code: 2, stdout: '' });
    expect(refused.stderr).toMatch(/Session b: .*leave out --/s);
    expect(refused.stderr).toContain(why);
  }
  expect(await user.json<unknown[]>('group', 'list')).toEqual([]);
  const dry = await user.run('run', file, '--dry-run', '--output', 'json');
  expect(dry.code).toBe(1);
  const planned = JSON.parse(dry.stdout) as Plan;
  expect(planned.missing.map(({ message }) => message)).toEqual([expect.stringContaining(why)]);

  const group = await user.group('one', { first: [], second: ['--depends-on', 'first', ...options] });
  for (const command of [['run'], ['run', '--detach'], ['resume']]) {
    const refused = await user.run('group', ...command, group, '--output', 'text');
    expect({ code: refused.code, stdout: refused.stdout }).toEqual({ code: 2, stdout: '' });
    expect(refused.stderr).toContain(why);
  }
  expect(await user.json('group', 'show', group)).toMatchObject({ status: 'created' });
  const plan = await user.run('group', 'plan', group);
  expect(plan.code).toBe(1);
  expect(plan.stdout).toContain(`002 second: `);
  expect(plan.stdout).toContain(why);
  expect((await user.run('group', 'run', group, '--dry-run')).stdout).toContain(why);
  expect(rig.invocations.length).toBe(before);
});

test('what another session asks for keeps none from running that is run alone, nor a rehearsal', async () => {
  noteTried(user.data, rig.program, broken('untrusted', 'x'));
  const group = await user.group('one', { able: [], unable: ['--untrusted'] });
  const run = user.start('session', 'resume', 'one/able');
  await (await user.begun(group, 'able')).succeed();
  expect((await run.finished).code).toBe(0);
  expect((await user.run('session', 'resume', 'one/unable')).code).toBe(2);
  const planned = await user.run('group', 'run', group, '--dry-run', '--rehearse');
  expect(planned.stdout).not.toContain(trust);
  noteTried(user.data, rig.program, holds('untrusted'));
  const next = user.start('group', 'resume', group, '--output', 'quiet');
  await (await user.begun(group, 'unable')).succeed();
  expect((await next.finished).code).toBe(0);
});

test('a claude that endangers safety is told by a plan as well', async () => {
  noteTried(user.data, rig.program, broken('deny', 'a forbidden command ran'));
  const group = await user.group('one', { a: [] });
  const plan = await user.run('group', 'plan', group);
  expect(plan.code).toBe(1);
  expect(plan.stdout).toContain('A session can do what was forbidden (a forbidden command ran).');
  expect((await user.run('group', 'run', group, '--dry-run', '--accept-claude', '2.1.197')).code).toBe(0);
});

test('a project that switches compaction off is told before its session is started', async () => {
  const bad = user.project('bad');
  mkdirSync(join(bad, '.claude'));
  const settings = join(bad, '.claude', 'settings.json');
  writeFileSync(settings, JSON.stringify({ env: { DISABLE_COMPACT: '1' } }));
  const group = await user.group('one', { good: [], bad: [] });
  const why = `${settings} sets DISABLE_COMPACT`;
  for (const command of [
    ['plan', group],
    ['run', group, '--dry-run'],
  ]) {
    const plan = await user.run('group', ...command);
    expect(plan.code).toBe(1);
    expect(plan.stdout).toContain(`002 bad: ${why}`);
  }
  const run = user.start('group', 'run', group, '--output', 'text');
  await (await user.begun(group, 'good')).succeed();
  const { code, stderr } = await run.finished;
  expect(code).toBe(1);
  expect(stderr.split('\n').filter((line) => line.includes(why))).toEqual([
    expect.stringMatching(/^Session bad will not start: .*Remove it there/),
  ]);

  const file = join(user.folder, 'bad.yaml');
  writeFileSync(file, `version: 1\ntitle: W\nsessions: { a: { project: "${bad}", prompt: Do it. } }\n`);
  const groups = await user.json('group', 'list');
  const refused = await user.run('run', file, '--output', 'text');
  expect({ code: refused.code, stdout: refused.stdout }).toEqual({ code: 2, stdout: '' });
  expect(refused.stderr).toContain(why);
  expect(await user.json('group', 'list')).toEqual(groups);
});

test('a version that is accepted is the one that is installed, or nothing begins', async () => {
  const group = await user.group('one', { a: [] });
  const why = '--accept-claude names 2.1.198, but the claude that is installed is 2.1.197.';
  for (const command of [
    ['group', 'run', group],
    ['group', 'run', group, '--detach'],
    ['run', workflow('memory: 2000')],
  ]) {
    const refused = await user.run(...command, '--output', 'text', '--accept-claude', '2.1.198');
    expect({ code: refused.code, stdout: refused.stdout }).toEqual({ code: 2, stdout: '' });
    expect(refused.stderr).toContain(why);
  }
  expect(await user.json<unknown[]>('group', 'list')).toHaveLength(1);
  const planned = await user.run('group', 'run', group, '--dry-run', '--accept-claude', '2.1.198');
  expect([planned.code, planned.stdout]).toEqual([1, expect.stringContaining(why)]);
  // What was accepted once and is on record says nothing of what is installed today.
  const other = await user.group('two', { b: [] }, '--accept-claude', '2.1.100');
  const run = user.start('group', 'run', other, '--output', 'quiet');
  await (await user.begun(other, 'b')).succeed();
  expect((await run.finished).code).toBe(0);
});
