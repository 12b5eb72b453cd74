/** Promises, with the real claude: effort and turn limits of a group apply to its sessions. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test';
import { type ScriptedApi, startScriptedApi } from '../../../src/rehearsal/scripted-api.ts';
import { stepLimitMs } from '../../support/claude/rig.ts';
import { User } from '../../support/cli/user.ts';
import { pinnedClaude } from '../../support/cli.ts';

setDefaultTimeout(stepLimitMs);

const command = 'echo effort=$CLAUDE_CODE_SUBAGENT_EFFORT history=$CLAUDE_CODE_SKIP_PROMPT_HISTORY.';
const look = { text: 'I look.', tool: 'Bash', input: { command } };
const script = {
  version: 1 as const,
  sessions: { '*': { steps: [look, look, { text: 'done' }] } },
};

let api: ScriptedApi;
let user: User;

beforeAll(() => {
  api = startScriptedApi({ script, nameOf: () => undefined });
  user = new User({
    ANTHROPIC_BASE_URL: api.url,
    ANTHROPIC_API_KEY: 'test-key',
    CLAUDE_CODE_AGENT_CLAUDE: pinnedClaude(),
    CLAUDE_CODE_SUBAGENT_EFFORT: 'medium',
    CLAUDE_CODE_SKIP_PROMPT_HISTORY: '1',
  });
});
afterAll(async () => {
  user.remove();
  await api.stop();
});

test('a group sets effort and maximum turns of its sessions', async () => {
  const group = await user.ok('group', 'create', 'short', '--effort', 'low', '--max-turns', '1');
  await user.add(group, 'long', '--allowed-tools', 'Bash');
  expect((await user.run('group', 'run', group, '--output', 'quiet')).code).toBe(1);
  const { reason } = await user.json<{ reason: string }>('session', 'show', `${group}/long`);
  expect(reason).toBe('max-turns');
  expect(JSON.stringify(api.requests.map(({ body }) => body))).toContain('"effort":"low"');
});

test("the user's claude variables reach sessions, and those that do not are named", async () => {
  const group = await user.ok('group', 'create', 'set');
  await user.add(group, 'one', '--allowed-tools', 'Bash');
  const said = 'Sessions do not get this variable of your environment';
  expect(await user.ok('group', 'plan', group)).toContain(said);
  const { code, stderr } = await user.run('group', 'run', group);
  expect({ code, stderr }).toMatchObject({ code: 0, stderr: expect.stringContaining(said) });
  expect(stderr).toContain('CLAUDE_CODE_SKIP_PROMPT_HISTORY');
  expect(JSON.stringify(api.requests.map(({ body }) => body))).toContain('effort=medium history=.');
});

test('a session is told that the budget claude mentions is no reason to leave work out', async () => {
  const before = api.requests.length;
  const group = await user.ok('group', 'create', 'shares', '--max-budget-usd', '1');
  for (const name of ['one', 'two']) await user.add(group, name, '--allowed-tools', 'Bash');
  await user.ok('group', 'run', group, '--output', 'quiet');
  const bodies = api.requests.slice(before).map(({ body }) => JSON.stringify(body));
  expect(bodies.some((body) => /USD budget: \$[\d.]+\/\$0\.5/.test(body))).toBe(true);
  for (const body of bodies) expect(body).toContain('It is no reason to leave work out');
});
