/**
 * Promises: while a run looks at a claude that is new to the machine, and has begun nothing, whoever pauses its group
 * or stops everything ends that run: afterwards nothing starts to spend, and what is said of it is true.
 */

import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'bun:test';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { SessionGroup } from '../../../src/index.ts';
import { Night, obeyInterrupt } from '../../support/cli/night.ts';
import { launcher, type Started, until } from '../../support/cli.ts';
import { type Rig, startRig } from '../../support/fake-claude-rig.ts';

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

/** A run that tries a claude which says nothing: the trial lasts until somebody ends it. */
async function starting(group: string, ...words: string[]): Promise<Started> {
  const program = join(user.folder, 'silent-claude');
  const begun = join(user.folder, 'begun');
  const version = '[ "$1" = --version ] && exec echo \'2.1.333 (Fake Claude)\'';
  writeFileSync(program, `#!/bin/sh\n${version}\n: > '${begun}'\nexec sleep 60\n`, { mode: 0o755 });
  user.env.CLAUDE_CODE_AGENT_CLAUDE = program;
  const run = user.start('group', ...(words.length === 0 ? ['run', group, '--output', 'quiet'] : words));
  await until(() => existsSync(begun));
  return run;
}

/** The run is over without having begun, and nothing was logged. */
async function expectNotBegun(run: Started, group: string): Promise<void> {
  const events = user.events(group).length;
  const { code, stdout, stderr } = await run.finished;
  expect({ code, stdout }).toEqual({ code: 3, stdout: '' });
  expect(stderr).toContain(`The run of ${group} was ended by a pause before it began; nothing was started.\n`);
  expect(user.events(group)).toHaveLength(events);
}

const endedStart = (group: string) => `Ended the run of ${group} before it began; nothing was started.\n`;

test.each(['stop --all', 'group pause GROUP', 'group pause GROUP --drain', 'group pause GROUP --freeze'])(
  'a group that was never run: %s',
  async (command) => {
    const group = await user.group('one', { a: [] });
    const run = await starting(group);
    const paused = await user.run(...command.replace('GROUP', group).split(' '));
    expect(paused).toEqual({ code: 0, stdout: endedStart(group), stderr: '' });
    await expectNotBegun(run, group);
    expect(await user.json('group', 'show', group)).toMatchObject({ status: 'created' });
    expect((await user.run('group', 'pause', group)).stderr).toContain('was not started yet');
  },
  60_000,
);

test('a paused group that is about to go on, and the JSON of it', async () => {
  const group = await user.group('one', { a: [] });
  const first = user.start('group', 'run', group, '--output', 'quiet');
  const fake = await user.begun(group, 'a');
  first.kill('SIGINT');
  await obeyInterrupt(fake, 0.01);
  await first.finished;
  const run = await starting(group, 'resume', group, '--output', 'quiet');
  const { code, stdout } = await user.run('group', 'pause', group, '--json');
  expect([code, JSON.parse(stdout)]).toEqual([0, { group, status: 'paused' }]);
  await expectNotBegun(run, group);
  expect((await user.run('group', 'pause', group)).stdout).toBe(`Group ${group} is paused already.\n`);
}, 60_000);

test('a run that was detached says it through the command that waits for it', async () => {
  const group = await user.group('one', { a: [] });
  const run = await starting(group, 'run', group, '--detach');
  expect(await user.run('stop', '--all')).toMatchObject({ code: 0, stdout: endedStart(group) });
  await expectNotBegun(run, group);
}, 60_000);

test('group delete does not take it away from under the run; with --force it ends the run first', async () => {
  const group = await user.group('one', { a: [] });
  const run = await starting(group);
  expect((await user.run('group', 'delete', group, '--yes')).code).not.toBe(0);
  const deleted = user.start('group', 'delete', group, '--force');
  expect((await run.finished).code).toBe(3);
  expect(await deleted.finished).toMatchObject({ code: 0, stderr: expect.stringContaining(`Deleted ${group}.`) });
}, 60_000);

test('a program that uses the library is told', async () => {
  const group = await user.group('one', { a: [] });
  const run = await starting(group);
  const opened = await SessionGroup.open(group, { env: user.env });
  expect(await opened.pause()).toEqual({ kind: 'settled', status: 'created', had: 'start' });
  await expectNotBegun(run, group);
}, 60_000);

test('who asks such a run for something else is told that it waits, and gets it when the run is ended', async () => {
  const group = await user.group('one', { a: [] });
  const run = await starting(group);
  const words = ['session', 'add', group, '--project', user.project('b'), '--prompt', 'Do it.', '--name', 'b'];
  const add = Bun.spawn([launcher, ...words], { cwd: user.folder, env: user.env, stdout: 'pipe', stderr: 'pipe' });
  const said = await add.stderr.getReader().read();
  const why = `The run of ${group} (pid ${run.pid}) has not begun yet;`;
  expect(Buffer.from(said.value ?? []).toString()).toBe(`${why} what was asked for is done as soon as it has.\n`);
  expect((await user.run('stop', '--all')).stdout).toBe(endedStart(group));
  expect((await run.finished).code).toBe(3);
  expect(await add.exited).toBe(0);
  expect(await user.json('session', 'list', group)).toMatchObject([{ name: 'a' }, { name: 'b' }]);
}, 60_000);
