/**
 * Promises: a group that ends while it is being read is never called interrupted, all commands show the same times and
 * costs, and automatic resume times are shown while a runner is alive.
 */
import { afterEach, beforeEach, expect, test } from 'bun:test';
import { utimesSync } from 'node:fs';
import { type GroupReference, loadWithRunner } from '../../../src/app/resolve.ts';
import { readStanding } from '../../../src/app/watch/live-view.ts';
import type { EventBody } from '../../../src/core/event.ts';
import { noTokens } from '../../../src/core/group.ts';
import { readLog } from '../../../src/store/event-log.ts';
import { openGroupWriter } from '../../../src/store/group-writer.ts';
import { sessionPaths } from '../../../src/store/paths.ts';
import type { World } from '../../../src/system/world.ts';
import { Ground, numberedSessionId, story } from '../../support/cli/bad-input/ground.ts';

let user: Ground;
beforeEach(() => {
  user = new Ground();
});
afterEach(() => user.remove());

/** A world in which the runner ends right after its lock, or the log, was read. */
function endingAfter(step: 'lock' | 'log', group: string): World {
  const opened = openGroupWriter(user.world, user.data, group, 'the-runner');
  if (!opened.ok) throw new Error(opened.failure.message);
  const writer = opened.value;
  let isOver = false;
  const end = <T>(value: T): T => {
    if (!isOver) {
      isOver = true;
      writer.record([story.completed, story.groupCompleted]);
      writer.close();
    }
    return value;
  };
  const { locks, files } = user.world;
  const holder = (path: string) => (step === 'lock' ? end(locks.holder(path)) : locks.holder(path));
  const readBytes: typeof files.readBytes = (path, ...where) => {
    const bytes = files.readBytes(path, ...where);
    return step === 'log' && path.endsWith('events.jsonl') ? end(bytes) : bytes;
  };
  return { ...user.world, locks: { ...locks, holder }, files: { ...files, readBytes } };
}

test.each(['lock', 'log'] as const)('a group whose runner ends after the %s was read is not interrupted', (step) => {
  const group = user.make('auth', [{ name: 'api' }], [story.started, story.intended, story.spawned]);
  const reference: GroupReference = { root: user.data, groupId: group, paths: user.paths(group) };
  const world = endingAfter(step, group);
  const loaded = loadWithRunner(world, reference);
  if (!loaded.ok) throw new Error(loaded.failure.message);
  expect(user.world.locks.holder(user.paths(group).lock)).toBeNull();
  expect(readStanding(world, loaded.value).isInterrupted).toBe(false);
});

test('a group without a runner is interrupted', () => {
  const group = user.make('auth', [{ name: 'api' }], [story.started]);
  const loaded = loadWithRunner(user.world, { root: user.data, groupId: group, paths: user.paths(group) });
  expect(loaded.ok && readStanding(user.world, loaded.value).isInterrupted).toBe(true);
});

/** A group whose worker is alive and idle, with its last output nine seconds after its start. */
function leftAlone(): string {
  const worker = user.world.processes.identify(process.pid);
  if (worker === null) throw new Error('This process is not there.');
  const group = user.make(
    'auth',
    [{ name: 'api' }],
    [story.started, story.intended, { ...story.spawned, process: worker }],
  );
  const log = readLog(user.world, user.paths(group).events);
  const begun = log.ok ? log.value.find(({ type }) => type === 'session_starting') : undefined;
  const { folder, transcript } = sessionPaths(user.paths(group), numberedSessionId(1));
  user.world.files.makeFolder(folder);
  const tokens = { input_tokens: 7, output_tokens: 3 };
  const answer = { id: 'm', model: 'claude-opus-4-8', content: [{ type: 'text', text: 'Done.' }], usage: tokens };
  user.world.files.writeAtomic(transcript, `${JSON.stringify({ type: 'assistant', message: answer })}\n`);
  // File systems also keep fractions of milliseconds.
  const saidAt = (Date.parse(begun?.at ?? '') + 9000.4) / 1000;
  utimesSync(transcript, saidAt, saidAt);
  return group;
}

