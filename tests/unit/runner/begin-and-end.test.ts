/**
 * Promises: the model of a session's settings is on the command line, and a request written without a hint is answered
 * before the run ends.
 */
import { expect, test } from 'bun:test';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { GroupFixture } from '../../support/group-fixture.ts';
import { begin, make, rig, withRig } from '../../support/rig-ground.ts';

withRig();

/** The settings of all its sessions. */
function share(group: GroupFixture, settings: object): void {
  mkdirSync(group.paths.sharedConfig, { recursive: true });
  writeFileSync(join(group.paths.sharedConfig, 'settings.json'), JSON.stringify(settings));
}

test('the model of the settings is passed on the command line', async () => {
  const group = make([{ name: 'one' }]);
  share(group, { model: 'opus' });
  const run = group.run(rig.env);
  const fake = await begin(group, 'one');
  expect(fake.hello.args).toContain('--model=opus');
  await fake.succeed();
  await run.result;
});
