/**
 * F15: a look at processes that the system refuses, because the table of open files is full, ends no runner and no
 * session: it is made again.
 */
import { expect, test } from 'bun:test';
import { systemError } from '../../../src/system/system-error.ts';
import { markedProcesses } from '../../support/crash-rig.ts';
import type { GroupFixture } from '../../support/group-fixture.ts';
import { begin, make, rig, withRig } from '../../support/rig-ground.ts';

withRig();

/** While `isFull` says so, every look is refused; the number of those. */
function refuse(group: GroupFixture, isFull: () => boolean): () => number {
  const { processes } = group.world;
  let refused = 0;
  const looks = ['findMarked', 'findDescendants', 'findContained'] as const;
  for (const look of looks) {
    const real = processes[look].bind(processes) as (...args: unknown[]) => never;
    Object.defineProperty(processes, look, {
      value: (...args: unknown[]) => {
        if (!isFull()) return real(...args);
        refused += 1;
        throw systemError(24, 'open', '/proc');
      },
    });
  }
  return () => refused;
}

test('F15: while it works, at its end and while it is reaped', async () => {
  const group = make([{ name: 'one' }, { name: 'two', after: ['one'] }]);
  let isFull = false;
  const refused = refuse(group, () => isFull);
  const run = group.run(rig.env);
  const fake = await rig.nextFor(group.claudeId('one'));
  await fake.prompt();
  isFull = true;
  await fake.init();
  await fake.print({ type: 'user', message: { content: [{ type: 'tool_result', tool_use_id: 't', content: 'x' }] } });
  await fake.succeed();
  group.world.clock.after(1_000, () => {
    isFull = false;
  });
  const second = await begin(group, 'two');
  await second.succeed();
  expect(await run.result).toMatchObject({ kind: 'settled', status: 'completed' });
  expect(refused()).toBeGreaterThan(3);
  expect(group.events().filter(({ type }) => type === 'session_failed')).toEqual([]);
  expect(markedProcesses(group)).toEqual([]);
});
