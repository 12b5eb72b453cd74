/**
 * Promises: claude is asked for its login where the settings of no session lie; the model of a session's settings is
 * said on the command line; a request that nobody hinted at is answered before the run is over, but a pause that is
 * asked for in that moment changes nothing.
 */
import { expect, test } from 'bun:test';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { sendRequest } from '../../../src/store/requests.ts';
import type { GroupFixture } from '../../support/group-fixture.ts';
import { begin, make, rig, withRig } from '../../support/rig-ground.ts';

withRig();

/** The settings of all its sessions. */
function share(group: GroupFixture, settings: object): void {
  mkdirSync(group.paths.sharedConfig, { recursive: true });
  writeFileSync(join(group.paths.sharedConfig, 'settings.json'), JSON.stringify(settings));
}

test('the login is asked for in a folder of its own, which is gone afterwards', async () => {
  const group = make([{ name: 'one' }]);
  share(group, { apiKeyHelper: '/opt/key' });
  const { processes } = group.world;
  const { run: real } = processes;
  const asked: { folder: string; hasSettings: boolean }[] = [];
  processes.run = async (options) => {
    const folder = options.env.CLAUDE_CONFIG_DIR ?? '';
    const ran = await real(options);
    if (options.args[0] === 'auth') asked.push({ folder, hasSettings: existsSync(join(folder, 'settings.json')) });
    return ran;
  };
  const run = group.run(rig.env);
  await (await begin(group, 'one')).succeed();
  expect(await run.result).toMatchObject({ kind: 'settled', status: 'completed' });
  expect(asked).toEqual([{ folder: join(group.paths.folder, 'login-check'), hasSettings: false }]);
  expect(existsSync(asked[0]?.folder ?? '')).toBe(false);
});

test('the model of the settings is said on the command line', async () => {
  const group = make([{ name: 'one' }]);
  share(group, { model: 'opus' });
  const run = group.run(rig.env);
  const fake = await begin(group, 'one');
  expect(fake.hello.args).toContain('--model=opus');
  await fake.succeed();
  await run.result;
});

test('a request without a hint is answered before the run is over', async () => {
  // So slow that no tick comes either.
  const group = make([{ name: 'one' }], {}, { speed: 0.02 });
  const { files } = group.world;
  const { watch } = files;
  files.watch = (path, onChange) => (path === group.paths.requests ? () => {} : watch(path, onChange));
  const run = group.run(rig.env);
  const fake = await begin(group, 'one');
  await run.event('session_identified');
  const at = new Date().toISOString();
  const runId = group.state().run?.id ?? '';
  sendRequest(group.world, group.paths, {
    id: crypto.randomUUID(),
    runId,
    at,
    kind: 'edit-group',
    config: { maxBudgetUsd: 5 },
  });
  await fake.succeed();
  expect(await run.result).toMatchObject({ kind: 'settled', status: 'completed' });
  expect(group.events().filter(({ type }) => type === 'request_answered')).toHaveLength(1);
});

test.each(['freeze', 'drain', 'now'] as const)('%s: a run whose last session has ended is over', async (mode) => {
  const group = make([{ name: 'one', fields: { retries: 0 } }]);
  const run = group.run(rig.env, {
    onEvent: ({ type }) => {
      if (type !== 'session_failed') return;
      const at = new Date().toISOString();
      const runId = group.state().run?.id ?? '';
      sendRequest(group.world, group.paths, { id: crypto.randomUUID(), runId, at, kind: 'pause', mode });
    },
  });
  const fake = await begin(group, 'one');
  fake.die('SIGKILL');
  expect(await run.result).toMatchObject({ kind: 'settled', status: 'failed' });
  expect(group.events().map(({ type }) => type)).not.toContain('group_frozen');
});
