/** Promises: a slot that a machine offers is used whenever its offer comes, and a wish that was lost is made anew. */
import { expect, test } from 'bun:test';
import { ok } from '../../../src/core/failure.ts';
import type { SessionId } from '../../../src/core/group.ts';
import { Fleet } from '../../../src/hosts/fleet/fleet.ts';
import type { WishPlace } from '../../../src/hosts/fleet/leases.ts';
import type { FleetLink } from '../../../src/hosts/fleet/link.ts';
import { type ToGroup, wireVersion } from '../../../src/hosts/fleet/wire.ts';
import { createRealWorld } from '../../../src/world/real-world.ts';
import { groupId, sid } from '../../support/core-events.ts';
import { until } from '../../world/rig.ts';

const abilities = {
  ...{ wire: wireVersion, version: '0.0.0', claudeVersion: '2.1.331', forwardsSubagents: false },
  ...{ limitsUntrusted: false, limitsMemory: false, logins: [] },
};
const offer = (job: string): ToGroup => ({
  ...{ kind: 'offer', host: 'one', token: `one:1:${job}`, job, sessionId: sid(1), abilities },
});

/** What one fleet wished, and what was said to machines. */
function open(lost: () => boolean = () => false) {
  const wishes: PromiseWithResolvers<WishPlace>[] = [];
  const said: unknown[] = [];
  let hear: (message: ToGroup) => void = () => {};
  const link: FleetLink = {
    blobs: {} as FleetLink['blobs'],
    wish: async () => {
      const made = Promise.withResolvers<WishPlace>();
      wishes.push(made);
      return ok(await made.promise);
    },
    withdraw: async () => {},
    lostWishes: async (places) => places.map(lost),
    send: (_, message) => said.push(message),
    listen: (listener) => {
      hear = (message) => listener(message, () => {});
    },
    look: async () => null,
    hosts: async () => ok([]),
    close: async () => {},
  };
  const world = createRealWorld();
  // Seconds pass in moments.
  const clock = { now: world.clock.now, after: (_: number, action: () => void) => world.clock.after(1, action) };
  let changes = 0;
  const options = { groupId, leaseMs: 60_000, packageRoot: '/', localSlots: 0, onLost: () => {} };
  const fleet = new Fleet({ ...world, clock }, link, {
    ...options,
    git: { world, env: {} },
    onChange: () => {
      changes += 1;
    },
  });
  const want = () => fleet.want([{ do: 'wish', sessionId: sid(1) as SessionId, needs: {} }]);
  return { fleet, wishes, said, want, hear: (message: ToGroup) => hear(message), changes: () => changes };
}

test('an offer that comes before it is known where the wish is', async () => {
  const { fleet, wishes, said, want, hear, changes } = open();
  want();
  hear(offer('other'));
  hear(offer('first'));
  wishes[0]?.resolve({ labelSet: 'any', job: 'first' });
  await until(() => changes() > 0);
  expect([...fleet.view.granted]).toEqual([
    [sid(1) as SessionId, { host: 'one', token: 'one:1:first', job: 'any/first' }],
  ]);
  expect(said).toMatchObject([{ token: 'one:1:other', command: { do: 'release' } }]);
  await fleet.close();
});

test('a wish that waits no more and that nobody holds is made anew', async () => {
  const { fleet, wishes, want, changes } = open(() => true);
  want();
  wishes[0]?.resolve({ labelSet: 'any', job: 'first' });
  await until(() => changes() > 0);
  want();
  expect(wishes).toHaveLength(2);
  await fleet.close();
});
