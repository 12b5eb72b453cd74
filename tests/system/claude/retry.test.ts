/**
 * Promises, with the real claude and a scripted API: a conversation that the API always refuses does not block its
 * session. `session retry --rewind` drops its last messages, and `--fresh` starts a new conversation; the work is kept.
 */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type ScriptedApi, startScriptedApi } from '../../../src/rehearsal/scripted-api.ts';
import { stepLimitMs } from '../../support/claude/rig.ts';
import { User } from '../../support/cli/user.ts';
import { pinnedClaude } from '../../support/cli.ts';

setDefaultTimeout(stepLimitMs);

const work = (name: string) => ({ text: `I write ${name}.`, tool: 'Bash', input: { command: `touch ${name}` } });
const refusal = { status: 400, errorType: 'invalid_request_error', message: 'an image is broken' };
const script = {
  version: 1 as const,
  sessions: { '*': { steps: [work('one'), work('two'), { ...refusal, times: 100 }] } },
};

let api: ScriptedApi;
let user: User;
let group: string;

beforeAll(async () => {
  api = startScriptedApi({ script, nameOf: () => undefined });
  user = new User({
    ANTHROPIC_BASE_URL: api.url,
    ANTHROPIC_API_KEY: 'test-key',
    CLAUDE_CODE_AGENT_CLAUDE: pinnedClaude(),
  });
  group = await user.ok('group', 'create', 'stuck');
  await user.add(group, 'only', '--allowed-tools', 'Bash');
  expect((await user.run('group', 'run', group, '--output', 'quiet')).code).toBe(1);
});
afterAll(async () => {
  user.remove();
  await api.stop();
});

/** The first request of a retry. */
async function firstRequestOf(...how: string[]) {
  const before = api.requests.length;
  const { code, stderr } = await user.run('session', 'retry', `${group}/only`, ...how);
  const request = api.requests.slice(before).find(({ kind }) => kind === 'step');
  return { code, stderr, session: request?.session, said: JSON.stringify(request?.body.messages ?? []) };
}

test('a refused conversation names both ways out', async () => {
  const said = await user.ok('session', 'show', `${group}/only`);
  expect(said).toContain('rewind the conversation (--rewind) or start a new one');
});

test("--rewind drops the model's last messages and tells the model", async () => {
  const plain = await firstRequestOf();
  expect(plain.said).toContain('touch two');
  const rewound = await firstRequestOf('--rewind');
  expect(rewound.session).toBe(plain.session);
  expect(rewound.said).toContain('touch one');
  expect(rewound.said).not.toContain('touch two');
  expect(rewound.said).toContain('taken the conversation back');
});

test('rewinding beyond the start is refused with the number of turns, and nothing is started', async () => {
  const before = api.requests.length;
  const { code, stderr } = await user.run('session', 'retry', `${group}/only`, '--rewind', '50');
  expect(code).toBe(2);
  expect(stderr).toMatch(/only \d+ messages of the model.*--fresh/s);
  expect(api.requests.length).toBe(before);
  expect((await user.run('session', 'retry', `${group}/only`, '--rewind', '--fresh')).code).toBe(2);
});

test('--fresh starts a new conversation with the whole task', async () => {
  const { session: known } = await firstRequestOf();
  const fresh = await firstRequestOf('--fresh', '--prompt', 'Leave the image out.');
  expect(fresh.session).not.toBe(known);
  expect(fresh.said).not.toContain('touch one');
  expect(fresh.said).toContain('Do it.');
  expect(fresh.said).toContain('Leave the image out.');
  const again = await firstRequestOf();
  expect(again.session).toBe(fresh.session);
});

test('an edited config template applies to the resumed conversation', async () => {
  const template = (words: string) => {
    const folder = join(user.home, '.config/claude-code-agent/templates/configs/house');
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, 'CLAUDE.md'), words);
    return ['--config-template', 'house', '--no-generate-claude-md'];
  };
  await user.ok('session', 'edit', `${group}/only`, ...template('Speak like a pirate.'));
  expect(JSON.stringify((await lastRequest('--fresh')).system)).toContain('Speak like a pirate.');
  await user.ok('session', 'edit', `${group}/only`, ...template('Speak like a judge.'));
  const goesOn = JSON.stringify((await lastRequest()).system);
  expect(goesOn).toContain('Speak like a judge.');
  expect(goesOn).not.toContain('pirate');
});

/** The body of a retry's last request. */
async function lastRequest(...how: string[]) {
  await user.run('session', 'retry', `${group}/only`, ...how);
  return api.requests.findLast(({ kind }) => kind === 'step')?.body as { readonly system?: unknown };
}
