/**
 * F1, F2, F11: what a session can put in the place of its transcript, or of its group's progress, stops neither the
 * runner nor a command that looks at several groups, and the group can be paused and deleted.
 */
import { expect, test } from 'bun:test';
import { truncateSync } from 'node:fs';
import { join } from 'node:path';
import { user, withNight } from '../../support/cli/night.ts';
import { obeyInterrupt } from '../../support/rig-ground.ts';

withNight();

const folderOf = (group: string) => join(user.data, 'session-groups', group);
const transcriptOf = (group: string, name: string) =>
  join(folderOf(group), 'sessions', user.id(name), 'transcript.jsonl');
/** As long as a file may be on most disks; it takes no room there. */
const makeEndless = (path: string) => truncateSync(path, 15 * 1024 ** 4);

test('a session that makes its transcript endless holds up no other session, and can be paused', async () => {
  const group = await user.group('bad', { a: [], b: [], c: ['--depends-on', 'b'] });
  const run = user.start('group', 'run', group, '--output', 'quiet');
  const [a, b] = await Promise.all([user.begun(group, 'a'), user.begun(group, 'b')]);
  makeEndless(transcriptOf(group, 'a'));
  await b.succeed(0.01);
  await (await user.begun(group, 'c')).succeed(0.01);
  const pause = user.start('group', 'pause', group);
  // What it answers stands behind what is read.
  await obeyInterrupt(a, 0.01);
  expect(await pause.finished).toMatchObject({ code: 0, stdout: expect.stringContaining(`Paused ${group}.`) });
  expect((await run.finished).code).toBe(3);
}, 120_000);
