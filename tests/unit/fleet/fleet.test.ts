/**
 * Promises: unused slots are released, and a silent host is reported unless the run waits for it. Engine and hosts
 * are fake.
 */
import { afterEach, beforeEach, expect, test } from 'bun:test';
import type { SlotLease } from '../../../src/core/event.ts';
import type { Failure } from '../../../src/core/failure.ts';
import type { SlotWish } from '../../../src/core/plan/decision.ts';
import { Fleet, type RemoteInput } from '../../../src/fleet/fleet.ts';
import type { AttemptNews, ToGroup } from '../../../src/fleet/wire.ts';
import { groupPaths, sessionPaths } from '../../../src/store/paths.ts';
import { cutOffBy } from '../../../src/worker/attempt/outcomes.ts';
import { groupId, sessionDefinition, sid } from '../../support/core-events.ts';
import { VirtualLink } from '../../support/fleet/virtual-link.ts';
import { type SteppedWorld, steppedWorld, temporaryFolder } from '../../support/store-world.ts';

const [a, b] = [sid(1), sid(2)];

let world: SteppedWorld;
let link: VirtualLink;
let fleet: Fleet;
let lost: string[];
let folder: ReturnType<typeof temporaryFolder>;
beforeEach(() => {
  folder = temporaryFolder();
  world = steppedWorld();
  link = new VirtualLink();
  lost = [];
  open(60_000);
});

function open(leaseMs: number): void {
  // The first key names the run, the others slots.
  let names = 0;
  const uuid = (): string => `job${names++}`;
  fleet = new Fleet({ ...world, random: { ...world.random, uuid } }, link, {
    ...{ groupId, leaseMs, git: { world, env: {} }, packageRoot: '/package', localSlots: 2 },
    onChange: () => {},
    onLost: (sessionId, attemptId, host) => lost.push(`${sessionId.slice(0, 3)} ${attemptId} ${host}`),
  });
}

afterEach(async () => {
  await fleet.close();
  folder.remove();
});

const wish = (sessionId: string): SlotWish => ({ do: 'wish', sessionId, needs: {} });
const settled = () => new Promise<void>((resolve) => setImmediate(resolve));

async function seconds(count: number): Promise<void> {
  for (let passed = 0; passed < count; passed += 1) {
    world.clock.step(1_000);
    await settled();
  }
}

test('a host with a short lease is not reported as silent between two heartbeats', async () => {
  await fleet.close();
  open(8_000);
  link.has('one');
  link.machines = link.machines.map((host) => ({ ...host, leaseMs: 8_000, silentMs: 1_300 }));
  for (let passed = 0; passed < 10; passed += 1) {
    await seconds(1);
    expect(fleet.standing?.silent ?? {}).toEqual({});
  }
});

test('a granted slot is shown until it is used, and released when it is no longer needed', async () => {
  link.has('one');
  await seconds(5);
  fleet.want([wish(a), wish(b)]);
  await settled();
  const [first, second] = link.held;
  expect([...fleet.view.granted]).toEqual([
    [a, { host: 'one', token: first as string }],
    [b, { host: 'one', token: second as string }],
  ]);
  fleet.take(a);
  fleet.want([]);
  expect(link.held).toEqual([first as string]);
  // Its host knows none of them.
  expect(link.said).toEqual([]);
  expect(fleet.view.granted.size).toBe(0);
});

test('a host with a refused login is reported and gets no more slots until its login changes', async () => {
  const unanswered = Promise.withResolvers<void>();
  const { refuseLogin } = link;
  link.refuseLogin = async (...refused) => {
    await unanswered.promise;
    return refuseLogin.apply(link, refused);
  };
  link.has('one', 'login');
  await seconds(5);
  fleet.want([wish(a)]);
  await settled();
  const place = fleet.view.granted.get(a) as SlotLease;
  fleet.take(a);
  fleet.refuseLogin(place, 'Not logged in.');
  fleet.want([wish(b)]);
  await seconds(6);
  expect(fleet.view.granted.size).toBe(0);
  link.has('one', 'another login');
  await seconds(6);
  expect([...fleet.view.granted.keys()]).toEqual([b]);
  unanswered.resolve();
  await settled();
  expect(link.refused).toEqual(['one login: Not logged in.']);
});

