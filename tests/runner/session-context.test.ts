/** Promises: a session beside a FABER run in progress may do what its hooks tell it. Not covered: the hooks. */
import { afterAll, beforeAll, expect, test } from 'bun:test';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { removeGroup } from '../support/crash-rig.ts';
import { type Rig, startRig } from '../support/fake-claude-rig.ts';
import { makeGroup } from '../support/group-fixture.ts';

let rig: Rig;
beforeAll(async () => {
  rig = await startRig();
});
afterAll(() => rig.stop());

test.each(['in_progress', 'completed'])(
  'calling faber is allowed when the run is %s and not otherwise',
  async (status) => {
    const group = makeGroup([{ name: 'a' }]);
    const files = {
      'faber/.active-run-id': 'run-1\n',
      'runs/run-1/state.json': JSON.stringify({ status, work_id: '258' }),
    };
    for (const [path, text] of Object.entries(files)) {
      const file = join(group.project('a'), '.fractary', path);
      mkdirSync(dirname(file), { recursive: true });
      writeFileSync(file, text);
    }
    const run = group.run(rig.env);
    const fake = await rig.nextFor(group.claudeId('a'));
    await fake.prompt();
    await fake.init();
    await fake.succeed();
    expect(await run.result).toMatchObject({ status: 'completed' });
    const settings = JSON.parse(readFileSync(join(group.session('a').config, 'settings.json'), 'utf8'));
    const allowed = status === 'in_progress' ? { permissions: { allow: ['Bash(claude-code-agent faber:*)'] } } : {};
    expect({ permissions: settings.permissions }).toEqual({ permissions: undefined, ...allowed });
    removeGroup(group);
  },
);
