/**
 * Promise: a session that is added to a group while it runs starts at once, in a worktree of its own or in the project,
 * also where the data root is a link; nothing that the runner makes for it beforehand is missing then.
 */
import { afterEach, beforeEach, expect, test } from 'bun:test';
import { renameSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { User } from '../../support/cli/user.ts';
import { begin, finish, work } from '../../support/crash-rig.ts';
import { type Rig, startRig } from '../../support/fake-claude-rig.ts';
import { Repository } from '../../support/git/repository.ts';

let rig: Rig;
let user: User;
beforeEach(async () => {
  rig = await startRig();
  user = new User(rig.env);
  const real = join(user.folder, 'real');
  renameSync(user.data, real);
  symlinkSync(real, user.data);
});
afterEach(() => {
  rig.stop();
  user.remove();
});

test('each kind of session joins a run that goes on', async () => {
  const repository = new Repository(user.project('app'));
  repository.commit({ 'README.md': '# App\n' });
  const group = await user.ok('group', 'create', 'joined');
  const add = async (name: string, ...more: string[]) => {
    const common = ['--project', repository.folder, '--prompt', `do ${name}`, '--name', name];
    return (await user.ok('session', 'add', group, ...common, ...more)).slice('001-'.length);
  };
  const first = await add('first', '--isolate', 'worktree');
  const run = user.start('group', 'run', group, '--concurrent', '4', '--output', 'quiet');
  const fake = await rig.nextFor(first);
  await begin(fake);
  const added = [
    await add('apart', '--isolate', 'worktree', '--setup', 'true'),
    await add('here', '--isolate', 'none', '--expect-changes'),
  ];
  for (const id of added) await work(await rig.nextFor(id));
  await finish(fake);
  expect(await run.finished).toMatchObject({ code: 0, stderr: '' });
  const { sessions } = await user.json<{ sessions: { name: string; status: string }[] }>('group', 'show', group);
  expect(sessions.map(({ name, status }) => `${name} ${status}`)).toEqual([
    'first completed',
    'apart completed',
    'here completed',
  ]);
}, 60_000);
