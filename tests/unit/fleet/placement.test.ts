/** Promises: sessions get free slots on hosts where they may run, and no slot is kept without need. */
import { beforeEach, expect, test } from 'bun:test';
import type { SlotLease } from '../../../src/core/event.ts';
import { fail, ok } from '../../../src/core/failure.ts';
import type { SlotWish } from '../../../src/core/plan/decision.ts';
import { Placement } from '../../../src/fleet/fleet.ts';
import type { SlotLeases } from '../../../src/fleet/redis.ts';
import type { RegisteredHost } from '../../../src/fleet/registry.ts';
import { wireVersion } from '../../../src/fleet/wire.ts';
import { sid } from '../../support/core-events.ts';

let nowMs: number;
let hosts: RegisteredHost[] | null;
let isDown: boolean;
/** The locks of Redis: token → host. */
let held: Map<string, string>;
let renewed: string[];
let grants: number;
let placement: Placement;

const host = (name: string, more: Partial<RegisteredHost> = {}) =>
  ({
    ...{ name, labels: [], slots: 2, used: 0, silentMs: 0, leaseMs: 60_000, isDrained: false, isGuarded: true },
    ...{ abilities: { wire: wireVersion }, ...more },
  }) as unknown as RegisteredHost;
const wish = (number: number, more: Partial<SlotWish> = {}): SlotWish => ({
  ...{ do: 'wish', sessionId: sid(number), needs: {} },
  ...more,
});
const settled = () => Bun.sleep(0);
const granted = () => [...placement.granted].map(([id, { host }]) => `${Number(id.slice(0, 3))} ${host}`);
const leaseOf = (number: number) => placement.granted.get(sid(number)) as SlotLease;

beforeEach(() => {
  [nowMs, hosts, isDown, held, renewed, grants] = [0, [host('one'), host('two')], false, new Map(), [], 0];
  const noAnswer = fail('timeout', 'Redis does not answer.', '');
  const leases: SlotLeases = {
    take: async ({ host: name, token }, slots) => {
      if (isDown) return noAnswer;
      const isFree = [...held.values()].filter((other) => other === name).length < slots;
      if (isFree) held.set(token, name);
      return ok(isFree);
    },
    renew: async (all) => {
      renewed.push(...all.map(({ token }) => token));
      return ok(new Set());
    },
    free: async ({ token }) => {
      held.delete(token);
      return ok(undefined);
    },
    look: async () => ok([]),
  };
  placement = new Placement(leases, {
    newId: () => crypto.randomUUID(),
    nowMs: () => nowMs,
    hosts: () => hosts,
    onGranted: () => {
      grants += 1;
    },
  });
});

async function want(...wishes: SlotWish[]): Promise<void> {
  placement.want(wishes);
  await settled();
}

async function tick(ms: number): Promise<boolean> {
  nowMs += ms;
  const hasLong = placement.tick();
  await settled();
  return hasLong;
}

test('sessions are spread over the hosts with the most free slots, and the rest wait for a slot', async () => {
  hosts = [host('one', { used: 1 }), host('two')];
  held.set('of another runner', 'one');
  await want(wish(1), wish(2), wish(3), wish(4));
  expect(granted()).toEqual(['1 two', '2 one', '3 two']);
  expect(grants).toBe(3);
  for (const number of [1, 2, 3]) placement.granted.delete(sid(number));
  expect(await tick(1_000)).toBe(false);
  expect(granted()).toEqual([]);
  held.delete('of another runner');
  await tick(1_000);
  expect(granted()).toEqual(['4 one']);
});

test('the preferred host is tried alone for some seconds, then any other', async () => {
  held = new Map([
    ['x', 'one'],
    ['y', 'one'],
  ]);
  await want(wish(1, { prefer: 'one' }));
  await tick(4_000);
  expect(granted()).toEqual([]);
  expect(placement.isLong(sid(1))).toBe(false);
  expect(await tick(1_000)).toBe(true);
  expect(granted()).toEqual(['1 two']);
});

test.each<[string, RegisteredHost[]]>([
  ['missing', [host('two')]],
  ['drained', [host('one', { isDrained: true }), host('two')]],
  ['silent', [host('one', { silentMs: 13_000 }), host('two')]],
  ['without a guard', [host('one', { isGuarded: false }), host('two')]],
  ['refusing', [host('one', { loginTrouble: 'Not logged in.' }), host('two')]],
  ['of another version', [host('one', { abilities: { wire: wireVersion + 1 } as never }), host('two')]],
])('a host that is %s gets no session and is not waited for', async (_, seen) => {
  hosts = seen;
  await want(wish(1, { prefer: 'one' }));
  expect(granted()).toEqual(['1 two']);
});

test('a session runs only on hosts where it may', async () => {
  hosts = [host('one', { labels: ['gpu'] }), host('two'), host('three', { labels: ['gpu'] })];
  await want(wish(1, { needs: { requires: ['gpu'], host: 'three' } }), wish(2, { needs: { requires: ['tpu'] } }));
  expect(granted()).toEqual(['1 three']);
});

test('a slot that is no longer needed is released, unless its host already has the order', async () => {
  await want(wish(1), wish(2));
  const [first, second] = [leaseOf(1), leaseOf(2)];
  placement.granted.delete(sid(1));
  await want();
  expect([...held.keys()]).toEqual([first.token]);
  expect(placement.release(second)).toBe(true);
  await tick(1_000);
  expect(renewed).toEqual([first.token]);
  placement.ordered(first);
  await tick(1_000);
  expect(renewed).toEqual([first.token]);
  expect(placement.release(first)).toBe(true);
  expect([...held.keys()]).toEqual([first.token]);
});

test('placement retries while the engine does not answer or no host is known', async () => {
  isDown = true;
  await want(wish(1));
  isDown = false;
  hosts = null;
  await tick(1_000);
  expect(granted()).toEqual([]);
  hosts = [host('one')];
  await tick(1_000);
  expect(granted()).toEqual(['1 one']);
});

test('a slot granted for a request that was withdrawn meanwhile is released', async () => {
  placement.want([wish(1)]);
  await placement.close();
  await settled();
  expect([...held]).toEqual([]);
});