test('the duration of a session without a runner ends with its last output, in every command', async () => {
  const group = leftAlone();
  const shown = await user.json<{ cost: number; tokens: object; durationMs: number }>(
    'session',
    'show',
    `${group}/api`,
  );
  expect(shown).toMatchObject({ status: 'running', durationMs: 9000, tokens: { input: 7, output: 3 } });
  expect(shown.cost).toBeGreaterThan(0);
  const report = await user.json<{ sessions: object[] }>('group', 'report', group);
  expect(report.sessions).toMatchObject([{ durationMs: 9000, costUsd: shown.cost }]);
  expect(await user.ok('session', 'show', `${group}/api`)).toContain('\nTime: 9s\n');
  expect(await user.ok('session', 'list', group)).toContain(' 9s ');
  const lines = (await user.ok('group', 'show', group)).split('\n');
  expect(lines.filter((line) => line.startsWith('auth: '))).toEqual([
    expect.stringContaining('auth: interrupted, 0 of'),
  ]);
  expect(await user.ok('group', 'report', group, '--html', '-')).toContain('<title>auth: interrupted</title>');
});

/** Holds the lock of the group as its runner, with this process, during an action. */
async function whileRun<T>(group: string, ask: () => Promise<T>): Promise<T> {
  const { lock } = user.paths(group);
  const runner = user.world.locks.tryLock(lock, { identity: user.world.machine.self, runId: 'run' });
  try {
    return await ask();
  } finally {
    runner?.release();
  }
}

/** What the commands print about the session when its runner has written this progress. */
function toldWith(now: object): Promise<{ why: string; shown: string }> {
  const [one] = user.groups;
  const group = one ?? user.make('auth', [{ name: 'api' }], [story.started, story.intended, story.spawned]);
  const session = { id: numberedSessionId(1), status: 'running', cost: 0, tokens: noTokens, ...now };
  const progress = { groupId: group, sessions: [session] };
  user.world.files.writeAtomic(user.paths(group).progress, JSON.stringify(progress));
  return whileRun(group, async () => ({
    why: await user.ok('group', 'why', group, 'api'),
    shown: await user.ok('session', 'show', `${group}/api`),
  }));
}

test('a session with an unavailable API is shown as such', async () => {
  const retry = { attempt: 5, attemptsMax: 6, error: 'server_error', errorStatus: 503 };
  const sentence = 'The API does not respond (503); claude is retrying (5 of 6).';
  const { why, shown } = await toldWith({ lastText: 'I look.', retry });
  expect(why).toContain(sentence);
  expect(shown).toContain(`Now: ${sentence}`);
  expect((await toldWith({ retry: { attempt: 1, error: 'rate_limit', errorStatus: 429 } })).why).toContain(
    'The server is throttling requests (429); claude is retrying (try 1).',
  );
  expect((await toldWith({ retry: { attempt: 2, error: 'unknown', errorStatus: null } })).why).toContain(
    'The API does not respond; claude is retrying (try 2).',
  );
  expect((await toldWith({ lastText: 'I look.' })).why).toContain('Last message: I look.');
});

test('denied calls are shown while the session is running', async () => {
  const sentence = '2 tool calls were denied: Bash, Write; first Bash ls.';
  const denied = { calls: 2, tools: ['Bash', 'Write'], first: 'Bash ls' };
  const { why, shown } = await toldWith({ currentTool: 'Bash ls', denied });
  expect(why).toContain(`It is using a tool: Bash ls. ${sentence}`);
  expect(shown).toContain(`Warning: ${sentence}`);
});

test.each([
  ['throttled', 'throttled until', 'The server is throttling requests. Resuming at'],
  ['five_hour', 'usage limit until', 'Usage limit reached. Resuming at'],
])('a limit of the kind %s is shown with its name', async (limitType, condition, sentence) => {
  const resetsAt = new Date(user.world.clock.now() + 3_600_000).toISOString();
  const group = user.make('auth', [{ name: 'api' }], [story.started, { type: 'limit_reached', resetsAt, limitType }]);
  await whileRun(group, async () => {
    expect(await user.ok('group', 'list')).toContain(`running (${condition} `);
    expect(await user.ok('group', 'why', group)).toContain(sentence);
    expect(await user.json('group', 'show', group)).toMatchObject({ limitResetsAt: resetsAt, limitType });
  });
});

/** The output of the commands about the session of this group. */
async function toldOf(group: string): Promise<{ show: string; list: string; session: string; json: object[] }> {
  return {
    show: await user.ok('group', 'show', group),
    list: await user.ok('session', 'list', group),
    session: await user.ok('session', 'show', `${group}/api`),
    json: [
      ...(await user.json<{ progress: { sessions: object[] } }>('group', 'show', group)).progress.sessions,
      ...(await user.json<object[]>('session', 'list', group)),
      await user.json<object>('session', 'show', `${group}/api`),
    ],
  };
}

const inTenMinutes = (): string => new Date(user.world.clock.now() + 600_000).toISOString();

