/**
 * Promises: while a run checks a claude that is new to the machine and has started nothing, a pause or stop ends that
 * run. Nothing starts to spend afterwards, and the output says what happened.
 */

import { expect, test } from 'bun:test';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { nightUser, withNight } from '../../support/cli/night.ts';
import { type StartedCommand, until } from '../../support/cli.ts';

withNight();

/** A run that checks a claude without output: the check lasts until it is ended. */
async function starting(group: string, ...words: string[]): Promise<StartedCommand> {
  const program = join(nightUser.folder, 'silent-claude');
  const begun = join(nightUser.folder, 'begun');
  const version = '[ "$1" = --version ] && exec echo \'2.1.333 (Fake Claude)\'';
  writeFileSync(program, `#!/bin/sh\n${version}\n: > '${begun}'\nexec sleep 60\n`, { mode: 0o755 });
  nightUser.env.CLAUDE_CODE_AGENT_CLAUDE = program;
  const run = nightUser.start('group', ...(words.length === 0 ? ['run', group, '--output', 'quiet'] : words));
  await until(() => existsSync(begun));
  return run;
}

/** The run has ended without starting, and nothing was logged. */
async function expectNotBegun(run: StartedCommand, group: string): Promise<void> {
  const events = nightUser.events(group).length;
  const { code, stdout, stderr } = await run.finished;
  expect({ code, stdout }).toEqual({ code: 3, stdout: '' });
  expect(stderr).toContain(`The run of ${group} was paused before it started.\n`);
  expect(nightUser.events(group)).toHaveLength(events);
}

const endedStart = (group: string) => `Ended the run of ${group} before it began; nothing was started.\n`;

test.each(['stop --all', 'group pause GROUP', 'group pause GROUP --drain', 'group pause GROUP --freeze'])(
  'a group that was never run: %s',
  async (command) => {
    const group = await nightUser.group('one', { a: [] });
    const run = await starting(group);
    const paused = await nightUser.run(...command.replace('GROUP', group).split(' '));
    expect(paused).toEqual({ code: 0, stdout: endedStart(group), stderr: '' });
    await expectNotBegun(run, group);
    expect(await nightUser.json('group', 'show', group)).toMatchObject({ status: 'created' });
    expect((await nightUser.run('group', 'pause', group)).stderr).toContain('has not been started');
  },
  60_000,
);

test('group delete refuses a group with a live run; with --force it ends the run first', async () => {
  const group = await nightUser.group('one', { a: [] });
  const run = await starting(group);
  expect((await nightUser.run('group', 'delete', group, '--yes')).code).not.toBe(0);
  const deleted = nightUser.start('group', 'delete', group, '--force');
  expect((await run.finished).code).toBe(3);
  expect(await deleted.finished).toMatchObject({ code: 0, stderr: expect.stringContaining(`Deleted ${group}.`) });
}, 60_000);
