/** Promises: from outside it is seen that a session's set-up command runs, and when it does so no more. */
import { afterAll, beforeAll, expect, test } from 'bun:test';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { runningSetup } from '../../../src/app/watch/live-view.ts';
import type { SessionRecord } from '../../../src/core/session-state.ts';
import { until } from '../../support/cli.ts';
import { removeGroup } from '../../support/crash-rig.ts';
import { type Rig, startRig } from '../../support/fake-claude-rig.ts';
import { Repository } from '../../support/git/repository.ts';
import { makeGroup } from '../../support/group-fixture.ts';

let rig: Rig;
beforeAll(async () => {
  rig = await startRig();
});
afterAll(() => rig.stop());

test('from the first line of its log to its end', async () => {
  let project = '';
  const setup = 'touch ../begun; while ! test -e ../ready; do sleep 0.05; done';
  const fields = {
    isolate: 'worktree',
    setup,
    get repository() {
      return join(project, '.git');
    },
  } as const;
  const group = makeGroup(
    [{ name: 'a', project: 'app', fields }],
    {},
    {
      beforeSessions: (folder) => {
        project = join(folder, 'projects', 'app');
        new Repository(project).commit({ 'base.txt': 'base\n' });
      },
    },
  );
  const { folder } = group.session('a');
  const seen = () => runningSetup(group.world, group.paths, group.state().sessions.get(group.id('a')) as SessionRecord);
  expect(seen()).toBeNull();
  const run = group.run(rig.env);
  await until(() => existsSync(join(folder, 'begun')));
  await run.event('session_isolated');
  expect(seen()).toBe(join(folder, 'setup.log'));
  writeFileSync(join(folder, 'ready'), '');
  const claude = await rig.nextFor(group.claudeId('a'));
  await claude.prompt();
  expect(seen()).toBeNull();
  await claude.succeed();
  expect(await run.result).toMatchObject({ status: 'completed' });
  removeGroup(group);
}, 60_000);
