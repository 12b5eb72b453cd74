/**
 * Promises, with real processes of the program: F1, F4: the worker of a group with a damaged log is found and ended.
 * F5: a worker of another container, whose pids mean nothing here, never gets a second one beside it.
 */
import { afterAll, afterEach, beforeAll, expect, test } from 'bun:test';
import { readFileSync, writeFileSync } from 'node:fs';
import { launcher, Runners, removeGroup, startCommand, work } from '../../support/crash-rig.ts';
import { type Rig, startRig } from '../../support/fake-claude-rig.ts';
import { type GroupFixture, makeGroup } from '../../support/group-fixture.ts';

let rig: Rig;
let group: GroupFixture;
beforeAll(async () => {
  rig = await startRig();
});
afterAll(() => rig.stop());
afterEach(() => removeGroup(group));

const isLinux = process.platform === 'linux';
const alone = ['unshare', '--pid', '--fork', '--kill-child', '--mount-proc'];
const mayUnshare = isLinux && Bun.spawnSync([...alone, 'true']).exitCode === 0;
if (isLinux && !mayUnshare) console.log('F5 is not tried: no pid namespace can be made here.');

test.skipIf(!isLinux).each([
  ['names it', (log: string) => log.replace('"seq":2', '"seq":')],
  ['has lost it', (log: string) => `${log.split('\n', 4).join('\n').replace('"seq":2', '"seq":')}\n`],
] as const)(
  'F1, F4: a worker without a runner, whose damaged log %s, is told by doctor and ended by stop --all',
  async (_, damage) => {
    group = makeGroup([{ name: 'one' }]);
    const runners = new Runners(group, rig.env);
    const first = runners.crash({ at: 'after log session_identified' });
    const worker = await rig.nextFor(group.claudeId('one'));
    await worker.prompt();
    await worker.init();
    await first;
    const log = readFileSync(group.paths.events, 'utf8');
    writeFileSync(group.paths.events, damage(log));
    const say = (...args: string[]) => startCommand([launcher, ...args], runners.env).finished;
    const orphan = `Processes of sessions of ${group.groupId} go on without a runner: `;
    const doctor = await say('doctor');
    expect(doctor.stdout).toContain(`${group.groupId} is damaged: `);
    const told = doctor.stdout.split('\n').find((line) => line.includes(orphan));
    expect(told?.match(/\d+/g)).toContain(String(worker.hello.pid));
    const { code, stdout, stderr } = await say('stop', '--all');
    expect([code, stdout]).toEqual([1, 'No other group is running.\n']);
    expect(stderr).toMatch(
      new RegExp(`^${group.groupId}: Ended \\d+ process(es)? that a dead runner left behind\\. Line \\d of [^\n]*\n$`),
    );
    expect(stderr).not.toContain('Nothing was changed');
    await worker.ended;
    expect((await say('doctor')).stdout).not.toContain(orphan);
    expect(await say('stop', '--all')).toMatchObject({
      code: 1,
      stdout: 'No group is running.\n',
      stderr: expect.stringMatching(/: Line \d of .* Nothing was changed\./),
    });
    writeFileSync(group.paths.events, log);
  },
  60_000,
);

test.skipIf(!mayUnshare)(
  'F5: in another pid namespace a run, a delete and a stop are refused while the worker lives, and why says so',
  async () => {
    group = makeGroup([{ name: 'one' }]);
    const runners = new Runners(group, rig.env);
    const first = runners.crash({ at: 'after log session_identified' });
    const worker = await rig.nextFor(group.claudeId('one'));
    await worker.prompt();
    await worker.init();
    await first;
    const run = [launcher, 'group', 'run', group.groupId, '--output', 'quiet'];
    const refused = await startCommand([...alone, ...run], runners.env).finished;
    expect(refused.stderr).toContain('was started in another container (pid namespace) of this machine');
    expect(refused.code).not.toBe(0);
    expect(group.events().filter(({ type }) => type === 'session_starting')).toHaveLength(1);
    expect(group.world.processes.identify(worker.hello.pid)).not.toBeNull();

    const why = await startCommand([...alone, launcher, 'group', 'why', group.groupId], runners.env).finished;
    expect(why.stdout).toContain('was started in another container (pid namespace) of this machine; whether');

    const log = readFileSync(group.paths.events, 'utf8');
    const damaged = log.replace('"seq":2', '"seq":');
    for (const [text, ...args] of [
      [log, 'group', 'delete', group.groupId, '--force'],
      [log, 'stop', '--all'],
      [damaged, 'group', 'delete', group.groupId, '--force'],
      [damaged, 'stop', '--all'],
    ] as const) {
      writeFileSync(group.paths.events, text);
      const { code, stderr } = await startCommand([...alone, launcher, ...args], runners.env).finished;
      expect([code, stderr]).toEqual([1, expect.stringContaining('was started in another container (pid namespace)')]);
      expect(group.world.processes.identify(worker.hello.pid)).not.toBeNull();
      expect(readFileSync(group.paths.events, 'utf8')).toBe(text);
    }
    writeFileSync(group.paths.events, log);

    // Once it is gone, the next one starts, whatever the pids of the former mean there.
    const again = rig.nextFor(group.claudeId('one'));
    process.kill(worker.hello.pid, 'SIGKILL');
    await worker.ended;
    const resumed = startCommand([...alone, ...run], runners.env);
    await work(await again);
    expect(await resumed.finished).toMatchObject({ code: 0, stderr: '' });
  },
  60_000,
);
