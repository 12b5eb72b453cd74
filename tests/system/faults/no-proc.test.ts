/**
 * Promises: without /proc, processes are looked up by ps(1). A worker left by a killed runner is adopted, and all its
 * processes are ended with it, even where ps hides environments as on macOS. Linux without /proc, on which Bun cannot
 * run, is refused with the fix.
 */
import { expect, test } from 'bun:test';
import { launcher } from '../../support/cli.ts';
import { expectSettled, expectWorkedOnce, finish, identify, Runners } from '../../support/crash-rig.ts';
import type { GroupFixture } from '../../support/group-fixture.ts';
import { make, rig, withRig } from '../../support/rig-ground.ts';

withRig((one) => one.remove());
let group: GroupFixture;

/** Prefix of a command that hides /proc from it by an empty mount in its own namespace. */
const withoutProc = ['unshare', '-rm', 'sh', '-c', 'mount -t tmpfs none /proc && exec "$@"', 'sh'];
const canHideProc =
  process.platform === 'linux' &&
  Bun.which('unshare') !== null &&
  Bun.spawnSync([...withoutProc, 'test', '!', '-e', '/proc/self'], { stderr: 'ignore' }).success;

const alive = (pid: number) => group.world.processes.identify(pid) !== null;

test.skipIf(Bun.which('ps') === null).each([
  ['ps', 'adopted and reaped by what ps says'],
  ['blind', 'adopted and reaped where ps shows no environment: the tree tells what belongs to it'],
] as const)(
  'with %s: %s',
  async (table) => {
    group = make([{ name: 'one' }]);
    const runners = new Runners(group, rig.env);
    const first = runners.crash({ at: 'after log session_identified', table });
    const fake = await rig.nextFor(group.claudeId('one'));
    await identify(fake);
    await first;
    const marked = await fake.spawn(['sleep', '600']);
    const wiped = await fake.spawn(['sleep', '601'], 'wiped');
    expect([fake.hello.pid, marked, wiped].filter(alive).length).toBe(3);

    const second = runners.startAltered({ table });
    await finish(fake);
    expect(await second.finished).toMatchObject({ code: 0, stderr: '' });
    expect([fake.hello.pid, marked, wiped].filter(alive)).toEqual([]);
    expectSettled(group);
    expectWorkedOnce(group, ['one']);
    expect(group.events().filter(({ type }) => type === 'session_adopted').length).toBe(1);
  },
  60_000,
);

test.skipIf(!canHideProc)('Linux without /proc is refused with one sentence that names the fix', () => {
  const env = { PATH: process.env.PATH ?? '', HOME: '/' };
  const { exitCode, stdout, stderr } = Bun.spawnSync([...withoutProc, launcher, 'group', 'list'], { env });
  expect({ exitCode, stdout: stdout.toString() }).toEqual({ exitCode: 1, stdout: '' });
  expect(stderr.toString()).toMatch(/^claude-code-agent: \/proc is missing, [^\n]+ mount it [^\n]+\.\n$/);
});
