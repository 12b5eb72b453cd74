/**
 * Promises, with the real claude: sub-agents that run when a session reaches its cap end with it, and their cost is
 * recorded. claude itself ends only the turn, and they would continue.
 */
import { afterEach, expect, setDefaultTimeout, test } from 'bun:test';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Step } from '../../../src/rehearsal/script.ts';
import { type ScriptedApi, startScriptedApi } from '../../../src/rehearsal/scripted-api.ts';
import { modelOfKnownPrice } from '../../support/claude/rig.ts';
import { pinnedClaude, until } from '../../support/cli.ts';
import { type GroupFixture, makeGroup } from '../../support/group-fixture.ts';
import { sampled } from '../../support/long.ts';

setDefaultTimeout(60_000);

/** Cost of one message of the scripted API, US dollars. */
const messageUsd = 0.01;
const capUsd = 0.05;

let api: ScriptedApi | null = null;
let group: GroupFixture | null = null;
afterEach(async () => {
  await api?.stop();
  group?.remove();
});

const bash = (command: string): Step => ({ tool: 'Bash', input: { command } });

/** The last command lasts until it is ended, however long that takes on a busy machine. */
const work = (short: number): Step[] => [...Array.from({ length: short }, () => bash('true')), bash('sleep 600')];

/** A session calls this many sub-agents at once, each of which does the same. */
function begin(agents: number, steps: readonly Step[], cap: 'group' | 'session') {
  const fields = { allowedTools: ['Bash', 'Agent'], model: modelOfKnownPrice };
  const own = cap === 'session' ? { maxBudgetUsd: capUsd } : {};
  const made = makeGroup(
    [{ name: 'a', fields: { ...fields, ...own } }],
    cap === 'group' ? { maxBudgetUsd: capUsd } : {},
  );
  const input = { description: 'look', prompt: 'look', subagent_type: 'general-purpose' };
  const calls = Array.from({ length: agents }, () => ({ tool: 'Agent', input }));
  const script = { steps: [{ tools: calls }, { text: 'done' }], agents: [...steps, { text: 'nothing' }] };
  api = startScriptedApi({ script: { version: 1, sessions: { '*': script } }, nameOf: () => 'a' });
  group = made;
  const env = {
    ANTHROPIC_BASE_URL: api.url,
    ANTHROPIC_API_KEY: 'test-key',
    CLAUDE_CODE_AGENT_CLAUDE: pinnedClaude(),
  };
  return { made, env, served: () => (api as ScriptedApi).served.total.costUsd };
}

/** What claude reported or left in its files is exact; beyond that no more is recorded than is held. */
function expectBooked(made: GroupFixture, servedUsd: number): void {
  const { costUsd, heldUsd = 0 } = made.state().usage;
  if (heldUsd === 0) expect(costUsd).toBeCloseTo(servedUsd, 6);
  expect(costUsd).toBeGreaterThan(servedUsd - 1e-6);
  expect(costUsd - heldUsd).toBeLessThan(servedUsd + 1e-6);
}

test.each(sampled(['session', 'group'] as const, 2))('sub-agents end at the cap of the %s', async (cap) => {
  const { made, env, served } = begin(1, work(4), cap);
  expect(await made.run(env).result).toMatchObject({ kind: 'settled', status: 'paused' });
  expect(served()).toBeLessThanOrEqual(capUsd + messageUsd + 1e-9);
  expectBooked(made, served());
});

test('three sub-agents at once exceed the cap by one message each', async () => {
  const { made, env, served } = begin(3, work(1), 'session');
  expect(await made.run(env).result).toMatchObject({ kind: 'settled', status: 'paused' });
  expect(served()).toBeLessThanOrEqual(capUsd + 4 * messageUsd + 1e-9);
  expectBooked(made, served());
});

test('nested sub-agents exceed the cap by little', async () => {
  const input = { description: 'look', prompt: 'look', subagent_type: 'general-purpose' };
  const { made, env, served } = begin(1, [{ tool: 'Agent', input }, ...work(1)], 'session');
  expect(await made.run(env).result).toMatchObject({ kind: 'settled', status: 'paused' });
  // Their spending is checked every second.
  expect(served()).toBeLessThanOrEqual(capUsd + 8 * messageUsd);
  expectBooked(made, served());
});

test('spending beyond the cap without a runner is counted by the next run, which ends the sub-agents', async () => {
  const hold = (name: string) => bash(`touch at-${name}; until [ -e go-${name} ]; do sleep 0.05; done`);
  const spend = Array.from({ length: 6 }, () => bash('echo spent'));
  const { made, env, served } = begin(1, [hold('first'), ...spend, hold('second'), ...spend], 'session');
  const project = made.project('a');
  const run = made.run(env);
  await until(() => existsSync(join(project, 'at-first')));
  run.signal('SIGHUP');
  expect(await run.result).toMatchObject({ kind: 'left' });
  writeFileSync(join(project, 'go-first'), '');
  await until(() => existsSync(join(project, 'at-second')));
  expect(readFileSync(made.session('a').transcript, 'utf8')).toContain('error_max_budget_usd');
  const alone = served();
  expect(alone).toBeGreaterThan(capUsd + messageUsd);
  expect(await made.run(env).result).toMatchObject({ kind: 'settled', status: 'paused' });
  expect(served()).toBeLessThanOrEqual(alone + 1e-9);
  expectBooked(made, served());
});
