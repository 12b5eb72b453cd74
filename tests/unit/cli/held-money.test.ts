/**
 * Promises: money held since a machine went down counts as spent, is shown with its reason and with two commands to
 * settle it, and both commands work.
 */
import { afterEach, beforeEach, expect, test } from 'bun:test';
import type { EventBody } from '../../../src/core/event.ts';
import { noUsage, type Usage } from '../../../src/core/group.ts';
import { makeGroupId } from '../../../src/core/id.ts';
import { openGroupWriter } from '../../../src/store/group-writer.ts';
import { createRealWorld } from '../../../src/system/real-world.ts';
import { withHeld } from '../../../src/worker/attempt/outcomes.ts';
import { TestHome } from '../../support/cli.ts';
import { startRig } from '../../support/fake-claude-rig.ts';
import { noteTried } from '../../support/tried.ts';

const heldUsd = 0.75;
const usage: Usage = { ...noUsage, costUsd: 1, estimated: true, heldUsd };

interface Budget {
  readonly spentUsd: number;
  readonly heldUsd?: number;
  readonly leftUsd: number;
  readonly sessions: readonly { readonly spentUsd: number; readonly heldUsd?: number }[];
}

let machine: TestHome;
let group: string;
beforeEach(async () => {
  machine = new TestHome();
  group = await machine.ok('group', 'create', 'cut', '--max-budget-usd', '1');
  const common = ['--project', machine.project('p'), '--prompt', 'do it'];
  const sessionId = await machine.ok('session', 'add', group, '--name', 'api', ...common);
  const world = createRealWorld();
  const writer = openGroupWriter(world, machine.data, group, 'a-test');
  if (!writer.ok) throw new Error(writer.failure.message);
  const attempt = { id: 'attempt-1', number: 1, kind: 'start', offset: 0, reservedUsd: 1 } as const;
  const ended = { attemptId: attempt.id, reason: 'interrupted', message: 'The worker ended.', usage } as const;
  const { warnings } = withHeld(
    { status: 'paused', reason: 'interrupted', message: '', warnings: [] },
    usage,
    writer.value.state.group.id,
  );
  const bodies: EventBody[] = [
    { type: 'group_started', run: { id: 'a-run', runner: world.machine.self } },
    { type: 'session_starting', sessionId, attempt },
    ...warnings.map((warning): EventBody => ({ type: 'session_warning', sessionId, warning })),
    { type: 'session_paused', sessionId, ...ended },
    { type: 'group_paused', reason: 'budget', message: 'The budget is used up.' },
  ];
  for (const body of bodies) writer.value.record([body]);
  writer.value.close();
});
afterEach(() => machine.remove());

const asLongAsHeld = 'is held until you decide.';

const budget = () => machine.json<Budget>('group', 'budget', group);

test('a small held amount is shown with its digits, not as zero', () => {
  const outcome = { status: 'paused', reason: 'interrupted', message: '', warnings: [] } as const;
  const { warnings } = withHeld(outcome, { ...usage, heldUsd: 0.004 }, makeGroupId(0, 'cut'));
  expect(warnings[0]?.message).toContain('Up to $0.0040 of');
});

test('held money counts as spent, and group budget prints the commands to settle it', async () => {
  expect(await budget()).toMatchObject({ spentUsd: 1, heldUsd, leftUsd: 0, sessions: [{ spentUsd: 1, heldUsd }] });
  const text = await machine.ok('group', 'budget', group);
  expect(text).toContain('Held: $0.75 for session 001 api, counted as spent. claude was killed before it reported its');
  expect(text).toContain(`record it:  claude-code-agent group budget ${group} --book 001`);
  expect(text).toContain(`release it: claude-code-agent group budget ${group} --free 001`);
});

