/**
 * Promises: 80 repositories start in waves; a person corrects the prompt after the first one, and the correction is in
 * the prompt of the 77 others and reaches the first three; a runner that is killed at a decision changes nothing.
 */
import { expect, test } from 'bun:test';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { sessionUuid } from '../../../src/core/id.ts';
import { nightUser, withNight } from '../../support/cli/night.ts';
import { launcher } from '../../support/cli/user.ts';
import { rig } from '../../support/rig-ground.ts';
import { key, TestTerminal } from '../../support/terminal.ts';

withNight();

const flow = `version: 1
group:
  waves: [3, 20%, rest]
  continueIf: accepted >= 80% and cost <= quote
  concurrent: 8
sessions:
  change:
    matrix:
      projects: repos/*
    prompt: Rename verify to verifyToken.
`;
const note = 'Keep verify as an alias.';

interface Inbox {
  readonly items: { readonly id: string; readonly kind: string; readonly text: string; readonly session: null }[];
}

/** A wave that waits is not a failed night, and its decision is on the screen. */
async function expectReviewShowsWave(group: string): Promise<void> {
  expect(await nightUser.ok('review', group)).toStartWith('3 of 80 sessions completed, ');
  const terminal = new TestTerminal([launcher, 'review', group], { cwd: nightUser.folder, env: nightUser.env });
  await terminal.shows('3 of 80 sessions completed', 'Wave 1 of 3: 3 of 3 sessions accepted', ' stop');
  terminal.type('q');
  expect(await terminal.exited).toBe(0);
  terminal.close();
}

test('a correction after the first wave reaches all 80 repositories, and a killed runner changes nothing', async () => {
  for (let number = 1; number <= 80; number += 1) {
    mkdirSync(join(nightUser.folder, 'repos', `r${String(number).padStart(2, '0')}`), { recursive: true });
  }
  writeFileSync(join(nightUser.folder, 'flow.yaml'), flow);
  const created = await nightUser.runWith(
    { cwd: nightUser.folder },
    'group',
    'create',
    'rename',
    '--from',
    'flow.yaml',
  );
  expect(created.stderr).toBe('');
  const group = created.stdout.trim();
  const plan = await nightUser.ok('group', 'plan', group);
  for (const line of ['wave 1: 3 sessions, no estimate', 'wave 2: 16 sessions', 'wave 3: 61 sessions'])
    expect(plan).toContain(line);
  const ids = nightUser.events(group).flatMap((event) => (event.type === 'session_added' ? event.sessionId : []));
  const prompts = new Map<string, string[]>(ids.map((id) => [id, []]));
  for (const id of ids) {
    rig.answerEach(sessionUuid(id), async (fake) => {
      prompts.get(id)?.push(await fake.prompt());
      await fake.init();
      await fake.succeed(0.1);
    });
  }
  const told = () => [...prompts.values()].filter((all) => all.length > 0).length;
  const run = (...args: string[]) => nightUser.start('group', ...args, group, '--output', 'quiet');

  expect((await run('run').finished).code).toBe(3);
  expect(told()).toBe(3);
  await expectReviewShowsWave(group);
  const { items } = await nightUser.json<Inbox>('inbox');
  const [item] = items;
  expect(items).toMatchObject([{ kind: 'wave', group, session: null }]);
  expect(item?.text).toBe(
    'Wave 1 of 3: 3 of 3 sessions accepted, $0.30 spent. The rule does not let the next wave start: there was no ' +
      'estimate of its cost when the run began. At this price the other 77 cost $7.70.',
  );
  expect(await nightUser.ok('why', group)).toContain('waits-for-wave');
  expect(await nightUser.ok('status', group)).toContain(`answer ${item?.id} continue`);
  // A run without an answer starts nothing.
  expect((await run('resume').finished).code).toBe(3);
  expect(told()).toBe(3);
  const answer = ['answer', item?.id ?? '', 'continue', '--note', note];
  expect(await nightUser.run('answer', item?.id ?? '', 'yes')).toMatchObject({ code: 2 });
  await nightUser.ok(...answer);
  expect(await nightUser.run(...answer)).toMatchObject({ code: 2 });
  for (const id of ids.slice(0, 3))
    await nightUser.ok('session', 'retry', `${group}/${id.slice(0, 3)}`, '--prompt', note);

  // The runner dies as soon as the second wave is decided on, by the rule this time.
  const killed = run('resume');
  await nightUser.event(group, 'wave_finished', (event) => 'wave' in event && event.wave === 2);
  killed.kill('SIGKILL');
  await killed.finished;
  expect((await run('resume').finished).code).toBe(0);

  const decisions = nightUser.events(group).filter((event) => event.type === 'wave_decided');
  expect(decisions.map(({ wave, by, decision }) => `${wave} ${by} ${decision}`)).toEqual([
    '1 user continue',
    '2 rule continue',
  ]);
  expect(ids.map((id) => prompts.get(id)?.filter((text) => text.includes(note)).length)).toEqual(ids.map(() => 1));
  expect(ids.map((id) => prompts.get(id)?.length)).toEqual(ids.map((_, index) => (index < 3 ? 2 : 1)));
}, 120_000);

