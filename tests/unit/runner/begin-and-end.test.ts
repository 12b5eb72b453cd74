/**
 * Promises: the login check reads no settings of sessions, the model of a session's settings is on the command line,
 * and a request written without a hint is answered before the run ends.
 */
import { expect, test } from 'bun:test';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { GroupFixture } from '../../support/group-fixture.ts';
import { begin, make, rig, withRig } from '../../support/rig-ground.ts';

withRig();

/** The settings of all its sessions. */
function share(group: GroupFixture, settings: object): void {
  mkdirSync(group.paths.sharedConfig, { recursive: true });
  writeFileSync(join(group.paths.sharedConfig, 'settings.json'), JSON.stringify(settings));
}

test('the login is checked in a temporary folder, which is removed afterwards', async () => {
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

test('the model of the settings is passed on the command line', async () => {
  const group = make([{ name: 'one' }]);
  share(group, { model: 'opus' });
  const run = group.run(rig.env);
  const fake = await begin(group, 'one');
  expect(fake.hello.args).toContain('--model=opus');
  await fake.succeed();
  await run.result;
});
