/**
 * Promises, with the real claude in a group: a session ends when claude is idle and nothing runs in the background. Its
 * result is the answer after the last Monitor or Workflow event, not the text before it.
 */
import { afterEach, expect, setDefaultTimeout, test } from 'bun:test';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Step } from '../../../src/rehearsal/script.ts';
import { type ScriptedApi, startScriptedApi } from '../../../src/rehearsal/scripted-api.ts';
import { pinnedClaude, until } from '../../support/cli.ts';
import { type GroupFixture, makeGroup } from '../../support/group-fixture.ts';

setDefaultTimeout(60_000);

let api: ScriptedApi | null = null;
let group: GroupFixture | null = null;
afterEach(async () => {
  await api?.stop();
  group?.remove();
});

/** A session with these steps. */
function begin(steps: readonly Step[], agents: readonly Step[] = []) {
  const script = { steps: [...steps], agents: [...agents] };
  api = startScriptedApi({ script: { version: 1, sessions: { '*': script } }, nameOf: () => 'a' });
  const made = makeGroup([{ name: 'a', fields: { allowedTools: ['Monitor', 'Workflow'] } }]);
  group = made;
  const env = { ANTHROPIC_BASE_URL: api.url, ANTHROPIC_API_KEY: 'test-key', CLAUDE_CODE_AGENT_CLAUDE: pinnedClaude() };
  const { transcript } = made.session('a');
  const printed = () => (existsSync(transcript) ? readFileSync(transcript, 'utf8').split('\n').slice(0, -1) : []);
  /** The number of result lines that claude has printed. */
  const turns = () => printed().filter((line) => JSON.parse(line).type === 'result').length;
  return { made, run: made.run(env), turns };
}

/** Its result and its number of turns. */
async function endOf({ made, run, turns }: ReturnType<typeof begin>) {
  expect(await run.result).toMatchObject({ kind: 'settled', status: 'completed' });
  return { ...made.state().sessions.get(made.id('a'))?.state, turns: turns() };
}

test('Monitor: every event starts a turn, and the last answer is the result', async () => {
  // Events that come within a turn share the next one.
  const after = (name: string) => `until [ -e ${name} ]; do sleep 0.05; done`;
  const input = { command: `${after('waits')}; echo built; ${after('knows')}`, description: 'the build' };
  const watch = { tool: 'Monitor', input: { ...input, timeout_ms: 60_000, persistent: false } };
  const session = begin([watch, { text: 'I wait.' }, { text: 'It is built.' }, { text: 'The build has ended.' }]);
  for (const [turns, name] of [
    [1, 'waits'],
    [2, 'knows'],
  ] as const) {
    await until(() => session.turns() === turns);
    writeFileSync(join(session.made.project('a'), name), '');
  }
  expect(await endOf(session)).toMatchObject({ result: 'The build has ended.', turns: 3 });
});

test('Workflow: the turn after its end gives the result', async () => {
  const script = [
    "export const meta = { name: 'look', description: 'look', phases: [{ title: 'look' }] };",
    "return await agent('Look around.', { label: 'look' });",
  ].join('\n');
  const steps = [{ tool: 'Workflow', input: { script } }, { text: 'I wait.' }, { text: 'It is all there.' }];
  expect(await endOf(begin(steps, [{ text: 'I looked.' }]))).toMatchObject({ result: 'It is all there.', turns: 2 });
});