test.each<[string, (at: string) => readonly EventBody[], string]>([
  [
    'after a transient failure',
    (retryAt) => [story.intended, story.spawned, { ...story.paused, reason: 'transient', retryAt }],
    'paused (backoff, resumes at ',
  ],
  [
    'stopped by a usage limit',
    (resetsAt) => [
      story.intended,
      story.spawned,
      { ...story.paused, reason: 'limit' },
      { type: 'limit_reached', resetsAt },
    ],
    'paused (limit, resumes at ',
  ],
  [
    'not started because of a usage limit',
    (resetsAt) => [{ type: 'limit_reached', resetsAt }],
    'pending (limit, resumes at ',
  ],
])('a session %s shows its resume time', async (_, bodiesOf, status) => {
  const retryAt = inTenMinutes();
  const group = user.make('auth', [{ name: 'api' }], [story.started, ...bodiesOf(retryAt)]);
  const { show, list, session, json } = await whileRun(group, () => toldOf(group));
  for (const table of [show, list]) expect(table).toContain('RESUMES AT');
  expect(session).toContain(`Status: ${status}`);
  expect(json).toMatchObject([{ retryAt }, { retryAt }, { retryAt }]);
  // Without a live runner, nothing would resume it.
  const alone = await toldOf(group);
  for (const table of [alone.show, alone.list]) expect(table).not.toContain('RESUMES AT');
  expect(alone.session).not.toContain('resumes at');
  for (const one of alone.json) expect(one).not.toHaveProperty('retryAt');
});

test('during setup a session is shown as such with its output file', async () => {
  const group = user.make('auth', [{ name: 'api' }]);
  const before = readLog(user.world, user.paths(group).events);
  const added = before.ok ? before.value.find((event) => event.type === 'session_added') : undefined;
  if (added === undefined) throw new Error('There is no session.');
  const session = { ...added.session, setup: 'npm ci' };
  const workspace = { path: '/w', folder: '/w', repository: '/r', branch: 'cca/api', base: 'b0' };
  const { sessionId: id } = added;
  user.tell(group, [
    { type: 'session_changed', sessionId: id, session },
    story.started,
    story.intended,
    { type: 'session_isolated', sessionId: id, attemptId: 'first', workspace },
  ]);
  const { folder, setupLog, setupDone } = sessionPaths(user.paths(group), id);
  const told = async () => [await user.ok('group', 'why', group), await user.ok('session', 'show', `${group}/api`)];
  const sentence = `Its setup command is running; see ${setupLog}.`;
  user.world.files.makeFolder(folder);
  user.world.files.writeAtomic(setupLog, '$ npm ci\n');
  for (const text of await whileRun(group, told)) expect(text).toContain(sentence);
  for (const text of await told()) expect(text).not.toContain('Its setup command is running');
  user.world.files.writeAtomic(setupDone, '');
  expect(await whileRun(group, () => user.ok('group', 'why', group))).toContain('claude is starting.');
});

/** The output of `group why --json` about a waiting session while a runner has written this progress. */
async function whyTold(progress: (group: string, seq: number) => object): Promise<string> {
  const group = user.make('auth', [{ name: 'api' }], [story.started]);
  const events = readLog(user.world, user.paths(group).events);
  const seq = events.ok ? (events.value.at(-1)?.seq ?? 0) : 0;
  user.world.files.writeAtomic(user.paths(group).progress, JSON.stringify(progress(group, seq)));
  const { sessions } = await whileRun(group, () =>
    user.json<{ sessions: { reason: string; message: string }[] }>('group', 'why', group),
  );
  return sessions.map(({ reason, message }) => `${reason}: ${message}`).join();
}

const short = { id: numberedSessionId(1), status: 'pending', reason: 'memory', message: 'Memory is short.' };

test('group why shows the last reason written by the runner', async () => {
  expect(await whyTold((groupId, seq) => ({ groupId, seq, sessions: [short] }))).toBe('memory: Memory is short.');
  const waits = { ...short, reason: 'waiting', message: 'It waits for 002.', waitsFor: [numberedSessionId(2)] };
  expect(await whyTold((groupId, seq) => ({ groupId, seq, sessions: [waits] }))).toBe('waiting: It waits for 002.');
});

test('of a progress older than the log, group why shows only reasons that the log lacks', async () => {
  const before = (seq: number) => seq - 1;
  const aboutToStart = 'slot: It is about to start.';
  expect(await whyTold((groupId, seq) => ({ groupId, seq: before(seq), sessions: [short] }))).toStartWith('memory:');
  const waited = { ...short, reason: 'waiting', message: 'It waits for 002.' };
  expect(await whyTold((groupId, seq) => ({ groupId, seq: before(seq), sessions: [waited] }))).toBe(aboutToStart);
});
