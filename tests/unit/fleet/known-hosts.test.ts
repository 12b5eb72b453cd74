/** Promises: the state of each host that could serve a session is shown, with the remedy when none can. */
import { expect, test } from 'bun:test';
import { adviceText } from '../../../src/core/advice.ts';
import { ok } from '../../../src/core/failure.ts';
import type { Needs } from '../../../src/core/plan/decision.ts';
import { describeHosts, KnownHosts, withoutLogin } from '../../../src/fleet/known-hosts.ts';
import { type RegisteredHost, withLogin } from '../../../src/fleet/registry.ts';
import { type HostAbilities, type RefusedLogin, wireVersion } from '../../../src/fleet/wire.ts';

const host = (name: string, labels: readonly string[], more: Partial<RegisteredHost> = {}) =>
  ({
    ...{ name, labels, silentMs: 0, leaseMs: 60_000, isDrained: false, isGuarded: true, slots: 4, used: 1 },
    ...{ abilities: { wire: wireVersion }, ...more },
  }) as RegisteredHost;
const gpu = { requires: ['gpu'] };
const old = { abilities: { wire: wireVersion - 1 } as HostAbilities };
const [lost, drained, refused] = [{ silentMs: 61_000 }, { isDrained: true }, { loginTrouble: 'Not logged in.' }];

test.each<[string, RegisteredHost[], Needs, string, string | undefined]>([
  [
    'free',
    [host('a', ['gpu']), host('b', ['gpu'], { used: 4 }), host('c', [])],
    gpu,
    '2 hosts, 8 slots, 3 free, one is being taken',
    undefined,
  ],
  ['busy', [host('a', ['gpu'], { used: 4 })], gpu, '1 host, 4 slots, all busy', undefined],
  ['full', [host('a', ['gpu'], { isFull: true })], gpu, '1 such host takes nothing new', undefined],
  [
    'refused',
    [host('a', ['gpu'], { used: 4 }), host('b', ['gpu'], refused)],
    gpu,
    '1 host, 4 slots, all busy; the login was refused on b',
    undefined,
  ],
  [
    'drained',
    [host('a', ['gpu'], drained), host('b', ['gpu'], { ...lost, ...drained })],
    gpu,
    'a is drained',
    'host resume a',
  ],
  ['lost', [host('a', ['gpu'], lost), host('b', ['gpu'], lost)], gpu, 'nothing is heard of a, b', 'host list'],
  [
    'of another version',
    [host('a', ['gpu'], old), host('b', ['gpu'], { ...lost, ...old })],
    gpu,
    'the claude-code-agent of a is incompatible with this one',
    'host add a --ssh USER@HOST',
  ],
  [
    'partly of another version',
    [host('a', ['gpu'], old), host('b', ['gpu'])],
    gpu,
    '1 host, 4 slots, 3 free, one is being taken',
    undefined,
  ],
  ['none', [], {}, 'no host has joined the fleet', 'host add NAME --ssh USER@HOST'],
  [
    'an unknown label',
    [host('a', ['gpu', 'big']), host('b', ['gpu'])],
    { requires: ['tpu'] },
    'no host of the fleet has that; the labels there are: big, gpu',
    'host add NAME --ssh USER@HOST --label tpu',
  ],
  [
    'an unknown host',
    [host('a', []), host('b', [])],
    { host: 'c' },
    'no host has that name; there is a, b',
    'host add c --ssh USER@HOST',
  ],
  [
    'a host without the required guard',
    [host('a', [])],
    { host: 'a', requires: ['gpu'] },
    'that host does not have it; none has any label',
    'host add a --ssh USER@HOST --label gpu',
  ],
])('the message for a session that no host can serve: %s', (_, hosts, needs, text, command) => {
  const said = describeHosts(hosts, needs);
  expect(said.text).toBe(text);
  if (command === undefined) expect(said.cure).toBeUndefined();
  else expect(adviceText(said.cure ?? { sentence: '', commands: [] })).toEndWith(`: claude-code-agent ${command}`);
});

test('hosts whose state is not known yet are shown so', () => {
  expect(describeHosts(null, gpu)).toMatchObject({ isUnknown: true });
  expect(withoutLogin(null, gpu)).toEqual([]);
});

test('after a refused login a group waits while another host may serve it or return', () => {
  const broken = [host('a', ['gpu'], refused), host('b', ['gpu'], refused)];
  expect(withoutLogin(broken, gpu)).toEqual(['a', 'b']);
  expect(withoutLogin([...broken, host('c', ['gpu'], drained), host('d', [])], gpu)).toEqual(['a', 'b']);
  expect(withoutLogin([...broken, host('c', ['gpu'], lost)], gpu)).toEqual([]);
  expect(withoutLogin([host('c', [])], gpu)).toEqual([]);
});

test('a refused login is known before and after it is logged, and another login is accepted', async () => {
  const abilities = (loginKey: string) => ({ loginKey }) as HostAbilities;
  let has = 'first';
  let onRecord: RefusedLogin | null = null;
  const hosts = new KnownHosts(
    {
      hosts: async () => ok([withLogin(host('a', [], { abilities: abilities(has) }), onRecord)]),
      refuseLogin: async (_host, refused) => {
        onRecord = refused;
        return ok(undefined);
      },
    },
    () => 0,
  );
  await hosts.list();
  const trouble = () => hosts.all?.[0]?.loginTrouble;
  expect(trouble()).toBeUndefined();
  void hosts.refuse('a', 'Not logged in.');
  expect(trouble()).toBe('Not logged in.');
  await hosts.list();
  expect(onRecord).toMatchObject({ key: 'first' });
  expect(trouble()).toBe('Not logged in.');
  has = 'second';
  await hosts.list();
  expect(trouble()).toBeUndefined();
});

test('a host is forgotten when lists lack it for longer than a heartbeat, and never without a list', async () => {
  let nowMs = 0;
  let listed = [host('a', []), host('b', [])];
  const link = { hosts: async () => ok(listed), refuseLogin: async () => ok(undefined) };
  const hosts = new KnownHosts(link, () => nowMs);
  const forgotten = () => ['a', 'b', 'c'].filter((name) => hosts.isForgotten(name));
  expect(forgotten()).toEqual([]);
  await hosts.list();
  expect(forgotten()).toEqual([]);
  listed = [host('a', [])];
  nowMs = 5_000;
  await hosts.list();
  expect(forgotten()).toEqual([]);
  nowMs = 10_000;
  await hosts.list();
  expect(forgotten()).toEqual(['b', 'c']);
});
