/**
 * F2: a result that cannot be written to the log ends the attempt as `internal`, with its worker and what it has cost;
 * sessions beside it go on.
 */
import { expect, test } from 'bun:test';
import type { GroupEvent } from '../../../src/core/event.ts';
import { markedProcesses } from '../../support/crash-rig.ts';
import { idleLine, resultLine } from '../../support/fake-claude-rig.ts';
import type { GroupFixture, RunningGroup } from '../../support/group-fixture.ts';
import { begin, make, rig, withRig } from '../../support/rig-ground.ts';

withRig();

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
