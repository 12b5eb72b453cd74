/**
 * Promises: a request to a group is judged the same, with the same message and events, by a live runner and by a
 * command.
 */
import { expect, test } from 'bun:test';
import { submit } from '../../../src/app/group-commands.ts';
import type { SessionChanges } from '../../../src/core/edit.ts';
import { describeFailure } from '../../../src/core/failure.ts';
import type { Command } from '../../../src/runner/request-answers.ts';
import type { NewSession, RequestBody } from '../../../src/store/requests.ts';
import type { GroupFixture } from '../../support/group-fixture.ts';
import { begin, make, rig, withRig } from '../../support/rig-ground.ts';

withRig();

const notes = { line() {}, passing() {} };

const shape = [{ name: 'works' }, { name: 'waits', after: ['works'] }, { name: 'last', after: ['waits'] }];
const config = { maxBudgetUsd: 5, maxConcurrentSessions: 1 };

const added = (group: GroupFixture, fields: Partial<NewSession> = {}): RequestBody => ({
  kind: 'add-session',
  session: {
    description: '',
    projectPath: group.project('works'),
    prompt: 'do it',
    dependsOn: [],
    createdAt: '2026-01-04T14:30:22.000Z',
    ...fields,
  },
});

const edited = (group: GroupFixture, name: string, changes: SessionChanges): RequestBody => ({
  kind: 'edit-session',
  sessionId: group.id(name),
  changes,
});

const refused: Readonly<Record<string, (group: GroupFixture) => RequestBody>> = {
  'a session with a name that is taken': (group) => added(group, { name: 'works' }),
  'a session that depends on none of the group': (group) => added(group, { dependsOn: ['009-x'] }),
  'a session without a task': (group) => added(group, { prompt: ' ' }),
  'a prompt of nothing': (group) => edited(group, 'waits', { prompt: ' ' }),
  'a cycle': (group) => edited(group, 'waits', { dependsOn: [group.id('last')] }),
  'a session that is gone': (group) => edited(group, 'last', { dependsOn: ['009-x'] }),
  'half of what a group is to be': (group) => ({
    kind: 'edit-group',
    config: { maxConcurrentSessions: 5 },
    edit: [
      { sessionId: group.id('last'), changes: { prompt: 'do that' } },
      { sessionId: group.id('waits'), changes: { dependsOn: [group.id('last')] } },
    ],
  }),
  'a concurrency of nothing': () => ({ kind: 'edit-group', config: { maxConcurrentSessions: 0 } }),
  'a group without a name': () => ({ kind: 'edit-group', group: { name: ' ' } }),
  'a cap of less than nothing': () => ({ kind: 'edit-group', config: { maxBudgetUsd: -1 } }),
  'a session that is none of the group': () => ({
    kind: 'edit-group',
    edit: [{ sessionId: '009-x', changes: { prompt: 'do that' } }],
  }),
  'a rule that is an option': (group) => ({ kind: 'allow-tools', sessionId: group.id('last'), rules: ['--x'] }),
  'removing what others need': (group) => ({ kind: 'remove-session', sessionId: group.id('waits') }),
  'removing none of the group': () => ({ kind: 'remove-session', sessionId: '009-x' }),
  'a budget of nothing': () => ({ kind: 'edit-group', config: { maxBudgetUsd: 0 } }),
  'retrying what has not failed': (group) => ({ kind: 'retry-session', sessionId: group.id('waits') }),
  'saying nothing': (group) => ({ kind: 'say', sessionId: group.id('waits'), text: '\n' }),
  'a cap of nothing': (group) => ({ kind: 'resume-session', sessionId: group.id('waits'), maxBudgetUsd: 0 }),
  'settling where nothing is held': (group) => ({
    kind: 'settle-cost',
    sessionId: group.id('waits'),
    isSpent: true,
  }),
};

