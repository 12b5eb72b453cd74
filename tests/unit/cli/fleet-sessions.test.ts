/**
 * Promises: a session's host requirements are stored as typed and can be changed and removed, and all views of a
 * group show the hosts of its sessions and the money held for lost hosts.
 */
import { beforeEach, expect, test } from 'bun:test';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { EventBody } from '../../../src/core/event.ts';
import { noUsage } from '../../../src/core/group.ts';
import { openGroupWriter } from '../../../src/store/group-writer.ts';
import { createRealWorld } from '../../../src/system/real-world.ts';
import { user, withUser } from '../../support/cli/user.ts';

withUser();
let group: string;

beforeEach(async () => {
  group = await user.ok('group', 'create', 'fleet', '--max-budget-usd', '5', '--where', 'fleet');
});

const shown = (name: string) => user.json<Record<string, unknown>>('session', 'show', `${group}/${name}`);

test('--requires, --host and --where are stored, changed and removed', async () => {
  await user.add(group, 'api', '--requires', 'gpu', '--requires', 'node20', '--requires', 'gpu', '--host', 'gpu1');
  expect(await shown('api')).toMatchObject({ requires: ['gpu', 'node20'], host: 'gpu1' });
  expect(await user.ok('session', 'show', `${group}/api`)).toContain('Only on: gpu1');
  expect(await user.ok('group', 'show', group)).toContain('on fleet hosts only');

  await user.ok('session', 'edit', `${group}/api`, '--no-host', '--requires', 'arm');
  const edited = await shown('api');
  expect([edited.requires, edited.host]).toEqual([['arm'], undefined]);
  expect(await user.ok('session', 'show', `${group}/api`)).toContain('Only on: a host with arm');
  await user.ok('session', 'edit', `${group}/api`, '--no-requires');
  expect((await shown('api')).requires).toBeUndefined();

  await user.ok('group', 'edit', group, '--where', 'local');
  expect(await user.json('group', 'show', group)).toMatchObject({ config: { where: 'local' } });
  await user.ok('group', 'edit', group, '--no-where');
  expect(JSON.stringify(await user.json('group', 'show', group))).not.toContain('where');
});

test.each([
  [['session', 'add', 'fleet', '--project', '.', '--prompt', 'x', '--requires', 'a b'], 'a letter or digit first'],
  [['session', 'add', 'fleet', '--project', '.', '--prompt', 'x', '--requires', 'any'], 'not "any"'],
  [['session', 'add', 'fleet', '--project', '.', '--prompt', 'x', '--host', '-a'], 'as hosts are called'],
  [['group', 'edit', 'fleet', '--where', 'here'], 'Allowed choices are local, fleet, any'],
  [['group', 'run', 'fleet', '--where', 'here'], 'Allowed choices are local, fleet, any'],
])('the option %j is refused in one sentence', async (words, said) => {
  const { code, stderr } = await user.run(...words);
  expect([code, stderr.trim().split('\n').length]).toEqual([2, 1]);
  expect(stderr).toContain(said);
});

/** `api` has worked on gpu1, or still does; `web` was lost with gpu2, and may have cost 0.75 there. */
async function storeWork(isAtWork = false): Promise<void> {
  const [api, web] = [await user.add(group, 'api'), await user.add(group, 'web')];
  const world = createRealWorld();
  const writer = openGroupWriter(world, user.data, group, 'a-test');
  if (!writer.ok) throw new Error(writer.failure.message);
  const starting = (sessionId: string, host: string): EventBody => {
    const place = { host, token: `${host}:0:x`, job: 'slots-any/1' };
    const attempt = {
      id: `attempt-${host}`,
      number: 1,
      kind: 'start',
      offset: 0,
      reservedUsd: 1,
      isolated: true,
      place,
    };
    return { type: 'session_starting', sessionId, attempt } as EventBody;
  };
  const lost = { sessionId: web, attemptId: 'attempt-gpu2' };
  const usage = { ...noUsage, costUsd: 1, heldUsd: 0.75 };
  const bodies: EventBody[] = [
    { type: 'group_started', run: { id: 'a-run', runner: world.machine.self } },
    { type: 'session_moved', sessionId: api, to: 'gpu1' } as EventBody,
    starting(api, 'gpu1'),
    {
      type: 'session_completed',
      sessionId: api,
      attemptId: 'attempt-gpu1',
      result: 'Done.',
      usage: noUsage,
    } as EventBody,
    { type: 'session_moved', sessionId: web, to: 'gpu2' } as EventBody,
    starting(web, 'gpu2'),
    { type: 'session_host_lost', ...lost, host: 'gpu2', held: 0.75 } as EventBody,
    { type: 'session_paused', ...lost, reason: 'host-lost', message: 'Its machine gpu2 is lost.', usage } as EventBody,
    { type: 'group_paused', reason: 'user', message: 'Paused on request.' },
  ];
  // The runner was killed.
  const told = isAtWork ? bodies.slice(0, 3) : bodies;
  for (const body of told) writer.value.record([body]);
  writer.value.close();
}

test('all views of a group show the hosts of its sessions and held money', async () => {
  await storeWork();
  const table = await user.ok('group', 'show', group);
  expect(table).toMatch(/^SESSION +PROJECT +HOST +STATUS/m);
  expect(table).toMatch(/^001 api +api +gpu1 +completed/m);
  expect(table).toMatch(/^002 web +web +gpu2 +paused/m);
  expect(table).toContain(
    'lost: gpu2 does not respond; $0.75 is held until the host is back or you record it ' +
      'with: claude-code-agent host forget gpu2',
  );
  expect(await user.ok('session', 'list', group)).toMatch(/^002 web +web +gpu2/m);
  expect(await user.ok('session', 'show', `${group}/web`)).toContain('Host: gpu2');
  const json = await user.json<{ sessions: object[]; progress: { sessions: object[] } }>('group', 'show', group);
  for (const { sessions } of [json, json.progress])
    expect(sessions).toMatchObject([{ host: 'gpu1' }, { host: 'gpu2' }]);
  expect(await shown('web')).toMatchObject({ machine: 'gpu2', reason: 'host-lost' });
  expect(await user.ok('group', 'budget', group)).toContain('Host gpu2, where it ran, does');
  expect(await user.json('group', 'budget', group)).toMatchObject({
    sessions: [{}, { lostHosts: ['gpu2'], heldUsd: 0.75 }],
  });
  expect(await user.ok('group', 'report', group, '--markdown')).toContain('| Session | Host | Status |');
  const page = join(user.folder, 'report.html');
  await user.ok('group', 'report', group, '--html', page);
  expect(readFileSync(page, 'utf8')).toMatch(/<th[^>]*>Host<\/th>/);
});

test('without a runner a session on another host is not shown as stopped while it may spend', async () => {
  await storeWork(true);
  const commands = [
    ['group', 'pause', group],
    ['session', 'pause', `${group}/api`],
    ['session', 'say', `${group}/api`, 'Also this.'],
  ];
  for (const words of commands) {
    const { code, stderr } = await user.run(...words);
    expect([words[1], code]).toEqual([words[1], 1]);
    expect(stderr).toContain('is running on host gpu1, and there is no runner to stop it.');
    expect(stderr).toContain(`group run ${group}`);
  }
  expect(await user.ok('group', 'show', group)).toMatch(/^001 api +api +gpu1 +running/m);
});
