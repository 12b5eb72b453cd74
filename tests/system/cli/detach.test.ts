/**
 * Promises: `--detach` returns when its own runner runs the group, or with that runner's refusal. The runner outlives
 * the terminal, holds the group alone, and every stop command stops it.
 */
import { afterEach, beforeEach, expect, test } from 'bun:test';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Command } from '@commander-js/extra-typings';
import { runArguments } from '../../../src/app/run/detach.ts';
import { type RunCommandOptions, runCommandOptions, withRunOptions } from '../../../src/cli/options/options.ts';
import { groupSettings } from '../../../src/core/definitions.ts';
import { createRealWorld } from '../../../src/system/real-world.ts';
import { lives, Night } from '../../support/cli/night.ts';
import { launcher, User } from '../../support/cli/user.ts';
import { until } from '../../support/cli.ts';
import { fc } from '../../support/property.ts';
import { obeyInterrupt, rig, withRig } from '../../support/rig-ground.ts';

const world = createRealWorld();
let user: Night;
withRig();
beforeEach(() => {
  user = new Night(rig);
});
afterEach(async () => {
  // A failed test may have left a runner, which only this ends.
  for (const fake of rig.invocations) fake.exit(0);
  await user.run('stop', '--all');
  user.remove();
});

const statusOf = async (group: string) => (await user.json<{ status: string }>('group', 'show', group)).status;
const logsOf = (group: string): string[] => {
  const folder = join(user.data, 'session-groups', group, 'runner-logs');
  return readdirSync(folder).map((name) => readFileSync(join(folder, name), 'utf8'));
};
const pidIn = (text: string) => Number(/pid (\d+)/.exec(text)?.[1]);
/** Field 6 of /proc/PID/stat: the session id. */
const sessionOf = (pid: number) =>
  readFileSync(`/proc/${pid}/stat`, 'utf8')
    .replace(/^.*\) /s, '')
    .split(' ')[3];

test('a detached runner has its own session, is found, refuses a second runner and can be paused', async () => {
  const group = await user.group('auth', { api: [] });
  const detached = await user.run('group', 'run', group, '--detach');
  expect(detached).toMatchObject({ code: 0, stdout: `${group}\n` });
  expect(detached.stderr).toContain(`claude-code-agent group watch ${group}\n`);
  expect(detached.stderr).toContain(`claude-code-agent group pause ${group}\n`);
  const pid = pidIn(detached.stderr);
  expect(sessionOf(pid)).toBe(String(pid));
  const api = await user.begun(group, 'api');
  expect(await user.ok('group', 'list')).toContain('running');
  for (const more of [['--detach'], ['--output', 'quiet']]) {
    const second = await user.run('group', 'run', group, ...more);
    expect({ code: second.code, stdout: second.stdout }).toEqual({ code: 4, stdout: '' });
    expect(second.stderr.trim().split('\n')).toHaveLength(1);
  }
  const pause = user.start('group', 'pause', group);
  await obeyInterrupt(api, 0.01);
  expect(await pause.finished).toMatchObject({ code: 0 });
  expect(await statusOf(group)).toBe('paused');
  await until(() => world.processes.identify(pid) === null);
  // The refused ones have left none.
  const [log, ...others] = logsOf(group);
  expect(others).toEqual([]);
  expect(log).toContain('started (attempt 1)');
  expect(log).toContain('paused (user)');
}, 60_000);

test('delete --force pauses a running group and deletes it completely', async () => {
  const group = await user.group('auth', { api: [] });
  const pid = pidIn((await user.run('group', 'run', group, '--detach')).stderr);
  const api = await user.begun(group, 'api');
  const refused = await user.run('group', 'delete', group);
  expect(refused).toMatchObject({ code: 4, stdout: '' });
  expect(refused.stderr).toContain(`group pause ${group} · claude-code-agent group delete ${group} --force\n`);
  const pending = user.start('group', 'delete', group, '--force');
  await obeyInterrupt(api, 0.01);
  const deleted = await pending.finished;
  expect(deleted).toMatchObject({ code: 0, stdout: '' });
  expect(deleted.stderr).toContain(`Deleted ${group}.`);
  expect(readdirSync(join(user.data, 'session-groups'))).toEqual([]);
  await until(() => world.processes.identify(pid) === null);
  expect(lives(api)).toBe(false);
}, 60_000);

test('group delete --force: a live run ends with the message that its group is being deleted', async () => {
  for (const output of ['text', 'quiet'] as const) {
    const group = await user.group('auth', { api: [] });
    const run = user.start('group', 'run', group, '--output', output);
    const api = await user.begun(group, 'api');
    const deleting = user.start('group', 'delete', group, '--force');
    await obeyInterrupt(api, 0.01);
    const { code, stdout } = await run.finished;
    expect(code).toBe(3);
    const words = { text: 'Stopped because the group is being deleted.', quiet: ' deleted: 0 of 1 session completed' };
    expect(stdout).toContain(words[output]);
    expect(stdout).not.toContain('group resume');
    expect(await deleting.finished).toMatchObject({ code: 0 });
  }
}, 60_000);

