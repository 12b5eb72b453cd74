/**
 * F2: an event that cannot be written ends the attempt that it is about as `internal`, with its worker and what it has
 * cost; sessions beside it go on, and the group can be run again.
 */
import { expect, test } from 'bun:test';
import type { GroupEvent } from '../../../src/core/event.ts';
import { markedProcesses } from '../../support/crash-rig.ts';
import { idleLine, resultLine } from '../../support/fake-claude-rig.ts';
import type { GroupFixture, RunningGroup } from '../../support/group-fixture.ts';
import { begin, make, rig, withRig } from '../../support/rig-ground.ts';

withRig();

/** Whatever holds the word cannot be made into a line, as texts that are nested too deep cannot. */
function refuse(group: GroupFixture, word: string): void {
  const { files } = group.world;
  const { openAppend } = files;
  files.openAppend = (path) => {
    const file = openAppend(path);
    const { append } = file;
    file.append = (text) => {
      if (path === group.paths.events && text.includes(word)) throw new RangeError('Maximum call stack size exceeded.');
      append.call(file, text);
    };
    return file;
  };
}

const failureOf = (events: readonly GroupEvent[], sessionId: string) =>
  events.find((event) => event.type === 'session_failed' && event.sessionId === sessionId);

async function expectOthersGoOn(group: GroupFixture, run: RunningGroup, costUsd: number): Promise<void> {
  const [odd, plain] = [group.id('odd'), group.id('plain')];
  const neighbour = await begin(group, 'plain');
  await run.event('session_failed', odd);
  await neighbour.succeed(0.5);
  expect(await run.result).toMatchObject({ kind: 'settled', status: 'failed' });
  expect(failureOf(group.events(), odd)).toMatchObject({ reason: 'internal', usage: { costUsd } });
  const state = group.state();
  expect([state.sessions.get(plain)?.state.status, state.usage.costUsd]).toEqual(['completed', 0.5 + costUsd]);
  expect(markedProcesses(group)).toEqual([]);
}

test('F2: a worker that cannot be told of', async () => {
  const group = make([{ name: 'odd' }, { name: 'plain' }]);
  refuse(group, `"session_started","sessionId":"${group.id('odd')}"`);
  await expectOthersGoOn(group, group.run(rig.env), 0);
});

test.each([
  ['who claude is', (group: GroupFixture) => `"session_identified","sessionId":"${group.id('odd')}"`],
  ['its result', () => 'unspeakable'],
])('%s that cannot be told', async (_, word) => {
  const group = make([{ name: 'odd' }, { name: 'plain' }]);
  refuse(group, word(group));
  const run = group.run(rig.env);
  const fake = await begin(group, 'odd');
  const isResult = word(group) === 'unspeakable';
  if (isResult) await fake.print(resultLine(0.25, { modelUsage: { unspeakable: { costUSD: 0.25 } } }));
  await expectOthersGoOn(group, run, isResult ? 0.25 : 0);
  await fake.ended;
});

test('F2: a structured result that is nested too deep for the log', async () => {
  const group = make([{ name: 'odd', fields: { outputSchema: { type: 'array' } } }, { name: 'plain' }]);
  const run = group.run(rig.env);
  const fake = await begin(group, 'odd');
  const depth = 100_000;
  const line = JSON.stringify({ ...resultLine(0.25), structured_output: 'deep' });
  await fake.printRaw(`${line.replace('"deep"', `${'['.repeat(depth)}${']'.repeat(depth)}`)}\n`);
  await fake.print(idleLine);
  await expectOthersGoOn(group, run, 0.25);
});
