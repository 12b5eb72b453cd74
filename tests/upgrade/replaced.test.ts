/**
 * Promises: a detached run of an earlier program goes on when its files are replaced by ours; we watch it, ask it for
 * everything a runner can be asked for, and stop it; the hooks of its workers go on. What it does not know is said.
 */
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'bun:test';
import { mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { askRunner } from '../../src/app/request.ts';
import { groupPaths } from '../../src/store/paths.ts';
import type { PauseRequestMode, RequestBody } from '../../src/store/requests.ts';
import { createRealWorld } from '../../src/system/real-world.ts';
import { lives, Night, obeyInterrupt } from '../cli/night.ts';
import { Repository } from '../git/repository.ts';
import { until } from '../support/cli.ts';
import { type Invocation, type Rig, resultLine, startRig } from '../support/fake-claude-rig.ts';
import { longTestIf } from '../support/long.ts';
import { type Hook, hooksOf, runHook } from './hooks.ts';
import { firstKept, isReachable, needs, Prefix } from './old-program.ts';

const world = createRealWorld();
const canRun = isReachable(firstKept);
const oldTest = (name: string, act: () => Promise<void>) => test.if(canRun)(`${name} ${needs(firstKept)}`, act);
let folder: string;
let prefix: Prefix;
let rig: Rig;
let user: Night;
beforeAll(async () => {
  rig = await startRig();
  folder = realpathSync(mkdtempSync(join(tmpdir(), 'cca prefix ')));
  prefix = new Prefix(folder);
  if (!canRun) return;
  prefix.build('here');
  prefix.build(firstKept);
});
afterAll(() => {
  rig.stop();
  rmSync(folder, { recursive: true, force: true });
});
beforeEach(() => {
  user = new Night(rig);
  user.program = prefix.program;
  if (canRun) prefix.put(firstKept);
});
afterEach(async () => {
  if (!canRun) return;
  for (const fake of rig.invocations) fake.exit(0);
  await user.run('stop', '--all');
  user.remove();
});

/** A group that the earlier program runs; its id and the runner's process id. */
async function running(sessions: Readonly<Record<string, readonly string[]>>) {
  const group = await user.group('auth', sessions, '--no-warm-cache', '--max-budget-usd', '5');
  const { pid } = JSON.parse(await user.ok('group', 'run', group, '--detach', '--output', 'json')) as { pid: number };
  return { group, pid };
}

const isRunning = (pid: number) => world.processes.identify(pid) !== null;

oldTest('stop --all ends it', async () => {
  const { group, pid } = await running({ api: [] });
  const api = await user.begun(group, 'api');
  prefix.put('here');
  const stop = user.start('stop', '--all');
  await obeyInterrupt(api, 0.01);
  expect(await stop.finished).toMatchObject({
    code: 0,
    stdout: expect.stringContaining(`Paused ${group}`),
    stderr: '',
  });
  await until(() => !isRunning(pid));
});

type Step = (group: string) => Promise<void>;

/** What it does not know: money was not held then, and nothing could be edited. */
type TakeOver = 'attach-session' | 'open-attached' | 'detach-session';
type Later = 'settle-cost' | 'edit-session' | 'allow-tools' | 'edit-group' | TakeOver;

/** How each of that is asked for, of a session that waits. */
const unknown: Readonly<Record<Exclude<Later, 'settle-cost' | TakeOver>, (group: string) => string[]>> = {
  'edit-session': (group) => ['session', 'edit', `${group}/web`, '--prompt', 'Do that.'],
  'edit-group': (group) => ['group', 'edit', group, '--max-budget-usd', '9'],
  'allow-tools': (group) => ['session', 'allow', `${group}/web`, 'Edit'],
};

/** A session with what it would drop without a word. */
const guarded = [['--untrusted'], ['--max-processes', '100'], ['--requires', 'gpu'], ['--host', 'one']].map(
  (options): [string, (group: string) => string[]] => [
    `add-session ${options[0]}`,
    (group) => ['session', 'add', group, '--project', '.', '--prompt', 'Do it.', ...options],
  ],
);

/** What the user does for each kind of request that it knows; in this order, with `api` and `web` at work. */
const asked: Readonly<Record<Exclude<RequestBody['kind'], 'pause' | Later>, Step>> = {
  'add-session': async (group) => {
    user.note('more', await user.add(group, 'more', '--depends-on', 'api'));
  },
  'remove-session': async (group) => {
    await user.ok('session', 'remove', `${group}/more`);
  },
  say: async (group) => {
    await user.ok('session', 'say', `${group}/api`, 'Mind the fonts.');
  },
  'raise-budget': async (group) => {
    await user.ok('group', 'budget', group, '--raise-to', '9');
  },
  'pause-session': async (group) => {
    const pause = user.start('session', 'pause', `${group}/web`);
    await obeyInterrupt(working.web as Invocation, 0.01);
    expect(await pause.finished).toMatchObject({ code: 0 });
  },
  'resume-session': async (group) => {
    await user.ok('session', 'resume', `${group}/web`);
    working.web = await user.begun(group, 'web');
  },
  'retry-session': async (group) => {
    await working.web?.print(resultLine(0.01, { is_error: true, result: 'It went wrong.' }));
    await user.event(group, 'session_failed');
    await user.ok('session', 'retry', `${group}/web`, '--prompt', 'Once more.');
    working.web = await user.begun(group, 'web');
  },
  thaw: async (group) => {
    await user.ok('group', 'pause', group, '--freeze');
    await user.ok('group', 'resume', group);
  },
};
const paused: Readonly<Record<PauseRequestMode, Step>> = {
  /** Asked for above. */
  freeze: async () => {},
  drain: async (group) => {
    const drain = user.start('group', 'pause', group, '--drain');
    await user.event(group, 'group_pausing');
    // A pause that is to end at once overtakes it.
    const now = user.start('group', 'pause', group);
    await Promise.all([working.api, working.web].map((fake) => obeyInterrupt(fake as Invocation, 0.01)));
    for (const { finished } of [drain, now]) expect(await finished).toMatchObject({ code: 0 });
  },
  now: async (group) => {
    expect((await user.json<{ status: string }>('group', 'show', group)).status).toBe('paused');
  },
};
const working: { api?: Invocation; web?: Invocation } = {};

oldTest('what it does not know it does not do, and the user is told what to do', async () => {
  const { group } = await running({ api: [], web: ['--depends-on', 'api'] });
  const api = await user.begun(group, 'api');
  prefix.put('here');
  for (const [kind, words] of [...Object.entries(unknown), ...guarded]) {
    const said = await user.run(...words(group));
    expect({ kind, ...said }).toEqual({
      kind,
      code: 2,
      stdout: '',
      stderr: expect.stringContaining('does not know what it is asked for'),
    });
  }
  expect(user.events(group).filter(({ type }) => type === 'session_added')).toHaveLength(2);
  await api.succeed(0.01);
  await (await user.begun(group, 'web')).succeed(0.01);
  await user.event(group, 'group_completed');
});

longTestIf(canRun)(`everything a runner is asked for is done by the one of ${firstKept}`, async () => {
  const { group } = await running({ api: [], web: [] });
  working.api = await user.begun(group, 'api');
  working.web = await user.begun(group, 'web');
  prefix.put('here');
  for (const step of [...Object.values(asked), ...Object.values(paused)]) await step(group);
  const answers = user.events(group).filter((event) => event.type === 'request_answered');
  expect(answers.map((event) => event.type === 'request_answered' && event.done)).not.toContain(false);
  expect(answers.length).toBeGreaterThan(Object.keys(asked).length);
});

oldTest('what it does not know is answered in a sentence, and goes on as if it had not been asked', async () => {
  const { group, pid } = await running({ api: [] });
  const api = await user.begun(group, 'api');
  const paths = groupPaths(user.data, group);
  const runId = world.locks.holder(paths.lock)?.runId ?? '';
  const before = user.events(group).length;
  const asking = { root: user.data, groupId: group, paths };
  const answer = await askRunner(world, asking, runId, { kind: 'dance' } as never);
  expect(answer).toMatchObject({ ok: false, failure: { message: expect.stringContaining('another version') } });
  expect(user.events(group).length).toBe(before);
  expect([isRunning(pid), lives(api)]).toEqual([true, true]);
});

/** What its first hook gives to the session. */
const taskOf = ({ hello }: Invocation) => runHook(hooksOf(hello.env).SessionStart?.[0] as Hook, hello);

/** The whole way; `replace` puts our files in the place of those that run. */
async function goesOn(replace: () => void): Promise<void> {
  for (const name of ['api', 'web']) new Repository(join(user.folder, 'projects', name)).commit({ 'README.md': name });
  const apart = ['--isolate', 'worktree', '--accept', 'true'];
  const sessions = { api: apart, web: [...apart, '--depends-on', 'api'], docs: ['--depends-on', 'web'] };
  const { group, pid } = await running(sessions);
  const api = await user.begun(group, 'api');
  const before = taskOf(api);
  expect(before).toMatchObject({ code: 0, stdout: expect.stringContaining('Do it.') });
  replace();
  expect(taskOf(api)).toEqual(before);
  const watch = user.start('group', 'watch', group, '--output', 'text');
  await api.succeed(0.02, 'The API is there.');
  // The worker of a runner whose files are gone: it has its worktree, its prompt and its hooks.
  const web = await user.begun(group, 'web');
  expect(taskOf(web)).toMatchObject({ code: 0, stdout: expect.stringContaining('Do it.') });
  const pause = user.start('group', 'pause', group);
  await obeyInterrupt(web, 0.01);
  expect(await pause.finished).toMatchObject({ code: 0, stderr: '' });
  await until(() => !isRunning(pid));
  expect(lives(web)).toBe(false);
  const watched = await watch.finished;
  expect(watched.code).toBe(3);
  expect(watched.stdout).toMatch(/started \(attempt 1\)[\s\S]*completed[\s\S]*paused \(user\)/);
  const resume = user.start('group', 'resume', group, '--output', 'quiet');
  await (await user.begun(group, 'web')).succeed(0.01);
  await (await user.begun(group, 'docs')).succeed(0.01);
  expect(await resume.finished).toMatchObject({ code: 0 });
  const { cost } = await user.json<{ cost: number }>('group', 'show', group);
  expect(cost).toBeCloseTo(0.05, 6);
}

longTestIf(canRun)('one that was never compiled is watched, runs on and is paused', async () => {
  user.env.CLAUDE_CODE_AGENT_BUN = process.execPath;
  await goesOn(() => prefix.put('here'));
});

oldTest('a compiled one is watched, runs on and is paused, and we resume its group', () =>
  goesOn(() => {
    prefix.put('here');
    prefix.discard(firstKept);
  }),
);