test('Ctrl-C and a closed terminal do not end a detached runner; stop --all does', async () => {
  const group = await user.group('auth', { api: [] });
  let shown = '';
  const take = (bytes: Uint8Array): void => {
    shown += new TextDecoder().decode(bytes);
  };
  const shell = Bun.spawn(['/bin/sh', '-c', `'${launcher}' group run ${group} --detach; echo ready; cat`], {
    cwd: user.folder,
    env: user.env,
    terminal: { cols: 80, rows: 24, data: (_terminal, bytes) => take(bytes) },
  });
  await until(() => shown.includes('ready'));
  const pid = pidIn(shown);
  const api = await user.begun(group, 'api');
  shell.terminal?.write('\u0003');
  await shell.exited;
  shell.terminal?.close();
  expect(world.processes.identify(pid)).not.toBeNull();
  const stop = user.start('stop', '--all');
  await obeyInterrupt(api, 0.01);
  expect(await stop.finished).toMatchObject({ code: 0, stdout: expect.stringContaining(`Paused ${group}`) });
  await until(() => world.processes.identify(pid) === null);
  expect(lives(api)).toBe(false);
}, 60_000);

test('a refusal is printed and has its exit code', async () => {
  const empty = await user.ok('group', 'create', 'empty');
  const done = await user.group('done', { api: [] });
  const run = user.start('group', 'run', done, '--output', 'quiet');
  await (await user.begun(done, 'api')).succeed();
  await run.finished;
  const refused = await Promise.all([
    user.run('group', 'run', empty, '--detach'),
    user.run('group', 'run', done, '--detach'),
    user.run('group', 'run', 'nope', '--detach'),
    user.run('group', 'run', empty, '--detach', '--rehearse', 'missing.yaml'),
  ]);
  expect(refused.map(({ code, stdout }) => ({ code, stdout }))).toEqual(
    [2, 0, 2, 2].map((code) => ({ code, stdout: '' })),
  );
  expect(refused.map(({ stderr }) => stderr)).toEqual([
    expect.stringMatching(/^claude-code-agent: Group .* has no sessions\. .*\n$/),
    `Group ${done} is already completed.\n`,
    expect.stringContaining('nope'),
    expect.stringContaining('missing.yaml'),
  ]);
  expect(readdirSync(user.data)).not.toContain('runner-logs');
  expect(await statusOf(empty)).toBe('created');
}, 60_000);

test('a workflow is rehearsed by a detached runner and reported as JSON', async () => {
  // With the real claude.
  const user = new User();
  const project = user.project('api');
  writeFileSync(
    join(user.folder, 'flow.yaml'),
    `version: 1\nsessions:\n  api:\n    project: ${JSON.stringify(project)}\n    prompt: Do it.\n`,
  );
  const ran = await user.run('run', 'flow.yaml', '--rehearse', '--detach', '--output', 'json');
  expect(ran).toMatchObject({ code: 0 });
  const { groupId, log } = JSON.parse(ran.stdout) as { groupId: string; log: string };
  await until(() => readFileSync(log, 'utf8').includes('Transcripts:'));
  expect(await user.json('group', 'show', groupId)).toMatchObject({ status: 'completed' });
  user.remove();
}, 120_000);

test('the runner gets all options that the user typed', () => {
  const config = fc.record(
    {
      maxConcurrentSessions: fc.integer({ min: 1, max: 50 }),
      maxBudgetUsd: fc.double({ min: 0.01, max: 1000, noNaN: true }),
      onBudgetExceeded: fc.constantFrom(...groupSettings.onBudgetExceeded.words),
      onLimit: fc.constantFrom(...groupSettings.onLimit.words),
      commandsAtOnce: fc.integer({ min: 1, max: 50 }),
      errorThreshold: fc.integer({ min: 1, max: 50 }),
      minFreeMemoryBytes: fc.integer({ min: 0, max: 100_000 }).map((megabytes) => megabytes * 1_000_000),
      pauseOnError: fc.boolean(),
      respectDependencies: fc.boolean(),
      warmCache: fc.boolean(),
      acceptClaude: fc.constantFrom('2.1.400', '3.0.0-beta'),
    },
    { requiredKeys: [] },
  );
  const rehearse = fc.constantFrom(undefined, true as const, '/a b/--script.yaml');
  fc.assert(
    fc.property(config, rehearse, fc.boolean(), (given, script, retryFailed) => {
      const options: RunCommandOptions = {
        config: given,
        output: 'text',
        rehearse: script,
        retryFailed,
        isQuiet: false,
      };
      const command = withRunOptions(new Command().exitOverride()).option('--retry-failed');
      command.parse(runArguments(options, '/'), { from: 'user' });
      const { retryFailed: again, ...rest } = command.opts();
      expect(runCommandOptions(rest, again === true)).toEqual(options);
    }),
  );
});
