/**
 * Promises, with the real claude: a pause in the middle of a tool call leaves no process, even one that wiped its
 * environment or daemonised, and the conversation continues. Caps hold with and without a runner. A usage limit of two
 * groups and an outage are waited out; one request goes first, and everything completes.
 */
import { afterEach, beforeEach, expect, test } from 'bun:test';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { SessionDefinition } from '../../../src/core/group.ts';
import type { RehearsalScript, Step } from '../../../src/rehearsal/script.ts';
import { type CapturedRequest, type ScriptedApi, startScriptedApi } from '../../../src/rehearsal/scripted-api.ts';
import { modelOfKnownPrice } from '../../support/claude/rig.ts';
import { pinnedClaude, processesIn, until } from '../../support/cli.ts';
import { Repository } from '../../support/git/repository.ts';
import { type GroupFixture, makeGroup, type RunningGroup } from '../../support/group-fixture.ts';

const groups: GroupFixture[] = [];
let api: ScriptedApi | null = null;
let env: Record<string, string> = {};

beforeEach(() => {
  env = {};
});
afterEach(async () => {
  await api?.stop();
  for (const group of groups.splice(0)) group.remove();
});

function make(...args: Parameters<typeof makeGroup>): GroupFixture {
  const group = makeGroup(...args);
  groups.push(group);
  return group;
}

function serve(script: RehearsalScript, more: Partial<Parameters<typeof startScriptedApi>[0]> = {}): ScriptedApi {
  const nameOf = (id: string) => {
    for (const group of groups) {
      for (const { definition } of group.state().sessions.values()) {
        if (definition.id.endsWith(id)) return definition.name;
      }
    }
    return undefined;
  };
  api = startScriptedApi({ script, nameOf, ...more });
  env = {
    ANTHROPIC_BASE_URL: api.url,
    ANTHROPIC_API_KEY: 'test-key',
    CLAUDE_CODE_AGENT_CLAUDE: pinnedClaude(),
    ...env,
  };
  return api;
}

const steps = (...list: Step[]): RehearsalScript => ({ version: 1, sessions: { '*': { steps: list } } });

test('a pause in a tool call leaves no process, and the conversation continues', async () => {
  const command = [
    'if [ -e begun ]; then echo again; exit 0; fi',
    '(setsid env -i PATH="$PATH" sleep 611 >/dev/null 2>&1 &)',
    'env -i PATH="$PATH" sh -c "sleep 612 & wait" >/dev/null 2>&1 &',
    'touch begun',
    'sleep 613',
  ].join('\n');
  const group = make([{ name: 'a', fields: { allowedTools: ['Bash'] } }]);
  new Repository(group.project('a'));
  const scripted = serve(steps({ tool: 'Bash', input: { command, timeout: 600_000 } }, { text: 'all done' }));
  const run = group.run(env);
  await until(() => existsSync(join(group.project('a'), 'begun')) && processesIn(group.project('a')).length >= 4);
  await run.ask({ kind: 'pause', mode: 'now' });
  expect(await run.result).toMatchObject({ kind: 'settled', status: 'paused' });
  expect(processesIn(group.project('a'))).toEqual([]);

  expect(await group.run(env).result).toMatchObject({ kind: 'settled', status: 'completed' });
  const resumed = JSON.stringify(scripted.requests.at(-1)?.body.messages);
  expect(resumed).toContain('do a');
  expect(resumed).toContain('sleep 613');
  expect(resumed).toContain('No one rejected anything');
  // Although the repository has a new file: what was paid for before the pause can be read from the cache.
  const [before, after] = [scripted.requests[0]?.body, scripted.requests.at(-1)?.body].map((body) =>
    JSON.stringify([body?.model, body?.tools, body?.system, body?.messages?.[0]]).replaceAll(
      /,"cache_control":{.*?}/g,
      '',
    ),
  );
  expect(after).toBe(before);
  expect(scripted.problems).toEqual([]);
  // Costs are not compared: the default model and its price depend on the version.
  expect(group.state().usage.tokens).toEqual(scripted.served.total.tokens);
}, 60_000);

