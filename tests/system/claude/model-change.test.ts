/**
 * Promises, with the real claude: a running session uses another model from its next request on, without a pause. The
 * change survives a pause and the death of the runner.
 */
import { afterEach, beforeEach, expect, setDefaultTimeout, test } from 'bun:test';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type ScriptedApi, startScriptedApi } from '../../../src/rehearsal/scripted-api.ts';
import { stepLimitMs } from '../../support/claude/rig.ts';
import { User } from '../../support/cli/user.ts';
import { pinnedClaude, until } from '../../support/cli.ts';

setDefaultTimeout(stepLimitMs);

const [first, second] = ['claude-opus-4-8', 'claude-haiku-4-5'];
const waitFor = (name: string) => ({
  tool: 'Bash',
  input: { command: `touch begun-${name}; until [ -e go-${name} ]; do sleep 0.05; done` },
});

let api: ScriptedApi;
let user: User;
let group: string;
let project: string;

beforeEach(async () => {
  const steps = [waitFor('one'), waitFor('two'), { text: 'done' }];
  api = startScriptedApi({ script: { version: 1, sessions: { '*': { steps } } }, nameOf: () => undefined });
  user = new User({
    ANTHROPIC_BASE_URL: api.url,
    ANTHROPIC_API_KEY: 'test-key',
    CLAUDE_CODE_AGENT_CLAUDE: pinnedClaude(),
  });
  group = await user.ok('group', 'create', 'change');
  await user.add(group, 'work', '--allowed-tools', 'Bash', '--model', first);
  project = user.project('work');
});
afterEach(async () => {
  user.remove();
  await api.stop();
});

const begun = (name: string) => until(() => existsSync(join(project, `begun-${name}`)));
const go = (name: string) => writeFileSync(join(project, `go-${name}`), '');
/** Requests of the work itself: claude probes a new model with a request for one token. */
const models = () =>
  api.requests.flatMap(({ body }) => {
    const { model, max_tokens: most } = body as { model?: string; max_tokens?: number };
    return most === 1 ? [] : [model];
  });
/** The runner has told claude, which probes the model first. */
const isTold = () => until(() => api.requests.some(({ body }) => (body as { model?: string }).model === second));
const edit = (...changes: string[]) => user.run('session', 'edit', `${group}/work`, ...changes);
const show = () => user.json<{ status: string; attempts: number }>('session', 'show', `${group}/work`);

test('a running session changes its model at once and keeps it after a pause', async () => {
  const run = user.start('group', 'run', group);
  await begun('one');
  expect((await edit('--model', second)).code).toBe(0);
  expect(await edit('--model', first, '--prompt', 'Other.')).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('Pause it first'),
  });
  await isTold();
  go('one');
  await begun('two');
  expect(models()).toEqual([first, second]);
  expect(await show()).toMatchObject({ status: 'running', attempts: 1 });
  await user.ok('session', 'pause', `${group}/work`);
  await run.finished;
  go('two');
  await user.ok('session', 'resume', `${group}/work`);
  await user.ok('group', 'run', group, '--output', 'quiet');
  expect(await show()).toMatchObject({ status: 'completed' });
  expect(new Set(models().slice(1))).toEqual(new Set([second]));
});

test('so does a session that has its model and effort from the group', async () => {
  const other = await user.ok('group', 'create', 'shared', '--model', first, '--effort', 'low');
  await user.add(other, 'own', '--allowed-tools', 'Bash');
  [group, project] = [other, user.project('own')];
  const run = user.start('group', 'run', group);
  await begun('one');
  expect(await user.ok('session', 'show', `${group}/own`)).toMatch(/^ *Effort:? +low$/m);
  expect((await user.run('session', 'edit', `${group}/own`, '--model', second)).code).toBe(0);
  await isTold();
  go('one');
  await begun('two');
  expect(models()).toEqual([first, second]);
  go('two');
  expect((await run.finished).code).toBe(0);
});

test('a model changed without a live runner is used by the next one', async () => {
  const run = user.start('group', 'run', group);
  await begun('one');
  run.kill('SIGKILL');
  await run.finished;
  expect((await edit('--model', second)).code).toBe(0);
  const again = user.start('group', 'run', group);
  await isTold();
  go('one');
  await begun('two');
  go('two');
  expect((await again.finished).code).toBe(0);
  expect(await show()).toMatchObject({ status: 'completed', attempts: 1 });
  expect(models().at(-1)).toBe(second);
});