const granted: Readonly<Record<string, (group: GroupFixture) => RequestBody>> = {
  'a session': (group) => added(group, { name: 'more', dependsOn: [group.id('waits')] }),
  'other settings': (group) => edited(group, 'last', { prompt: 'do that', model: 'haiku', dependsOn: [] }),
  'another group': (group) => ({
    kind: 'edit-group',
    config: { maxConcurrentSessions: 1, model: 'haiku', errorThreshold: 3 },
    group: { name: 'Other' },
    add: [
      { ...(added(group) as Extract<RequestBody, { kind: 'add-session' }>).session, id: `001-${crypto.randomUUID()}` },
    ],
    edit: [{ sessionId: group.id('last'), changes: { timeoutMs: 5_000 } }],
  }),
  'more tools': (group) => ({ kind: 'allow-tools', sessionId: group.id('last'), rules: ['Edit', 'Bash(npm test:*)'] }),
  'fewer settings': (group) => edited(group, 'last', { model: null }),
  'more money': () => ({ kind: 'edit-group', config: { maxBudgetUsd: 9 } }),
  'a word to a session that waits': (group) => ({ kind: 'say', sessionId: group.id('last'), text: 'Mind the tests.' }),
  'holding a session back': (group) => ({ kind: 'pause-session', sessionId: group.id('last') }),
  'a removal': (group) => ({ kind: 'remove-session', sessionId: group.id('last') }),
};

/** Lowering a cap has other rules while sessions are running. */
const general = (group: GroupFixture, text: string): string =>
  text
    .replaceAll(group.groupId, 'GROUP')
    .replace(/Pause it first, then lower it with: .* · /, 'Lower it with: ')
    .replaceAll(group.folder, 'FOLDER')
    .replaceAll(/[0-9a-f]{8}-[0-9a-f-]{27}/g, 'UUID');

const ask = (group: GroupFixture, command: Command) => submit({ world: group.world, notes }, group, command);

test('a runner and a command refuse the same requests with the same message', async () => {
  const [live, free] = [make(shape, config), make(shape, config)];
  const run = live.run(rig.env);
  const fake = await begin(live, 'works');
  for (const [name, commandFor] of Object.entries(refused)) {
    // The request goes directly to the runner, so that only the runner judges it.
    const answer = await run.ask(commandFor(live));
    const direct = await ask(free, commandFor(free));
    const here = direct.ok ? 'granted' : describeFailure(direct.failure);
    const there = typeof answer === 'object' && !answer.done ? answer.message : 'granted';
    expect([name, general(free, here)]).toEqual([name, general(live, there)]);
    expect([name, here]).not.toEqual([name, 'granted']);
    const through = await ask(live, commandFor(live));
    expect([name, through.ok || general(live, through.failure.message)]).toEqual([
      name,
      direct.ok || general(free, direct.failure.message),
    ]);
  }
  expect(free.events()).toHaveLength(free.state().lastSeq);
  expect(free.state().status).toBe('created');
  run.signal('SIGINT');
  fake.exit(0);
  await run.result;
});

test('accepted requests have the same events from a runner and from a command', async () => {
  const [live, free] = [make(shape, config), make(shape, config)];
  const run = live.run(rig.env);
  const fake = await begin(live, 'works');
  await run.event('session_identified');
  const bodies = (group: GroupFixture, from: number) =>
    group
      .events()
      .slice(from)
      .filter(({ type }) => type !== 'request_answered')
      .map(({ seq: _seq, at: _at, ...body }) => JSON.parse(general(group, JSON.stringify(body))));
  for (const [name, commandFor] of Object.entries(granted)) {
    const from = [live.events().length, free.events().length] as const;
    const answers = [await ask(live, commandFor(live)), await ask(free, commandFor(free))];
    expect([name, ...answers.map(({ ok }) => ok)]).toEqual([name, true, true]);
    const [there, here] = [bodies(live, from[0]), bodies(free, from[1])];
    expect([name, there]).toEqual([name, here]);
    expect([name, here.length]).not.toEqual([name, 0]);
  }
  run.signal('SIGINT');
  fake.exit(0);
  await run.result;
});