test('a pause after a message was sent starts no further turn, and the message is delivered afterwards', async () => {
  const command = 'if [ -e begun ]; then echo again; exit 0; fi; touch begun; sleep 631';
  const daemon = '(setsid env -i PATH="$PATH" sleep 632 >/dev/null 2>&1 &)';
  const group = make([{ name: 'a', fields: { allowedTools: ['Bash'] } }]);
  const scripted = serve(
    steps(
      { tool: 'Bash', input: { command, timeout: 600_000 } },
      { tool: 'Bash', input: { command: daemon } },
      { text: 'all done' },
    ),
  );
  const run = group.run(env);
  await until(() => existsSync(join(group.project('a'), 'begun')));
  await run.ask({ kind: 'say', sessionId: group.id('a'), text: 'mind the tests' });
  await run.ask({ kind: 'pause', mode: 'now' });
  expect(await run.result).toMatchObject({ kind: 'settled', status: 'paused' });
  expect(scripted.requests).toHaveLength(1);
  expect(processesIn(group.project('a'))).toEqual([]);
  expect(group.state().sessions.get(group.id('a'))?.messages).toEqual(['mind the tests']);

  expect(await group.run(env).result).toMatchObject({ kind: 'settled', status: 'completed' });
  expect(JSON.stringify(scripted.requests[1]?.body.messages)).toContain('mind the tests');
  expect(processesIn(group.project('a'))).toEqual([]);
}, 60_000);

test('a message sent during the last answer is answered too', async () => {
  const group = make([{ name: 'a' }]);
  const said = Promise.withResolvers<void>();
  const gate = ({ step }: CapturedRequest) => (step === 0 ? said.promise : undefined);
  const scripted = serve(steps({ text: 'first' }, { text: 'second', delayMs: 1_000 }), { gate });
  const run = group.run(env);
  await until(() => scripted.requests.length === 1);
  await run.ask({ kind: 'say', sessionId: group.id('a'), text: 'one thing more' });
  said.resolve();
  expect(await run.result).toMatchObject({ kind: 'settled', status: 'completed' });
  expect(group.state().sessions.get(group.id('a'))?.state).toMatchObject({ result: 'second' });
  expect(JSON.stringify(scripted.requests.at(-1)?.body.messages)).toContain('one thing more');
}, 60_000);

test.each([
  ['words', 'Use the other file.', 2],
  ['a path', '/etc/hosts is not meant.', 2],
  ['a built-in command of claude, which never reaches the model', '/context', 2],
])(
  'a message sent while a tool runs may be %s',
  async (_, text, requests) => {
    const command = 'touch begun; until [ -e go ]; do sleep 0.05; done';
    const group = make([{ name: 'a', fields: { allowedTools: ['Bash'] } }]);
    const scripted = serve(steps({ tool: 'Bash', input: { command } }, { text: 'all done' }));
    const run = group.run(env);
    await until(() => existsSync(join(group.project('a'), 'begun')));
    await run.ask({ kind: 'say', sessionId: group.id('a'), text });
    writeFileSync(join(group.project('a'), 'go'), '');
    expect(await run.result).toMatchObject({ kind: 'settled', status: 'completed' });
    const isCommand = text === '/context';
    expect(JSON.stringify(scripted.requests[1]?.body.messages).includes(text)).toBe(!isCommand);
    expect(scripted.requests).toHaveLength(requests);
    expect(group.state().sessions.get(group.id('a'))?.state).toMatchObject({ status: 'completed', result: 'all done' });
  },
  60_000,
);

/** Ten tool calls of a cent each, then an answer. */
const tenCents = [
  ...Array.from({ length: 9 }, (_, index): Step => ({ tool: 'Bash', input: { command: `echo ${index}` } })),
  { text: 'ten cents spent' },
];

test('sessions without their own cap share the budget by top-ups and all finish', async () => {
  const names = ['a', 'b', 'c'].map((name) => ({ name, fields: { model: modelOfKnownPrice } }));
  const group = make(names, { maxBudgetUsd: 0.45, maxConcurrentSessions: 3 });
  const scripted = serve(steps(...tenCents));
  expect(await group.run(env).result).toMatchObject({ kind: 'settled', status: 'completed' });
  expect(group.state().usage.costUsd).toBeCloseTo(scripted.served.total.costUsd, 6);
  expect(scripted.served.total.costUsd).toBeLessThanOrEqual(0.45 + 3 * 0.01);
}, 120_000);

test('the cap holds without a runner', async () => {
  const fields = { allowedTools: ['Bash'], model: modelOfKnownPrice };
  const group = make([{ name: 'a', fields }], { maxBudgetUsd: 0.05 });
  const held = 'touch begun; until [ -e go ]; do sleep 0.05; done';
  const spend = Array.from({ length: 20 }, (): Step => ({ tool: 'Bash', input: { command: 'echo spent' } }));
  const scripted = serve(steps({ tool: 'Bash', input: { command: held } }, ...spend, { text: 'never' }));
  const first = group.run(env);
  await until(() => existsSync(join(group.project('a'), 'begun')));
  first.signal('SIGHUP');
  expect(await first.result).toMatchObject({ kind: 'left' });
  writeFileSync(join(group.project('a'), 'go'), '');
  await until(() => readFileSync(group.session('a').transcript, 'utf8').includes('error_max_budget_usd'));
  expect(scripted.served.total.costUsd).toBeLessThanOrEqual(0.05 + 0.01 + 1e-9);
  expect(await group.run(env).result).toMatchObject({ kind: 'settled', status: 'paused' });
  expect(group.state().usage.costUsd).toBeCloseTo(scripted.served.total.costUsd, 6);
}, 60_000);

