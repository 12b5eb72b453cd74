/**
 * Promises: a message to a session that begins with a slash command is expanded, whether the session is running,
 * waiting for its first attempt, or resumed later. Each command is a turn of its own.
 */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type ScriptedApi, startScriptedApi } from '../../../src/rehearsal/scripted-api.ts';
import { pinnedClaude, TestHome, until } from '../../support/cli.ts';
import { writeTree } from '../../support/git/repository.ts';
import { patienceMs } from '../../support/mailbox.ts';

setDefaultTimeout(4 * patienceMs);

let api: ScriptedApi;
let machine: TestHome;
let project: string;
beforeAll(() => {
  const waits = 'touch working; until [ -e go ]; do sleep 0.1; done';
  const steps = [
    { tool: 'Bash', input: { command: waits } },
    ...['one', 'two', 'three', 'four', 'five'].map((text) => ({ text })),
  ];
  api = startScriptedApi({ script: { version: 1, sessions: { '*': { steps } } }, nameOf: () => undefined });
  machine = new TestHome({
    CLAUDE_CODE_AGENT_CLAUDE: pinnedClaude(),
    ANTHROPIC_BASE_URL: api.url,
    ANTHROPIC_API_KEY: 'test-key',
  });
  project = machine.project('app');
  const about = '---\ndescription: Deploy it\ndisable-model-invocation: true\nname: deploy\n---\n';
  writeTree(project, { '.claude/skills/deploy/SKILL.md': `${about}Deploy to $ARGUMENTS as the skill says.\n` });
});
afterAll(async () => {
  await api.stop();
  machine.remove();
});

const told = () => JSON.stringify(api.requests.at(-1)?.body.messages);

test("commands sent before, during and after a session's work are expanded once", async () => {
  const group = await machine.ok('group', 'create', 'say', '--allowed-tools', 'Bash');
  await machine.ok('session', 'add', group, '--name', 'a', '--project', project, '--prompt', '/deploy mercury');
  await machine.ok('session', 'say', `${group}/a`, '/deploy venus');
  const running = machine.start('group', 'run', group, '--output', 'text', '--no-warm-cache');
  await until(() => existsSync(join(project, 'working')));
  await machine.ok('session', 'say', `${group}/a`, '/deploy mars');
  // Messages that claude had not read before a pause are sent again.
  await machine.ok('group', 'pause', group);
  expect(await running.finished).toMatchObject({ code: 3 });
  await machine.ok('session', 'say', `${group}/a`, '/deploy jupiter');
  writeFileSync(join(project, 'go'), '');
  expect(await machine.run('group', 'run', group, '--output', 'text')).toMatchObject({ code: 0 });
  for (const planet of ['mercury', 'venus', 'mars', 'jupiter']) {
    expect(told().split(`Deploy to ${planet} as the skill says.`)).toHaveLength(2);
  }
  expect(told()).not.toMatch(/The user adds:(?:\\n)+\/deploy/);
});
