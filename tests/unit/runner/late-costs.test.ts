/**
 * Promises: after a run, lost hosts are asked for the cost of their attempts. Costs that arrive within ten seconds
 * replace the held money, and no host is asked if nothing is held. The fleet is fake.
 */
import { afterEach, beforeEach, expect, test } from 'bun:test';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { EventBody } from '../../../src/core/event.ts';
import { ok } from '../../../src/core/failure.ts';
import { noUsage } from '../../../src/core/group.ts';
import type { Fleet } from '../../../src/fleet/fleet.ts';
import type { LateOptions } from '../../../src/fleet/mirror.ts';
import type { LinkFleet } from '../../../src/runner/open-fleet.ts';
import { recordLateCosts } from '../../../src/runner/open-fleet.ts';
import { type GroupWriter, openGroupWriter } from '../../../src/store/group-writer.ts';
import { resultLine } from '../../support/fake-claude-rig.ts';
import { type GroupFixture, makeGroup } from '../../support/group-fixture.ts';
import { SteppedClock } from '../../support/store-world.ts';
import { expectOk } from '../../support/system/rig.ts';

let group: GroupFixture;
let writer: GroupWriter;
let clock: SteppedClock;
/** Calls to the fleet in order. */
let asked: string[];
/** The callbacks to call when the host of an attempt has reported everything. */
let late: Map<string, LateOptions>;
let links: number;

beforeEach(() => {
  group = makeGroup([{ name: 'a' }, { name: 'b' }]);
  clock = new SteppedClock();
  [asked, late, links] = [[], new Map(), 0];
  writer = expectOk(openGroupWriter(group.world, group.root, group.groupId, 'a-test'));
  writer.record([{ type: 'group_started', run: { id: 'run', runner: group.world.machine.self } }]);
});
afterEach(() => {
  writer.close();
  group.remove();
});

const hostOf = (name: string) => `host-${name}`;

/** An attempt with a reservation of one dollar and a known cost of a quarter that was lost with its host. */
function lose(name: string, reservedUsd: number | undefined = 1): void {
  const sessionId = group.id(name);
  const attemptId = `attempt-${name}`;
  const place = { host: hostOf(name), token: `${name}:0:x`, job: `slots-any/${name}` };
  const attempt = { id: attemptId, number: 1, kind: 'start', offset: 0, isolated: true, place };
  const held = reservedUsd === undefined ? {} : { heldUsd: 0.75 };
  const usage = { ...noUsage, costUsd: reservedUsd === undefined ? 0.25 : 1, ...held };
  const reserved = reservedUsd === undefined ? {} : { reservedUsd };
  writer.record([
    { type: 'session_starting', sessionId, attempt: { ...attempt, ...reserved } } as EventBody,
    { type: 'session_host_lost', sessionId, attemptId, host: place.host, held: 0.75 } as EventBody,
    { type: 'session_paused', sessionId, attemptId, reason: 'host-lost', message: 'Lost.', usage } as EventBody,
  ]);
}

const fleet = {
  hello: (host: string) => asked.push(`hello ${host}`),
  awaitLate: (options: LateOptions) => {
    late.set(options.attemptId, options);
    asked.push(`await ${options.place.host}`);
  },
  booked: ({ token }: { readonly token: string }) => asked.push(`booked ${token}`),
  close: async () => asked.push('close'),
} as unknown as Fleet;

const link: LinkFleet = async () => {
  links += 1;
  return ok(() => fleet);
};

const book = (how = link): Promise<number> => recordLateCosts({ ...group.world, clock }, writer, how);

/** Its host reports these output lines. */
function tell(name: string, costUsd: number): void {
  const path = join(group.folder, `${name}.jsonl`);
  const init = { type: 'system', subtype: 'init', session_id: group.claudeId(name), model: 'claude-opus-4-8' };
  const lines = [init, { session_id: group.claudeId(name), ...resultLine(costUsd) }];
  writeFileSync(path, lines.map((line) => `${JSON.stringify(line)}\n`).join(''));
  late.get(`attempt-${name}`)?.onEnd(path);
}

/** The hosts have been asked. */
async function untilAsked(): Promise<void> {
  while (!asked.some((what) => what.startsWith('await'))) await Bun.sleep(0);
}

const usageOf = (name: string) => writer.state.sessions.get(group.id(name))?.usage;

test('the fleet is not opened when nothing was lost', async () => {
  expect(await book()).toBe(0);
  expect(links).toBe(0);
});

test('costs reported by lost hosts replace held money, and their slots are released', async () => {
  lose('a');
  lose('b', undefined);
  const booking = book();
  await untilAsked();
  expect(asked.toSorted()).toEqual(['await host-a', 'await host-b']);
  tell('a', 0.4);
  tell('b', 0.3);
  expect(await booking).toBe(2);
  expect(usageOf('a')).toMatchObject({ costUsd: 0.4 });
  expect(usageOf('b')).toMatchObject({ costUsd: 0.3 });
  expect(writer.state.usage.heldUsd).toBeUndefined();
  expect(writer.state.usage.costUsd).toBeCloseTo(0.7);
  expect(group.events().filter(({ type }) => type === 'session_booked')).toHaveLength(2);
  expect(asked.slice(2)).toEqual(['booked a:0:x', 'booked b:0:x', 'close']);
  expect(clock.waiting).toBe(0);
});

test('a host that reports nothing is waited for ten seconds, and its held money stays held', async () => {
  lose('a');
  lose('b');
  const booking = book();
  await untilAsked();
  tell('b', 0.3);
  while (usageOf('b')?.heldUsd !== undefined) await Bun.sleep(0);
  clock.step(9_999);
  expect(asked.at(-1)).toBe('booked b:0:x');
  clock.step(1);
  expect(await booking).toBe(1);
  expect(usageOf('a')).toMatchObject({ costUsd: 1, heldUsd: 0.75 });
  expect(asked.at(-1)).toBe('close');
});

test('money held for a host that left the fleet is recorded as spent without waiting', async () => {
  lose('a');
  const booking = book();
  await untilAsked();
  late.get('attempt-a')?.onForgotten();
  expect(await booking).toBe(1);
  expect(usageOf('a')).toMatchObject({ costUsd: 1, estimated: true });
  expect(usageOf('a')?.heldUsd).toBeUndefined();
});
