/**
 * Promises: of several `group run` started at once exactly one runs. The others exit with code 4 and name the running
 * one. A runner with a hanging disk blocks only itself: its workers continue, and once it is killed the next run adopts
 * them.
 */
import { expect, test } from 'bun:test';
import type { StartedCommand } from '../../support/cli.ts';
import { expectSettled, expectWorkedOnce, finish, finishAtOnce, identify, Runners } from '../../support/crash-rig.ts';
import type { GroupFixture } from '../../support/group-fixture.ts';
import type { ProgramResult } from '../../support/in-process.ts';
import { make, rig, withRig } from '../../support/rig-ground.ts';

withRig((one) => one.remove());
let group: GroupFixture;

/** Resolves when all but one have ended, with the ended ones and the remaining one. */
async function allButOne(
  runs: readonly StartedCommand[],
): Promise<{ losers: ProgramResult[]; winner: StartedCommand }> {
  const losers: ProgramResult[] = [];
  const running = new Set(runs);
  await new Promise<void>((resolve) => {
    for (const run of runs) {
      void run.finished.then((finished) => {
        running.delete(run);
        losers.push(finished);
        if (losers.length === runs.length - 1) resolve();
      });
    }
  });
  return { losers: [...losers], winner: [...running][0] as StartedCommand };
}

function expectRefused(losers: readonly ProgramResult[], winner: StartedCommand): void {
  const sentence = `claude-code-agent: The group ${group.groupId} is in use by process ${winner.pid} on `;
  for (const { code, stdout, stderr } of losers) {
    expect({ code, stdout, said: stderr.slice(0, sentence.length) }).toEqual({ code: 4, stdout: '', said: sentence });
    expect(stderr.trimEnd()).not.toContain('\n');
  }
}

test('of five runners started at once one runs and four are refused', async () => {
  group = make([{ name: 'one' }]);
  const runners = new Runners(group, rig.env);
  const { losers, winner } = await allButOne([1, 2, 3, 4, 5].map(() => runners.start()));
  expectRefused(losers, winner);
  await finishAtOnce(await rig.nextFor(group.claudeId('one')));
  expect(await winner.finished).toMatchObject({ code: 0, stderr: '' });
  expectSettled(group);
  expectWorkedOnce(group, ['one']);
  expect(group.events().filter(({ type }) => type === 'group_started').length).toBe(1);
}, 60_000);

test('after a runner was killed, of three started at once one adopts and two are refused', async () => {
  group = make([{ name: 'one' }]);
  const runners = new Runners(group, rig.env);
  const first = runners.crash({ at: 'after log session_identified' });
  const fake = await rig.nextFor(group.claudeId('one'));
  await identify(fake);
  await first;
  const { losers, winner } = await allButOne([1, 2, 3].map(() => runners.start()));
  expectRefused(losers, winner);
  await finish(fake);
  expect(await winner.finished).toMatchObject({ code: 0, stderr: '' });
  expectSettled(group);
  expectWorkedOnce(group, ['one']);
  expect(group.events().filter(({ type }) => type === 'session_adopted').length).toBe(1);
}, 60_000);
