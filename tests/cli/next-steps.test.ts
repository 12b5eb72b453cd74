/** Promises: the next step that is named works when it is typed as it stands. */
import { afterEach, beforeEach, expect, test } from 'bun:test';
import { join } from 'node:path';
import { Ground, story } from './bad-input/ground.ts';

let user: Ground;
beforeEach(() => {
  user = new Ground();
});
afterEach(() => user.remove());

test('a rehearsal goes on as a rehearsal, with the script it was begun with', async () => {
  const script = join(user.folder, 'script.yaml');
  const run = { ...story.started.run, rehearsal: true, script } as const;
  const group = user.make('auth', [{ name: 'api' }], [{ ...story.started, run }, story.intended, story.spawned]);
  for (const command of ['show', 'watch', 'why', 'archive', 'merge', 'report']) {
    const { stdout, stderr } = await user.run('group', command, group);
    expect({ command, says: `${stdout}${stderr}`.replaceAll('\\', '') }).toEqual({
      command,
      says: expect.stringContaining(`claude-code-agent group run ${group} --rehearse`),
    });
  }
  // It is looked for, and nothing else is taken in its place.
  expect(await user.run('group', 'run', group, '--rehearse')).toMatchObject({
    code: 2,
    stderr: expect.stringContaining(`${script}, is gone. Put it back`),
  });
});
