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
  'recording phases is allowed while the run is in progress: %s',
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
    const allowed: string[] = settings.permissions?.allow ?? [];
    expect(allowed.includes('Bash(claude-code-agent faber phase:*)')).toBe(status === 'in_progress');
    // Nobody asked for what removes work trees or puts another run in the place of this one.
    expect(allowed.join()).not.toMatch(/faber:|worktrees|start/);
    removeGroup(group);
  },
);
