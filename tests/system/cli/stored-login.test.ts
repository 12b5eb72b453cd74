/**
 * Promises, with the real claude and a made-up login in claude's own store: a group is paused, its runner is killed
 * with -9, it is resumed and completes. Its cost is what the API served, to the sixth digit, and nothing of the login
 * is copied. tests/system/claude/payer.test.ts covers the refresh.
 */
import { afterAll, beforeAll, expect, test } from 'bun:test';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Step } from '../../../src/rehearsal/script.ts';
import { type ScriptedApi, startScriptedApi } from '../../../src/rehearsal/scripted-api.ts';
import { pinnedClaude, TestHome, until } from '../../support/cli.ts';
import { patienceMs } from '../../support/mailbox.ts';

const names = ['lib', 'web', 'docs'] as const;

let machine: TestHome;
let api: ScriptedApi;
let group = '';

/** A command that reports its start and ends when `go` exists. */
const waiting = (mark: string, go: string) => `touch ${mark}; until [ -e ${go} ]; do sleep 0.1; done; echo over`;

/** With such a login claude requests a one-hour prompt cache, which has its own price. */
const usage = { input: 1_000, output: 400, cacheRead: 3_000, cacheCreation: 20_000 };
const steps: Step[] = [
  { usage, text: 'First this.', tool: 'Bash', input: { command: waiting('first', 'go-first') } },
  { usage, text: 'Then that.', tool: 'Bash', input: { command: waiting('second', 'go-second') } },
  { usage, text: 'done' },
];

beforeAll(async () => {
  const byId = new Map<string, string>();
  api = startScriptedApi({ script: { version: 1, sessions: { '*': { steps } } }, nameOf: (id) => byId.get(id) });
  machine = new TestHome({ ANTHROPIC_BASE_URL: api.url, CLAUDE_CODE_AGENT_CLAUDE: pinnedClaude() });
  const tokens = { accessToken: 'made-up-access', refreshToken: 'made-up-refresh', expiresAt: Date.now() + 86_400_000 };
  mkdirSync(join(machine.home, '.claude'));
  const login = { claudeAiOauth: { ...tokens, scopes: ['user:inference', 'user:profile'], subscriptionType: 'max' } };
  writeFileSync(join(machine.home, '.claude', '.credentials.json'), JSON.stringify(login), { mode: 0o600 });
  group = await machine.ok('group', 'create', 'night', '--max-budget-usd', '5', '--concurrent', '2');
  for (const name of names) {
    const after = name === 'docs' ? ['--depends-on', 'lib', '--depends-on', 'web'] : [];
    const common = ['--project', machine.project(name), '--prompt', `do ${name}`, '--allowed-tools', 'Bash'];
    byId.set((await machine.ok('session', 'add', group, '--name', name, ...common, ...after)).slice(4), name);
  }
});
afterAll(async () => {
  await machine.run('group', 'delete', group, '--force');
  await api.stop();
  machine.remove();
});

const at = (name: string, file: string) => join(machine.project(name), file);
const go = (name: string, file: string) => writeFileSync(at(name, file), '');
const run = () => machine.start('group', 'run', group, '--output', 'json', '--no-warm-cache');

test(
  'a pause, a killed runner and a resume are paid once, with a stored login',
  async () => {
    const paused = run();
    await until(() => existsSync(at('lib', 'first')) && existsSync(at('web', 'first')));
    await machine.ok('group', 'pause', group);
    expect((await paused.finished).code).toBe(3);

    for (const name of ['lib', 'web']) go(name, 'go-first');
    const killed = run();
    await until(() => existsSync(at('lib', 'second')) && existsSync(at('web', 'second')));
    killed.kill('SIGKILL');
    await killed.finished;

    const last = run();
    for (const name of names) for (const file of ['go-first', 'go-second']) go(name, file);
    const { code, stderr } = await last.finished;
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });

    expect(api.problems).toEqual([]);
    const { total, sessions } = api.served;
    expect((await machine.json<{ cost: number }>('group', 'show', group)).cost).toBeCloseTo(total.costUsd, 6);
    for (const name of names) {
      const { id, cost } = await machine.json<{ id: string; cost: number }>('session', 'show', `${group}/${name}`);
      expect(cost).toBeCloseTo(sessions.get(id.slice(4))?.costUsd ?? Number.NaN, 6);
    }
    const isForAnHour = api.requests.every(({ body }) => JSON.stringify(body).includes('"ttl":"1h"'));
    expect(isForAnHour).toBe(true);
    const authorizations = new Set(api.requests.map(({ headers }) => headers.authorization));
    expect([...authorizations]).toEqual(['Bearer made-up-access']);
  },
  4 * patienceMs,
);

test('nothing of the login is anywhere in the data folder', () => {
  const found = Bun.spawnSync(['grep', '-rlE', 'made-up-(access|refresh)', machine.data]).stdout.toString();
  expect(found).toBe('');
  expect([...new Bun.Glob('**/.credentials.json').scanSync({ cwd: machine.data, dot: true })]).toEqual([]);
});