test('group budget --book records held money as spent for good', async () => {
  await machine.ok('group', 'budget', group, '--book', '1');
  expect(await budget()).toMatchObject({ spentUsd: 1, leftUsd: 0 });
  expect(await machine.ok('session', 'show', `${group}/api`)).not.toContain(asLongAsHeld);
  const again = await machine.run('group', 'budget', group, '--free', '1');
  expect(again).toMatchObject({ code: 2 });
  expect(again.stderr).toContain('Nothing is held for session 001-');
});

test('the next step of an exhausted group is to settle held money, and its commands work', async () => {
  machine.env.CLAUDE_CODE_AGENT_CLAUDE = '/bin/true';
  machine.env.ANTHROPIC_API_KEY = 'test-key';
  await machine.run('group', 'run', group);
  const lines = (await machine.ok('group', 'show', group)).trimEnd().split('\n');
  expect(lines.slice(-4)).toEqual([
    'The budget is used up. Part of it is held until you record or release it.',
    'Release the held amount, record it as spent, or raise the cap with: ' +
      `claude-code-agent group budget ${group} --free 001`,
    `Or: claude-code-agent group budget ${group} --book 001`,
    `Or: claude-code-agent group resume ${group} --max-budget-usd 2`,
  ]);
});

test('after group budget --free no view says that the budget is used up', async () => {
  const freed = await machine.run('group', 'budget', group, '--free', 'api');
  const resume = `claude-code-agent group resume ${group}`;
  expect(freed.stderr.trim()).toBe(`The amount held for session 001 api is released. Resume with: ${resume}`);
  const shown = await machine.ok('group', 'show', group);
  expect(shown).not.toContain('used up');
  expect(shown).toEndWith(`Budget is available again.\nContinue with: ${resume}`);
});

test('after group budget --book the budget is used up and no money is held', async () => {
  const booked = await machine.run('group', 'budget', group, '--book', 'api');
  expect(booked.stderr.trim()).toBe('The amount held for session 001 api is recorded as spent.');
  expect(booked.stdout).toContain('held amounts count in full');
  const resume = `claude-code-agent group resume ${group} --max-budget-usd 2`;
  const shown = await machine.ok('group', 'show', group);
  expect(shown).toEndWith(`The budget is used up.\nContinue with: ${resume}`);
  const little = 'Only $0.01 of the budget is left, too little to start a session.';
  const raised = await machine.run('group', 'budget', group, '--raise-to', '1.01');
  expect(raised.stderr.trim()).toBe(`The cap of ${group} is now $1.01. ${little}`);
  expect(await machine.ok('group', 'show', group)).toContain(little);
  await machine.ok('group', 'budget', group, '--raise-to', '3');
  expect(await machine.ok('group', 'show', group)).toEndWith(
    `\nContinue with: claude-code-agent group resume ${group}`,
  );
});

test.each([
  ['--free', 0.25],
  ['--book', 1],
] as const)('group budget %s is carried out by a live runner', async (option, spentUsd) => {
  const rig = await startRig();
  Object.assign(machine.env, rig.env);
  noteTried(machine.data, rig.env.CLAUDE_CODE_AGENT_CLAUDE ?? '');
  try {
    const [session = ''] = (await machine.json<{ sessions: { id: string }[] }>('group', 'budget', group)).sessions.map(
      ({ id }) => id,
    );
    const run = machine.start('group', 'run', group, '--max-budget-usd', '10');
    const fake = await rig.nextFor(session.slice(4));
    await fake.prompt();
    await fake.init();
    await machine.ok('group', 'budget', group, option, 'api');
    expect(await budget()).toMatchObject({ spentUsd, sessions: [{ spentUsd }] });
    expect((await budget()).heldUsd).toBeUndefined();
    const again = await machine.run('group', 'budget', group, option, 'api');
    expect([again.code, again.stderr]).toEqual([2, expect.stringContaining('Nothing is held for session 001-')]);
    await fake.succeed(0.5);
    expect((await run.finished).code).toBe(0);
    expect(await budget()).toMatchObject({ spentUsd: spentUsd + 0.5 });
  } finally {
    rig.stop();
  }
});
