/**
 * Promises, with the real claude, a scripted API and a real Redis: with `ask: wait` a session on a host asks as a local
 * one does. Its items are in the inbox, and the model gets exactly one answer, live and after it was parked.
 */
import { afterEach, expect, test } from 'bun:test';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { openItems } from '../../../src/core/item.ts';
import type { Step } from '../../../src/rehearsal/script.ts';
import { type ScriptedApi, startScriptedApi } from '../../../src/rehearsal/scripted-api.ts';
import { askCurl, askDatabase, occurrences } from '../../support/asking.ts';
import { modelOfKnownPrice } from '../../support/claude/rig.ts';
import { launcher, pinnedClaude, until } from '../../support/cli.ts';
import { startCommand } from '../../support/crash-rig.ts';
import { type FleetGround, openGround } from '../../support/fleet-ground.ts';
import { hasRedis } from '../../support/redis-server.ts';

const claude = { CLAUDE_CODE_AGENT_CLAUDE: pinnedClaude() };
const done = { text: 'done' };
const question = [askDatabase, done];

let api: ScriptedApi;
let ground: FleetGround;
afterEach(async () => {
  await ground.close();
  await api.stop();
});

async function open(askTimeoutMs: number, permission: readonly Step[]): Promise<void> {
  const names = new Map<string, string>();
  const sessions = { question, permission };
  const scripts = Object.fromEntries(Object.entries(sessions).map(([name, steps]) => [name, { steps: [...steps] }]));
  api = startScriptedApi({ script: { version: 1, sessions: scripts }, nameOf: (id) => names.get(id) });
  const fields = { model: modelOfKnownPrice, ask: 'wait' } as const;
  ground = await openGround(
    Object.keys(sessions).map((name) => ({ name, fields })),
    {
      machines: { one: { slots: 2 } },
      env: claude,
      login: { ANTHROPIC_BASE_URL: api.url, ANTHROPIC_API_KEY: 'test-key' },
      config: { where: 'fleet', maxBudgetUsd: 5, askTimeoutMs },
    },
  );
  for (const name of Object.keys(sessions)) names.set(ground.group.claudeId(name), name);
}

/** The open item of the session. */
function itemOf(name: string): string | undefined {
  const { group } = ground;
  return openItems(group.state().sessions.get(group.id(name)) ?? {})[0]?.id;
}

/** As a user answers it; the exit code. */
async function answer(item: string | undefined, ...words: string[]): Promise<number | null> {
  const { group } = ground;
  const env = { HOME: join(group.folder, 'home'), CLAUDE_CODE_AGENT_HOME: group.root };
  return (await startCommand([launcher, 'answer', item ?? '', ...words], env).finished).code;
}

/** All that the model was sent in the last request of the session. */
function heard(name: string): string {
  const last = api.requests.findLast((request) => request.name === name && request.kind === 'step');
  return JSON.stringify(last?.body.messages ?? []);
}

const requests = (name: string) => api.requests.filter((one) => one.name === name && one.kind === 'step').length;

/** What the tool that was allowed has written, in the worktree that came back. */
function ran(): string {
  const { group } = ground;
  const { path = '' } = group.state().sessions.get(group.id('permission'))?.workspace ?? {};
  const file = join(path, 'ran.txt');
  return existsSync(file) ? readFileSync(file, 'utf8') : '';
}

test.if(hasRedis)(
  'a session on a host asks, and the answer reaches it once',
  async () => {
    await open(600_000, [askCurl, done]);
    const run = ground.group.run(claude);
    await until(() => itemOf('question') !== undefined && itemOf('permission') !== undefined);
    const [question, permission] = [itemOf('question'), itemOf('permission')];
    expect(await answer(question, '--option', '2')).toBe(0);
    expect(await answer(permission, 'allow')).toBe(0);
    expect(await answer(permission, 'deny')).toBe(2);
    expect(await run.result).toMatchObject({ kind: 'settled', status: 'completed' });
    expect(occurrences(heard('question'), '=\\"SQLite\\"')).toBe(1);
    expect([requests('question'), requests('permission')]).toEqual([2, 2]);
    expect(ran()).toBe('ran\n');
  },
  120_000,
);

test.if(hasRedis)(
  'a session on a host is parked, and the next run gives it the answer once',
  async () => {
    // The model makes the call again when it reads that it was allowed.
    await open(1_000, [askCurl, askCurl, done]);
    expect(await ground.group.run(claude).result).toMatchObject({ kind: 'settled', status: 'paused' });
    const [question, permission] = [itemOf('question'), itemOf('permission')];
    expect([requests('question'), requests('permission')]).toEqual([1, 1]);
    expect(await answer(question, '--option', '2')).toBe(0);
    expect(await answer(permission, 'allow')).toBe(0);
    expect(await ground.group.run(claude).result).toMatchObject({ kind: 'settled', status: 'completed' });
    expect(occurrences(heard('question'), 'Answer: SQLite')).toBe(1);
    expect(occurrences(heard('permission'), `(item ${permission})`)).toBe(1);
    expect(ran()).toBe('ran\n');
    expect(ground.group.events().filter(({ type }) => type === 'item_answered').length).toBe(3);
  },
  120_000,
);