function inputOf(waits: boolean): RemoteInput {
  return {
    ...{ sessionId: a, attemptId: 'attempt', number: 1, offset: 0, waits, workspace: () => undefined },
    paths: sessionPaths(groupPaths(folder.path, groupId), a),
    place: { host: 'one', token: 'one:job1' },
    definition: sessionDefinition(1),
  };
}

test('a host with an expired lease is lost 20 seconds later, and its attempt ends', async () => {
  const attempt = fleet.attempt(inputOf(false));
  const ends: string[] = [];
  attempt.onExit((end) => ends.push(end.kind));
  await seconds(30);
  expect(lost).toEqual([]);
  link.left = null;
  // The lock went early, so the rest of the lease is added.
  await seconds(78);
  expect(lost).toEqual([]);
  await seconds(4);
  expect(lost).toEqual(['001 attempt one']);
  expect(ends).toEqual(['lost']);
});

test('a host that the run waits for is never lost', async () => {
  fleet.attempt(inputOf(true));
  await seconds(5);
  link.left = null;
  await seconds(300);
  expect(lost).toEqual([]);
});

test('no host is lost while the engine does not answer', async () => {
  fleet.attempt(inputOf(false));
  await seconds(5);
  link.left = 'unreachable';
  await seconds(300);
  expect(lost).toEqual([]);
});

/** As the host that was just asked would. */
function answerHello(attempts: Extract<ToGroup, { kind: 'here' }>['attempts']): void {
  fleet.hello('one');
  link.hear({ kind: 'here', host: 'one', asker: link.asker, attempts });
}

test.each([
  [
    'by a signal: the earlier runner sent it, and the attempt starts again',
    { kind: 'signalled', signal: 'SIGTERM' },
    'restart',
  ],
  ['by itself: the reason of its failure is reported', { kind: 'exited', code: 1 }, 'adopt'],
] as const)('an attempt that never received its task and ended %s', async (_, status, then) => {
  const attempt = fleet.recall(inputOf(false));
  const process = { pid: 7, startTime: '1', host: 'one', bootId: 'boot' };
  const found = attempt.takeOver({ id: 'attempt', number: 1, kind: 'start', offset: 0, process } as never);
  const place = { host: 'one', token: 'one:job1', attemptId: 'attempt' };
  const told = { leftover: false, limitsHit: [], stderrTail: '', fenced: false };
  answerHello([{ token: place.token, process }]);
  link.hear({ kind: 'attempt', ...place, news: { say: 'ended', status, ...told } });
  for (let looks = 0; looks < 20; looks += 1) await seconds(1);
  expect(await found).toMatchObject({ do: then });
});

test('a session whose data is too large to transfer fails, and the message names its place', async () => {
  const attempt = fleet.attempt(inputOf(false));
  const exited = new Promise((resolve) => attempt.onExit(resolve));
  const status = { kind: 'exited', code: 0 } as const;
  const unsent = { why: '300 MB would have to be sent.', folder: '/there/session' };
  const end = { leftover: false, limitsHit: [], stderrTail: '', fenced: false, unsent };
  const news: AttemptNews = { say: 'ended', status, ...end };
  link.hear({ kind: 'attempt', host: 'one', token: 'one:job1', attemptId: 'attempt', news });
  expect(await exited).toEqual(status);
  const { failure } = await attempt.reap();
  expect(failure).toMatchObject({ reason: 'worktree-failed' });
  expect(failure?.message).toContain('host one');
  expect(failure?.message).toEndWith('300 MB would have to be sent. It lies there in /there/session.');
});

test('a session on a host with a full disk continues on another host, and that host gets no new ones', async () => {
  link.has('one');
  await seconds(5);
  const attempt = fleet.attempt(inputOf(false));
  const unsent = { why: 'git add refused: No space left.', folder: '/there/session', isDiskFull: true };
  const end = { leftover: false, limitsHit: [], stderrTail: '', fenced: false, unsent };
  const news: AttemptNews = { say: 'ended', status: { kind: 'exited', code: 0 }, ...end };
  link.hear({ kind: 'attempt', host: 'one', token: 'one:job1', attemptId: 'attempt', news });
  await new Promise<unknown>((resolve) => attempt.onExit(resolve));
  const { failure } = await attempt.reap();
  expect(failure?.message).toContain('The disk of host one is full');
  expect(failure?.message).toEndWith('No space left. It lies there in /there/session.');
  expect(cutOffBy(failure as Failure)).toMatchObject({ status: 'paused', reason: 'host-lost' });
  expect(fleet.standing).toMatchObject({ up: 0, refusing: 1 });
});
