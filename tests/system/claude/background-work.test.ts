/**
 * Promises, with the real claude in a group: a session ends when claude is idle and nothing runs in the background. Its
 * result is the answer after the last Monitor or Workflow event, not the text before it.
 */
import { afterEach, expect, setDefaultTimeout, test } from 'bun:test';
import { readFileSync } from 'node:fs';
import type { Step } from '../../../src/rehearsal/script.ts';
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

/** The result of a session with these steps, and the number of result lines that claude printed. */
async function resultOf(steps: readonly Step[], agents: readonly Step[] = []) {
  const script = { steps: [...steps], agents: [...agents] };
  api = startScriptedApi({ script: { version: 1, sessions: { '*': script } }, nameOf: () => 'a' });
  group = makeGroup([{ name: 'a', fields: { allowedTools: ['Monitor', 'Workflow'] } }]);
  const env = { ANTHROPIC_BASE_URL: api.url, ANTHROPIC_API_KEY: 'test-key', CLAUDE_CODE_AGENT_CLAUDE: pinnedClaude() };
  expect(await group.run(env).result).toMatchObject({ kind: 'settled', status: 'completed' });
  const lines = readFileSync(group.session('a').transcript, 'utf8').trim().split('\n');
  const results = lines.map((line) => JSON.parse(line)).filter(({ type }) => type === 'result');
  return { ...group.state().sessions.get(group.id('a'))?.state, turns: results.length };
}

test('Monitor: every event starts a turn, and the last answer is the result', async () => {
  const input = { command: 'sleep 0.5; echo built; sleep 1', description: 'the build', timeout_ms: 20_000 };
  const watch = { tool: 'Monitor', input: { ...input, persistent: false } };
  const steps = [watch, { text: 'I wait.' }, { text: 'It is built.' }, { text: 'The build has ended.' }];
  expect(await resultOf(steps)).toMatchObject({ result: 'The build has ended.', turns: 3 });
});

test('Workflow: the turn after its end gives the result', async () => {
  const script = [
    "export const meta = { name: 'look', description: 'look', phases: [{ title: 'look' }] };",
    "return await agent('Look around.', { label: 'look' });",
  ].join('\n');
  const steps = [{ tool: 'Workflow', input: { script } }, { text: 'I wait.' }, { text: 'It is all there.' }];
  expect(await resultOf(steps, [{ text: 'I looked.' }])).toMatchObject({ result: 'It is all there.', turns: 2 });
});
