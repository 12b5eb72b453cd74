/**
 * Promises, with the real claude in a terminal and a scripted API: a session is taken over in the middle of its task,
 * claude opens in its conversation without a question in the way, and the group goes on with what was said. What that
 * cost is counted once. Also what `/clear` and the end of claude leave in its files, which the counting relies on.
 */
import { afterEach, beforeEach, expect, test } from 'bun:test';
import type { Step } from '../../src/rehearsal/script.ts';
import { type ScriptedApi, startScriptedApi } from '../../src/rehearsal/scripted-api.ts';
import { pinnedClaude, until } from '../support/cli.ts';
import { launcher, Runners, removeGroup } from '../support/crash-rig.ts';
import { type GroupFixture, makeGroup } from '../support/group-fixture.ts';
import { TestTerminal } from '../support/terminal.ts';
import { modelOfKnownPrice } from './rig.ts';

let api: ScriptedApi;
let group: GroupFixture;
let runners: Runners;
let terminal: TestTerminal | undefined;
beforeEach(() => {
  group = makeGroup([{ name: 'one', fields: { allowedTools: ['Bash'], model: modelOfKnownPrice } }], {
    maxBudgetUsd: 5,
  });
});
afterEach(async () => {
  terminal?.close();
  await api.stop();
  removeGroup(group);
});

/** A step of the scripted API costs a cent. */
function serve(...steps: readonly Step[]): void {
  api = startScriptedApi({
    script: { version: 1, sessions: { '*': { steps: [...steps] } } },
    nameOf: (id) => (id === group.claudeId('one') ? 'one' : undefined),
  });
  runners = new Runners(group, {
    ANTHROPIC_BASE_URL: api.url,
    ANTHROPIC_API_KEY: 'test-key',
    CLAUDE_CODE_AGENT_CLAUDE: pinnedClaude(),
  });
}

function attach(): TestTerminal {
  const env = { PATH: process.env.PATH ?? '', LANG: 'C.UTF-8', ...runners.env };
  terminal = new TestTerminal([launcher, 'session', 'attach', `${group.groupId}/one`], {
    cwd: group.folder,
    env,
    columns: 100,
    rows: 40,
  });
  return terminal;
}

const has = (type: string) => group.events().some((event) => event.type === type);
const record = () => group.state().sessions.get(group.id('one'));

test('a session that is at work is taken over, spoken with, and goes on with that; it is counted once', async () => {
  serve(
    { text: 'Working.', tool: 'Bash', input: { command: 'echo begun' } },
    { hang: true, times: 1, text: 'Blue it is.' },
    { text: 'Painted it blue.' },
  );
  const run = runners.start();
  // The model is asked for the next step, and does not answer.
  await until(() => api.requests.length === 2);
  attach();
  await terminal?.shows('Working.', '❯');
  expect(group.state().reservedUsd).toBeGreaterThan(0);
  terminal?.type('Paint it blue instead.');
  await terminal?.shows('Paint it blue instead.');
  terminal?.type('\r');
  await terminal?.shows('Blue it is.');
  terminal?.type('/exit\r');
  expect(await terminal?.exited).toBe(0);
  expect(terminal?.text()).toMatch(/You spent ~?\$0\.01\. 001 one goes on with that as soon as there is a slot\./);
  expect(await run.finished).toMatchObject({ code: 0, stderr: '' });
  expect(api.problems).toEqual([]);
  const last = api.requests.at(-1);
  expect(api.requests.map(({ session }) => session)).toEqual(Array(4).fill(group.claudeId('one')));
  expect(JSON.stringify(last)).toContain('Paint it blue instead.');
  expect(JSON.stringify(last)).toContain('the user has taken part in this conversation');
  expect(group.state().usage.costUsd).toBeCloseTo(api.served.total.costUsd, 6);
  expect(group.state()).toMatchObject({ status: 'completed', reservedUsd: 0 });
  expect(record()?.claudeSessionIds).toEqual([group.claudeId('one')]);
  expect(has('session_detached')).toBe(true);
}, 30_000);
