/** Promises, with real processes: the worker of a group with a damaged log is found and ended. */
import { expect, test } from 'bun:test';
import { readFileSync, writeFileSync } from 'node:fs';
import { launcher } from '../../support/cli.ts';
import { Runners, startCommand } from '../../support/crash-rig.ts';
import type { GroupFixture } from '../../support/group-fixture.ts';
import { begin, make, rig, withRig } from '../../support/rig-ground.ts';

withRig();
let group: GroupFixture;

const isLinux = process.platform === 'linux';
test.skipIf(!isLinux).each([
  ['names it', (log: string) => log.replace('"seq":2', '"seq":')],
  ['has lost it', (log: string) => `${log.split('\n', 4).join('\n').replace('"seq":2', '"seq":')}\n`],
] as const)(
  'a worker without a runner, whose damaged log %s, is reported by doctor and ended by stop --all',
  async (_, damage) => {
    group = make([{ name: 'one' }]);
    const runners = new Runners(group, rig.env);
    const first = runners.crash({ at: 'after log session_identified' });
    const worker = await begin(group, 'one');
    await first;
    const log = readFileSync(group.paths.events, 'utf8');
    writeFileSync(group.paths.events, damage(log));
    const say = (...args: string[]) => startCommand([launcher, ...args], runners.env).finished;
    const orphan = `Processes of sessions of ${group.groupId} are running without a runner: `;
    const doctor = await say('doctor');
    expect(doctor.stdout).toContain(`${group.groupId} is damaged: `);
    const told = doctor.stdout.split('\n').find((line) => line.includes(orphan));
    expect(told?.match(/\d+/g)).toContain(String(worker.hello.pid));
    const { code, stdout, stderr } = await say('stop', '--all');
    expect([code, stdout]).toEqual([1, 'No other group is running.\n']);
    expect(stderr).toMatch(
      new RegExp(`^${group.groupId}: Ended \\d+ process(es)? left by a dead runner\\. Line \\d of [^\n]*\n$`),
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
