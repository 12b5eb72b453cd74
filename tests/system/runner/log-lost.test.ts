/**
 * Promises: a runner whose log is removed or truncated reports it, ends all workers and recreates nothing. It never
 * reports such a group as completed.
 */
import { expect, test } from 'bun:test';
import { existsSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { until } from '../../support/cli.ts';
import type { GroupFixture } from '../../support/group-fixture.ts';
import { begin, make, rig, withRig } from '../../support/rig-ground.ts';

withRig((one) => one.remove());
let group: GroupFixture;

const alive = (pid: number) => group.world.processes.identify(pid) !== null;

test.each([
  ['removed', true, () => rmSync(group.paths.events)],
  ['removed with its folder', false, () => rmSync(group.paths.folder, { recursive: true })],
  ['moved away with its folder', false, () => renameSync(group.paths.folder, `${group.paths.folder}-moved`)],
])(
  'a log that is %s during a run ends the run and its workers, and is not recreated',
  async (_, isFolderLeft, takeAway) => {
    group = make([{ name: 'one' }]);
    const run = group.run(rig.env);
    const fake = await begin(group, 'one');
    await run.event('session_identified');
    await fake.ignore('SIGTERM');
    const note = join(group.project('one'), 'daemon');
    await fake.spawn(['sh', '-c', `setsid sleep 600 & echo $! > '${note}.new'; mv '${note}.new' '${note}'`], 'wiped');
    await until(() => existsSync(note));
    const daemon = Number(readFileSync(note, 'utf8'));
    takeAway();
    const message = expect.stringContaining(`${group.paths.events} was removed or replaced`);
    expect(await run.result).toMatchObject({ kind: 'refused', failure: { reason: 'gone', message } });
    expect([fake.hello.pid, daemon].filter(alive)).toEqual([]);
    expect(existsSync(group.paths.events)).toBe(false);
    expect(existsSync(group.paths.folder)).toBe(isFolderLeft);
  },
  20_000,
);
