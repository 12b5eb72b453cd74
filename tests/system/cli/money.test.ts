/**
 * Promises, with the real claude: sessions of fifty cents each stay under a cap below their sum. The exit code of a run
 * reports a pause in the middle of a Bash call.
 */
import { afterEach, beforeEach, expect, test } from 'bun:test';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { RehearsalScript, Step } from '../../../src/rehearsal/script.ts';
import { type ScriptedApi, startScriptedApi } from '../../../src/rehearsal/scripted-api.ts';
import { modelOfKnownPrice } from '../../support/claude/rig.ts';
import { User } from '../../support/cli/user.ts';
import { pinnedClaude, processesIn, until } from '../../support/cli.ts';
import { isLongRun } from '../../support/long.ts';

/** Ten times the tokens of a plain reply: ten cents. */
const usage = { input: 10_000, output: 2_000 };
const messageUsd = 0.1;
/** Number of sessions, and the cap of their group in US dollars. */
const [count, capUsd] = isLongRun ? [10, 2] : [3, 0.75];
const fiftyCents: readonly Step[] = [
  ...[1, 2, 3, 4].map((count): Step => ({ tool: 'Bash', input: { command: `echo ${count}` }, usage })),
  { text: 'fifty cents spent', usage },
];

let api: ScriptedApi;
let user: User;

function serve(steps: readonly Step[]): void {
  const script: RehearsalScript = { version: 1, sessions: { '*': { steps: [...steps] } } };
  api = startScriptedApi({ script, nameOf: () => undefined });
  user = new User({
    ANTHROPIC_BASE_URL: api.url,
    ANTHROPIC_API_KEY: 'test-key',
    CLAUDE_CODE_AGENT_CLAUDE: pinnedClaude(),
  });
}

beforeEach(() => serve(fiftyCents));
afterEach(async () => {
  await api.stop();
  user.remove();
});

async function sessions(...options: string[]): Promise<string> {
  const group = await user.ok(
    'group',
    'create',
    'night',
    '--max-budget-usd',
    String(capUsd),
    ...options,
    '--concurrent',
    '10',
  );
  for (let number = 1; number <= count; number += 1) {
    await user.add(
      group,
      `s${number}`,
      '--max-budget-usd',
      '0.50',
      '--allowed-tools',
      'Bash',
      '--model',
      modelOfKnownPrice,
    );
  }
  return group;
}

interface Line {
  readonly type: string;
  readonly action?: string;
  readonly reason?: string;
  /** The owner of the cap. */
  readonly scope?: 'group' | 'session';
}

const linesOf = (stdout: string): Line[] =>
  stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Line);

/** Events of this type, without those about a session's own cap, which it may or may not approach. */
const only = (lines: readonly Line[], type: string): Line[] =>
  lines.filter((line) => line.type === type && line.scope !== 'session');

test('the cap holds; raised to ten dollars all sessions complete, and the total is what was served', async () => {
  const group = await sessions();
  const run = await user.run('group', 'run', group, '--output', 'json');
  expect(run.code).toBe(3);
  expect(api.served.total.costUsd).toBeLessThanOrEqual(capUsd + count * messageUsd + 1e-9);
  const lines = linesOf(run.stdout);
  expect(only(lines, 'budget_warning')).toHaveLength(1);
  expect(only(lines, 'budget_exceeded')).toMatchObject([{ action: 'paused' }]);
  expect(only(lines, 'group_paused')).toMatchObject([{ reason: 'budget' }]);
  expect(only(lines, 'session_failed')).toEqual([]);

  // The review of a night that stopped at its cap says so, and how it goes on.
  expect(await user.ok('review', group)).toMatch(/The budget is used up\. Continue with: .*--max-budget-usd/);
  await user.ok('group', 'budget', group, '--raise-to', '10');
  expect((await user.run('group', 'resume', group, '--output', 'quiet')).code).toBe(0);
  interface Shown {
    readonly status: string;
    readonly cost: number;
    readonly sessions: readonly { readonly id: string; readonly cost: number }[];
    readonly progress: { readonly totalCost: number; readonly completed: number };
  }
  const { status, cost, sessions: listed, progress } = await user.json<Shown>('group', 'show', group);
  expect({ status, completed: progress.completed }).toEqual({ status: 'completed', completed: count });
  expect(progress.totalCost).toBeCloseTo(api.served.total.costUsd, 6);
  const costs = await Promise.all(
    listed.map(async ({ id }) => (await user.json<{ cost: number }>('session', 'show', `${group}/${id}`)).cost),
  );
  expect(listed.map((session) => session.cost)).toEqual(costs);
  expect(costs.reduce((sum, one) => sum + one, 0)).toBeCloseTo(cost, 6);
  expect(api.served.total.costUsd).toBeCloseTo(count * 0.5, 6);
}, 120_000);

test('with "warn" all sessions complete, and exceeding the cap is reported once', async () => {
  const group = await sessions('--on-budget-exceeded', 'warn');
  const run = await user.run('group', 'run', group, '--output', 'json');
  expect(run.code).toBe(0);
  expect(only(linesOf(run.stdout), 'budget_exceeded')).toMatchObject([{ action: 'continued' }]);
  expect(only(linesOf(run.stdout), 'session_completed')).toHaveLength(count);
  expect(api.served.total.costUsd).toBeCloseTo(count * 0.5, 6);
}, 120_000);

test('with "stop" the group fails with its budget as the reason', async () => {
  const group = await sessions('--on-budget-exceeded', 'stop');
  const run = await user.run('group', 'run', group, '--output', 'json');
  expect(run.code).toBe(1);
  expect(api.served.total.costUsd).toBeLessThanOrEqual(capUsd + count * messageUsd + 1e-9);
  const lines = linesOf(run.stdout);
  expect(only(lines, 'budget_exceeded')).toMatchObject([{ action: 'stopped' }]);
  expect(only(lines, 'group_failed')).toMatchObject([{ reason: 'budget' }]);
  expect(await user.json('group', 'show', group)).toMatchObject({ status: 'failed', reason: 'budget' });
}, 120_000);

test('group pause in a Bash call: the run exits with 3, no process is left, group resume continues', async () => {
  await api.stop();
  user.remove();
  const command = 'test -e begun && echo again && exit; (setsid env -i sleep 60 &) ; touch begun; sleep 60';
  serve([{ tool: 'Bash', input: { command, timeout: 600_000 } }, { text: 'all done' }]);
  const group = await user.ok('group', 'create', 'night');
  await user.add(group, 'a', '--allowed-tools', 'Bash');
  const project = user.project('a');
  const run = user.start('group', 'run', group, '--output', 'quiet');
  await until(() => existsSync(join(project, 'begun')));
  expect(processesIn(project).length).toBeGreaterThanOrEqual(2);
  await user.ok('group', 'pause', group);
  expect((await run.finished).code).toBe(3);
  expect(processesIn(project)).toEqual([]);

  expect((await user.run('group', 'resume', group, '--output', 'quiet')).code).toBe(0);
  const last = JSON.stringify(api.requests.at(-1)?.body.messages);
  expect(last).toContain('Do it.');
  expect(last).toContain('touch begun; sleep 60');
  expect(api.problems).toEqual([]);
}, 120_000);