test('a usage limit hits sessions of two groups: none fails, none starts early, one request goes first', async () => {
  const size = 3;
  const named = (prefix: string) => Array.from({ length: size }, (_, index) => ({ name: `${prefix}${index}` }));
  const first = make(named('a'));
  const second = make(named('b'), {}, { root: first.root });
  const limited = new Set<string>();
  const arrivals: { atMs: number; before: number }[] = [];
  const limit: Step['limit'] = { window: 'five_hour', lastsMs: 6_000 };
  const scripted = serve(steps({ limit, times: 1, text: 'after the limit' }), {
    onRequest: ({ session }) => {
      if (limited.has(session)) arrivals.push({ atMs: Date.now(), before: scripted.served.total.replies });
      limited.add(session);
    },
  });
  const { ANTHROPIC_API_KEY: _key, ...login } = env;
  const runs = [first, second].map((group) => group.run({ ...login, CLAUDE_CODE_OAUTH_TOKEN: 'x' }));
  for (const run of runs) expect(await run.result).toMatchObject({ kind: 'settled', status: 'completed' });
  expect(limited.size).toBe(2 * size);
  const resets = [first, second].flatMap((group) =>
    group.events().flatMap((event) => (event.type === 'limit_reached' ? [Date.parse(event.resetsAt)] : [])),
  );
  expect(Math.min(...arrivals.map(({ atMs }) => atMs))).toBeGreaterThanOrEqual(Math.min(...resets));
  // The second request came only after the first one was answered.
  expect(arrivals.filter(({ before }) => before === 0)).toHaveLength(1);
  for (const group of [first, second]) {
    expect(group.events().map((event) => event.type)).not.toContain('session_failed');
    expect(group.events().map((event) => event.type)).toContain('limit_reached');
  }
}, 60_000);

/**
 * The API is gone from the end of the first session until `isLongEnough`, then everything completes. Returns the last
 * messages of the second session, which has these fields.
 */
async function throughOutage(
  fields: Partial<SessionDefinition>,
  isLongEnough: (group: GroupFixture, run: RunningGroup) => Promise<unknown>,
  more: Readonly<Record<string, string>> = {},
): Promise<string> {
  const group = make([{ name: 'a' }, { name: 'b', after: ['a'], fields }], {}, { speed: 20 });
  const script = steps({ text: 'all done' });
  // The system gives this port to no other server or connection while the API is gone.
  // Requests of the second session before the server is gone are not answered either.
  const gate = ({ name }: CapturedRequest) => (name === 'b' ? new Promise<void>(() => {}) : undefined);
  const port = 61_000 + Math.trunc(Math.random() * 4_000);
  const gone = serve(script, { gate, port });
  const run = group.run({ ...env, ...more });
  await run.event('session_completed', group.id('a'));
  await gone.stop();
  await isLongEnough(group, run);
  // Only the wait until here was to be short.
  const back = serve(script, { port, onRequest: () => group.hurry(1) });
  expect(await run.result).toMatchObject({ kind: 'settled', status: 'completed' });
  expect(group.state().failed.size).toBe(0);
  const told = JSON.stringify(back.requests.at(-1)?.body.messages);
  // The task is in the conversation once, however often it was requested.
  expect(told.split('The task of this session:').length - 1).toBe(1);
  return told;
}

test('a session whose timeout passes during an outage continues afterwards', async () => {
  // Really twenty seconds, in which claude starts and makes its first request on a busy machine, too.
  await throughOutage({ timeoutMs: 400_000 }, async (_, run) => {
    expect(await run.event('session_paused')).toMatchObject({ reason: 'transient' });
  });
}, 120_000);

test('an outage longer than the retries is waited for, and everything completes', async () => {
  const pauses = (group: GroupFixture) => group.events().filter(({ type }) => type === 'session_paused').length;
  // Each pause takes claude's own retries, which are fewer here.
  const isLongEnough = (group: GroupFixture) => until(() => pauses(group) >= 3);
  const told = await throughOutage({ retries: 1 }, isLongEnough, { CLAUDE_CODE_MAX_RETRIES: '1' });
  expect(told).not.toContain('The task again:');
  expect(told).toContain('The API did not answer');
}, 300_000);
