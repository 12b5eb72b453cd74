/**
 * Promises, with the real claude: a model whose price claude does not know is charged at the highest known price, from
 * the first figure on, and the cap holds by that. Older versions do not report that they guess.
 */
import { afterEach, expect, setDefaultTimeout, test } from 'bun:test';
import { readFileSync } from 'node:fs';
import { type ScriptedApi, startScriptedApi } from '../../../src/rehearsal/scripted-api.ts';
import { pinnedClaude } from '../../support/cli.ts';
import { type GroupFixture, makeGroup } from '../../support/group-fixture.ts';

setDefaultTimeout(60_000);

let api: ScriptedApi | null = null;
let group: GroupFixture | null = null;
afterEach(async () => {
  await api?.stop();
  group?.remove();
});

test('a cap holds by the highest known price, and a guess of claude’s does not lower it', async () => {
  const model = 'claude-opus-99';
  // The second message exceeds the cap; then its tool runs long without a request.
  const work = (command: string) => ({ tool: 'Bash', input: { command }, usage: { input: 50_000, output: 2_000 } });
  const steps = [work('true'), work('sleep 10'), { text: 'done' }];
  const made = makeGroup([{ name: 'a', fields: { allowedTools: ['Bash'], model } }], { maxBudgetUsd: 1.2 });
  const served = startScriptedApi({ script: { version: 1, sessions: { '*': { steps } } }, nameOf: () => 'a' });
  [api, group] = [served, made];
  const env = {
    ANTHROPIC_BASE_URL: served.url,
    ANTHROPIC_API_KEY: 'test-key',
    CLAUDE_CODE_AGENT_CLAUDE: pinnedClaude(),
  };
  const result = await made.run(env).result;
  if (!readFileSync(made.session('a').transcript, 'utf8').includes('"costBasis":"unknown"')) return;
  expect(result).toMatchObject({ kind: 'settled', status: 'paused' });
  const { usage, reason } = made.state();
  expect(reason).toBe('budget');
  expect(usage.costUsd).toBeCloseTo(served.served.total.costUsd, 6);
  expect(usage.estimated).toBe(true);
  expect(served.served.total.replies).toBe(2);
  const types = made.events().map(({ type }) => type);
  expect(types.filter((type) => type === 'session_starting')).toHaveLength(1);
});
