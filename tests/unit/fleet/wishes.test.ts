/** Promises: a wish prefers one machine for a while, and one of which nothing can come any more is put again. */
import { beforeEach, expect, test } from 'bun:test';
import { fail, ok } from '../../../src/core/failure.ts';
import type { Wish } from '../../../src/core/plan/decision.ts';
import type { WishPlace } from '../../../src/fleet/engine.ts';
import { labelsOf } from '../../../src/fleet/engine.ts';
import type { FleetLink } from '../../../src/fleet/engine-link.ts';
import type { RegisteredHost } from '../../../src/fleet/registry.ts';
import { Wishes } from '../../../src/fleet/wishes.ts';
import { sid } from '../../support/core-events.ts';

let nowMs: number;
let hosts: RegisteredHost[] | null;
/** What the engine has, in the order in which it came. */
let placed: { place: WishPlace; labels: readonly string[]; priority: number }[];
let held: Set<string>;
let dead: Set<WishPlace>;
let isDown: boolean;
let failures: number;
let wishes: Wishes;
let unanswered: WishPlace[] = [];

const host = (name: string, more: Partial<RegisteredHost> = {}) =>
  ({ name, silentMs: 0, leaseMs: 60_000, isDrained: false, isGuarded: true, ...more }) as RegisteredHost;
const a: Wish = { do: 'wish', sessionId: sid(1), needs: {} };
const settled = () => Bun.sleep(0);
const labels = () => placed.map((one) => one.labels);

beforeEach(() => {
  unanswered = [];
  [nowMs, hosts, placed, held, dead, isDown, failures] = [0, [host('one')], [], new Set(), new Set(), false, 0];
  const link = {
    wish: async (_: string, place: WishPlace, priority: number) => {
      if (isDown) {
        unanswered.push(place);
        return fail('timeout', 'Redis does not answer.', '');
      }
      placed.push({ place, labels: labelsOf(place.labelSet), priority });
      return ok(place);
    },
    withdraw: async ({ job }: WishPlace) => {
      if (isDown || held.has(job)) return false;
      placed = placed.filter(({ place }) => place.job !== job);
      return true;
    },
    deadWishes: async () => dead,
  } as unknown as FleetLink;
  const onFailure = () => {
    failures += 1;
  };
  wishes = new Wishes(link, {
    newId: () => crypto.randomUUID(),
    nowMs: () => nowMs,
    hosts: async () => hosts,
    onFailure,
  });
});

const wish = async (...wanted: Wish[]): Promise<void> => {
  wishes.want(wanted);
  await settled();
};
const tick = async (ms: number): Promise<void> => {
  nowMs += ms;
  wishes.tick(hosts);
  await settled();
};
const jobAt = (index: number): string => placed[index]?.place.job ?? '';

test('one machine is asked alone for some seconds, then any', async () => {
  await wish({ ...a, needs: { requires: ['gpu'] }, prefer: 'one' });
  expect(labels()).toEqual([['gpu', 'host=one']]);
  await tick(4_000);
  expect(labels()).toEqual([['gpu', 'host=one']]);
  const first = jobAt(0);
  await tick(1_000);
  expect(labels()).toEqual([['gpu']]);
  expect(wishes.granted(a.sessionId, first)).toBeUndefined();
  expect(wishes.granted(a.sessionId, jobAt(0))).toMatchObject({ labelSet: 'gpu' });
});

test.each<[string, RegisteredHost[]]>([
  ['not there', []],
  ['draining', [host('one', { isDrained: true })]],
  ['lost', [host('one', { silentMs: 60_001 })]],
  ['without a guard', [host('one', { isGuarded: false })]],
])('a machine that is %s is not asked alone, also when that turns out only later', async (_, seen) => {
  await wish({ ...a, prefer: 'one' });
  expect(labels()).toEqual([['host=one']]);
  hosts = seen;
  await tick(1_000);
  expect(labels()).toEqual([[]]);
  await wish();
  await wish({ ...a, prefer: 'one' });
  expect(labels()).toEqual([[]]);
});

test('one that somebody holds is not put again, but granted', async () => {
  await wish({ ...a, prefer: 'one' });
  const job = jobAt(0);
  held.add(job);
  await tick(5_000);
  expect(labels()).toEqual([['host=one']]);
  expect(wishes.granted(a.sessionId, job)).toMatchObject({ job });
  expect(wishes.granted(a.sessionId, job)).toBeUndefined();
});

test('while the engine does not answer it is tried again', async () => {
  await wish({ ...a, prefer: 'one' });
  isDown = true;
  await tick(5_000);
  expect(labels()).toEqual([['host=one']]);
  isDown = false;
  await tick(1_000);
  expect(labels()).toEqual([[]]);
  isDown = true;
  await wish({ ...a, sessionId: sid(2) });
  expect(failures).toBe(1);
});

test('what is wanted as before stays; what is not wanted any more is withdrawn', async () => {
  await wish({ ...a, prefer: 'one' }, { ...a, sessionId: sid(2) });
  const other = jobAt(0);
  await tick(5_000);
  await wish({ ...a, prefer: 'one' }, { ...a, sessionId: sid(2) });
  expect(placed.map(({ priority }) => priority)).toEqual([2, 1]);
  expect(jobAt(0)).toBe(other);
  expect(wishes.isLong(a.sessionId)).toBe(true);
  await wish({ ...a, prefer: 'two' });
  // There is no such machine.
  expect(labels()).toEqual([[]]);
  expect(wishes.isLong(a.sessionId)).toBe(false);
  wishes.want([{ ...a, sessionId: sid(3) }]);
  await wish();
  expect(placed).toEqual([]);
});

test('a dead one is put again, with its place in the queue', async () => {
  await wish(a, { ...a, sessionId: sid(2), needs: { host: 'one' } });
  const [, second] = placed;
  dead = new Set([second?.place as WishPlace]);
  await wishes.look();
  await settled();
  expect(labels()).toEqual([[], ['host=one']]);
  expect(jobAt(1)).not.toBe(second?.place.job as string);
  expect(placed[1]?.priority).toBe(2);
});