/** A group of three repositories in two waves, whose first one is over; with the prompts of its sessions. */
async function smallGroup(): Promise<{ readonly group: string; readonly prompts: string[] }> {
  for (const name of ['a', 'b', 'c']) mkdirSync(join(nightUser.folder, 'repos', name), { recursive: true });
  writeFileSync(
    join(nightUser.folder, 'flow.yaml'),
    flow.replace('3, 20%, rest', '1, rest').replace(/ {2}continueIf.*\n/, ''),
  );
  const created = await nightUser.runWith(
    { cwd: nightUser.folder },
    'group',
    'create',
    'rename',
    '--from',
    'flow.yaml',
  );
  const group = created.stdout.trim();
  const prompts: string[] = [];
  for (const event of nightUser.events(group)) {
    if (event.type !== 'session_added') continue;
    rig.answerEach(sessionUuid(event.sessionId), async (fake) => {
      prompts.push(await fake.prompt());
      await fake.init();
      await fake.succeed(0.1);
    });
  }
  expect((await nightUser.start('group', 'run', group, '--output', 'quiet').finished).code).toBe(3);
  expect(prompts).toHaveLength(1);
  return { group, prompts };
}

test('a wave is decided on the screen of the review, and the next one starts when it is left', async () => {
  const { group, prompts } = await smallGroup();
  const terminal = new TestTerminal([launcher, 'review', group], { cwd: nightUser.folder, env: nightUser.env });
  try {
    await terminal.shows('Wave 1 of 2', '1 decision waits', 'a answer');
    terminal.type('a');
    await terminal.shows('To the wave (continue or stop');
    terminal.type('yes');
    terminal.type(key.enter);
    await terminal.shows('A wave takes "continue" or "stop".');
    terminal.type('a');
    await terminal.shows('To the wave (continue or stop');
    terminal.type(`continue ${note}`);
    terminal.type(key.enter);
    await terminal.shows('The next wave may start. It starts when you leave the review.');
    await terminal.until((text) => !text.includes('1 decision waits'));
    expect(terminal.text()).not.toContain('Failed:');
    terminal.type('a');
    await terminal.shows('It has no open question.');
    terminal.type('q');
    expect(await terminal.exited).toBe(0);
  } finally {
    terminal.close();
  }
  expect(prompts.map((prompt) => prompt.includes(note))).toEqual([false, true, true]);
}, 60_000);

test('stop ends the run with the rest pending, and the next run asks again', async () => {
  const { group } = await smallGroup();
  const before = (await nightUser.json<Inbox>('inbox')).items;
  expect(before[0]?.text).toContain('1 of 1 session accepted');
  await nightUser.ok('answer', before[0]?.id ?? '', 'stop');
  const again = await nightUser.run('answer', 'rename', 'continue');
  expect(again).toMatchObject({ code: 2, stderr: expect.stringContaining('already answered: stop') });
  expect((await nightUser.json<Inbox>('inbox')).items).toEqual([]);
  expect(await nightUser.ok('group', 'show', group)).toContain(
    'Stopped after wave 1 of 2: 2 sessions were not started.',
  );
  expect((await nightUser.start('group', 'resume', group, '--output', 'quiet').finished).code).toBe(3);
  const after = (await nightUser.json<Inbox>('inbox')).items;
  expect(after).toMatchObject([{ kind: 'wave' }]);
  expect(after[0]?.id).not.toBe(before[0]?.id);
}, 60_000);
