/**
 * F15: while the system opens no further file, because the table of open files is full, a run loses nothing and nobody
 * who works is ended: what could not be read or written is tried again, and what was asked for meanwhile is answered.
 */
import { expect, test } from 'bun:test';
import { sendRequest } from '../../../src/store/requests.ts';
import { createRealWorld } from '../../../src/system/real-world.ts';
import { systemError } from '../../../src/system/system-error.ts';
import { until } from '../../support/cli.ts';
import type { GroupFixture } from '../../support/group-fixture.ts';
import { begin, make, rig, withRig } from '../../support/rig-ground.ts';

withRig();

/** What needs a file descriptor, by the part of the world that it belongs to. */
const opening = {
  files: [
    ...(['readText', 'readBytes', 'writeAtomic', 'writeBytes', 'openRead', 'openAppend'] as const),
    ...(['truncate', 'syncFolder', 'list'] as const),
  ],
  fifos: ['openWriter'],
  locks: ['tryLock', 'holder'],
  processes: ['findMarked', 'findDescendants', 'findContained', 'run'],
} as const;

/** While `isFull` says so, nothing is opened; how often each call was refused. */
function refuse({ world }: GroupFixture, isFull: () => boolean): ReadonlyMap<string, number> {
  const refused = new Map<string, number>();
  for (const [part, calls] of Object.entries(opening)) {
    const target = world[part as keyof typeof opening] as unknown as Record<string, (...args: unknown[]) => unknown>;
    for (const call of calls) {
      const real = (target[call] as (...args: unknown[]) => unknown).bind(target);
      Object.defineProperty(target, call, {
        value: (...args: unknown[]) => {
          if (!isFull()) return real(...args);
          refused.set(call, (refused.get(call) ?? 0) + 1);
          throw systemError(24, 'open', String(args[0]));
        },
      });
    }
  }
  return refused;
}

test('F15: a run with a full table of open files goes on', async () => {
  const group = make([{ name: 'one' }, { name: 'two', after: ['one'] }, { name: 'three' }]);
  let isFull = false;
  const refused = refuse(group, () => isFull);
  const run = group.run(rig.env);
  const one = await rig.nextFor(group.claudeId('one'));
  await one.prompt();
  await one.init();
  const three = await begin(group, 'three');
  await run.event('session_identified', group.id('one'));
  await run.event('session_identified', group.id('three'));
  const at = new Date().toISOString();
  const sessionId = group.id('three');
  const asked = { id: crypto.randomUUID(), runId: runIdOf(group), at, kind: 'say', sessionId, text: 'Hello.' } as const;
  isFull = true;
  sendRequest(createRealWorld(), group.paths, asked);
  await one.succeed(0.25);
  await Promise.race([until(() => (refused.get('list') ?? 0) > 4), run.result]);
  isFull = false;
  const two = await begin(group, 'two');
  await two.succeed(0.5);
  await run.event('session_message', group.id('three'));
  await three.succeed(0.125);
  expect(await run.result).toMatchObject({ kind: 'settled', status: 'completed' });
  expect(group.events().filter(({ type }) => type === 'session_failed')).toEqual([]);
  expect(group.state().usage.costUsd).toBe(0.875);
});

function runIdOf(group: GroupFixture): string {
  const started = group.events().find((event) => event.type === 'group_started');
  if (started?.type !== 'group_started') throw new Error('the group was not started');
  return started.run.id;
}
