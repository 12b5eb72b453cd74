/**
 * Promises: sessions run on other hosts as they do here. When a host is lost, they continue on another in the same
 * conversation, on their branches, with their uncommitted changes, and the money is counted once.
 */
import { afterEach, expect, test } from 'bun:test';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Attempt } from '../../../src/core/session-state.ts';
import { drainHost } from '../../../src/fleet/registry.ts';
import { checkoutRoot } from '../../support/cli.ts';
import type { Invocation } from '../../support/fake-claude-rig.ts';
import { type FleetGround, type GroundOptions, machineMain, openGround } from '../../support/fleet-ground.ts';
import { git } from '../../support/git/repository.ts';
import type { RunningGroup, SessionSketch } from '../../support/group-fixture.ts';
import { hasRedis } from '../../support/redis-server.ts';
import { rig, withRig } from '../../support/rig-ground.ts';

let ground: FleetGround;
withRig();
afterEach(async () => {
  await ground.close();
});

const fleetTest = test.if(hasRedis);
/** These wait for leases to end. */
const longFleetTest = test.if(hasRedis);
const inFleet = { where: 'fleet', maxBudgetUsd: 20, maxConcurrentSessions: 10 } as const;

async function open(sketches: readonly SessionSketch[], options: Partial<GroundOptions> = {}): Promise<FleetGround> {
  ground = await openGround(sketches, {
    machines: { one: {}, two: {} },
    env: rig.env,
    ...options,
    config: { ...inFleet, ...options.config },
  });
  return ground;
}

async function begin(name: string): Promise<Invocation> {
  const fake = await rig.nextFor(ground.group.claudeId(name));
  await fake.prompt();
  await fake.init();
  return fake;
}

const record = (name: string) => {
  const found = ground.group.state().sessions.get(ground.group.id(name));
  if (found === undefined) throw new Error(`no session ${name}`);
  return found;
};
const project = () => ground.group.project('app');

fleetTest('three sessions work on two hosts, and their work is on their branches here', async () => {
  await open([{ name: 'a' }, { name: 'b' }, { name: 'c', after: ['a'] }]);
  const run = ground.group.run(rig.env);
  for (const name of ['a', 'b']) {
    const fake = await begin(name);
    expect(fake.hello.cwd).toContain('/machine ');
    writeFileSync(join(fake.hello.cwd, `${name}.txt`), `${name}\n`);
    await fake.succeed(0.1);
  }
  const last = await begin('c');
  expect(readFileSync(join(last.hello.cwd, 'a.txt'), 'utf8')).toBe('a\n');
  await last.succeed(0.1);
  expect(await run.result).toMatchObject({ kind: 'settled', status: 'completed' });
  expect(ground.group.state().usage.costUsd).toBe(0.3);
  for (const name of ['a', 'b']) {
    const { workspace } = record(name);
    expect(git(project(), 'show', `${workspace?.branch}:${name}.txt`)).toBe(`${name}`);
    expect(readFileSync(join(workspace?.path ?? '', `${name}.txt`), 'utf8')).toBe(`${name}\n`);
  }
  const moves = ground.group.events().filter(({ type }) => type === 'session_moved');
  expect(moves).toHaveLength(3);
  expect(git(project(), 'for-each-ref', 'refs/claude-code-agent')).toBe('');
});

const toolResult = { type: 'user', message: { content: [{ type: 'tool_result', tool_use_id: 't', content: 'ok' }] } };
const nextCall = {
  type: 'assistant',
  message: { id: 'm', content: [{ type: 'tool_use', id: 'next', name: 'Bash', input: { command: 'sleep 600' } }] },
};
const checkpointOf = (name: string) =>
  join(project(), '.git', 'refs', 'claude-code-agent', ground.group.id(name), 'checkpoint');

/** In the middle of a tool, with an uncommitted file and a checkpoint of it. */
async function inMidTool(name: string): Promise<Invocation> {
  const fake = await begin(name);
  git(fake.hello.cwd, 'commit', '--allow-empty', '--quiet', '-m', 'on the host');
  writeFileSync(join(fake.hello.cwd, 'two.txt'), 'uncommitted\n');
  await fake.print(toolResult);
  await until(() => existsSync(checkpointOf(name)));
  await fake.print(nextCall);
  return fake;
}

const attemptOf = (name: string): Attempt => {
  const { state } = record(name);
  if (state.status !== 'running') throw new Error(`${name} does not run`);
  return state.attempt;
};

longFleetTest(
  'a lost host is reported, and its session continues on another with its work',
  async () => {
    await open([{ name: 'a' }], { machines: { one: {} }, leaseMs: 5_000 });
    const warned: string[] = [];
    const run = ground.group.run(rig.env, { onWarning: (message) => warned.push(message) });
    const first = await inMidTool('a');
    const { id } = attemptOf('a');
    const second = ground.addMachine('two', {});
    await ground.machines.one?.burn([id]);
    expect(await run.event('session_host_lost')).toMatchObject({ host: 'one', attemptId: id, held: 2 });
    // Before the host counts as lost.
    expect(warned).toContainEqual(expect.stringMatching(/^Host one has not responded for \d+ s\. When its lease/));
    const again = await rig.nextFor(ground.group.claudeId('a'));
    expect(again.hello.cwd).toStartWith(second.root);
    expect(await again.prompt()).toContain('do a');
    expect(readFileSync(join(again.hello.cwd, 'two.txt'), 'utf8')).toBe('uncommitted\n');
    expect(git(again.hello.cwd, 'log', '-1', '--format=%s')).toBe('on the host');
    expect(git(again.hello.cwd, 'status', '--porcelain')).toBe('?? two.txt');
    expect(ground.group.state().usage).toMatchObject({ costUsd: 2, heldUsd: 2 });
    await again.init();
    await again.succeed(0.25);
    expect(await run.result).toMatchObject({ kind: 'settled', status: 'completed' });
    const moves = ground.group.events().flatMap((event) => (event.type === 'session_moved' ? [event] : []));
    expect(moves).toMatchObject([{ to: 'one' }, { from: 'one', to: 'two' }]);
    expect(git(project(), 'show', `${record('a').workspace?.branch}:two.txt`)).toBe('uncommitted');
    expect(first.hasEnded).toBe(true);
  },
  120_000,
);

longFleetTest(
  'late books: the report of a returned host replaces what was held',
  async () => {
    await open([{ name: 'a' }], { machines: { one: {} }, leaseMs: 5_000 });
    const run = ground.group.run(rig.env);
    const first = await inMidTool('a');
    const { id } = attemptOf('a');
    // The agent alone: the guard ends the rest.
    await ground.machines.one?.killAgent();
    await run.event('session_paused');
    expect(first.hasEnded).toBe(true);
    expect(record('a').usage).toMatchObject({ costUsd: 2, heldUsd: 2 });
    ground.machines.one?.start();
    expect(await run.event('session_booked')).toMatchObject({ attemptId: id });
    // Claude was killed in the middle of a tool: of the held amount one unseen message remains.
    expect(record('a').usage).toMatchObject({ heldUsd: 0.5125 });
    const again = await begin('a');
    expect(readFileSync(join(again.hello.cwd, 'two.txt'), 'utf8')).toBe('uncommitted\n');
    await again.succeed(0.25);
    await run.result;
    expect(ground.group.state().usage).toMatchObject({ costUsd: 0.25 + 0.5125, heldUsd: 0.5125 });
  },
  120_000,
);

longFleetTest(
  'a session on an unreachable host that is waited for continues',
  async () => {
    await open([{ name: 'a' }], { machines: { one: {} }, leaseMs: 5_000, config: { onLost: 'wait' } });
    const warned: string[] = [];
    const run = ground.group.run(rig.env, { onWarning: (message) => warned.push(message) });
    const fake = await inMidTool('a');
    const { token = '' } = attemptOf('a').place ?? {};
    await ground.machines.one?.killAgent();
    await until(() => !isHeld('one', token));
    const waits = /^Host one has not responded for \d+ s\. Its sessions wait until it is back\.$/;
    await until(() => warned.some((message) => waits.test(message)));
    ground.machines.one?.start();
    await fake.succeed(0.25);
    expect(await run.result).toMatchObject({ kind: 'settled', status: 'completed' });
    expect(record('a').attempts).toBe(1);
    expect(ground.group.state().usage.costUsd).toBe(0.25);
  },
  120_000,
);

/** Its lease is not over. */
function isHeld(host: string, token: string): boolean {
  const asked = Bun.spawnSync(['redis-cli', '-p', String(ground.server.port), 'zscore', `cca:s:${host}`, token]);
  return Number(asked.stdout.toString()) > Date.now();
}

longFleetTest('a later runner goes on with what runs on other hosts', async () => {
  await open([{ name: 'a' }]);
  const run = ground.group.run(rig.env);
  const fake = await inMidTool('a');
  run.signal('SIGHUP');
  expect(await run.result).toMatchObject({ kind: 'left' });
  await fake.print(toolResult);
  const later = ground.group.run(rig.env);
  await later.event('session_adopted');
  await fake.succeed(0.25);
  expect(await later.result).toMatchObject({ kind: 'settled', status: 'completed' });
  expect(ground.group.state().usage.costUsd).toBe(0.25);
  expect(record('a').attempts).toBe(1);
});

fleetTest('the acceptance command runs where the work was done', async () => {
  const accept = 'echo "$PWD $CCA_WORKSPACE $CCA_SESSION $CCA_PORT_BASE" > where.txt; test -f done.txt';
  await open([{ name: 'a', fields: { accept, acceptRetries: 1 } }], { machines: { one: {} } });
  const run = ground.group.run(rig.env);
  const first = await begin('a');
  await first.succeed(0.1);
  expect(await run.event('session_paused')).toMatchObject({ reason: 'not-accepted' });
  const { cwd, env } = first.hello;
  const names = ['CCA_WORKSPACE', 'CCA_SESSION', 'CCA_PORT_BASE'];
  const given = [cwd, cwd, 'a', record('a').portBase];
  expect([cwd, ...names.map((name) => env[name])].join(' ')).toBe(given.join(' '));
  expect(readFileSync(join(cwd, 'where.txt'), 'utf8').trim()).toBe(given.join(' '));
  expect(env).toMatchObject({ CCA_GROUP: ground.group.state().group.id, COMPOSE_PROJECT_NAME: expect.any(String) });
  const second = await begin('a');
  writeFileSync(join(second.hello.cwd, 'done.txt'), '');
  await second.succeed(0.1);
  expect(await run.result).toMatchObject({ kind: 'settled', status: 'completed' });
});

fleetTest('a pause ends the acceptance command on the host, which repeats it when the session continues', async () => {
  const accept = 'echo begun in $PWD >>"$MARK"; test -e "$MARK.go" || sleep 600';
  await open([{ name: 'a', fields: { host: 'one', accept } }], {
    machines: { one: {} },
    envOf: (folder) => ({ MARK: join(folder, 'mark') }),
  });
  const mark = join(ground.group.folder, 'mark');
  const run = ground.group.run(rig.env);
  const first = await begin('a');
  await first.succeed(0.1);
  await until(() => existsSync(mark));
  await run.ask({ kind: 'pause-session', sessionId: ground.group.id('a') });
  expect(await run.event('session_paused')).toMatchObject({ reason: 'user' });
  await run.result;
  const begun = `begun in ${first.hello.cwd}\n`;
  expect(readFileSync(mark, 'utf8')).toBe(begun);
  writeFileSync(`${mark}.go`, '');
  const later = ground.group.run(rig.env);
  await (await begin('a')).succeed(0.2);
  expect(await later.result).toMatchObject({ kind: 'settled', status: 'completed' });
  expect(readFileSync(mark, 'utf8')).toBe(begun + begun);
  expect(ground.group.events().filter(({ type }) => type === 'session_warning')).toEqual([]);
});

longFleetTest('what a user says and asks for reaches a session elsewhere', async () => {
  await open([{ name: 'a' }]);
  const run = ground.group.run(rig.env);
  const fake = await inMidTool('a');
  const sessionId = ground.group.id('a');
  await run.ask({ kind: 'say', sessionId, text: 'Also this.' });
  expect(await fake.prompt()).toBe('Also this.');
  await run.ask({ kind: 'pause-session', sessionId });
  const asked = await fake.control('interrupt');
  await fake.print({ type: 'control_response', response: { subtype: 'success', request_id: asked } });
  expect(await run.event('session_paused')).toMatchObject({ reason: 'user' });
  expect(readFileSync(join(record('a').workspace?.path ?? '', 'two.txt'), 'utf8')).toBe('uncommitted\n');
  await run.result;
});

/** Stops its attempt and resumes it at once; returns the next attempt. */
async function again(name: string, fake: Invocation, run: RunningGroup): Promise<Invocation> {
  const sessionId = ground.group.id(name);
  // An attempt that is not known to have started is ended without an interrupt.
  await until(() => attemptOf(name).identified === true);
  await run.ask({ kind: 'pause-session', sessionId });
  const asked = await fake.control('interrupt');
  await fake.print({ type: 'control_response', response: { subtype: 'success', request_id: asked } });
  await until(() => record(name).state.status === 'paused');
  await run.ask({ kind: 'resume-session', sessionId });
  return begin(name);
}

const machineOf = ({ hello }: Invocation): string => /\/machine (\w+)\//.exec(hello.cwd)?.[1] ?? '';

longFleetTest(
  'the next attempt runs on the host with its files and set-up, unless that host takes no work',
  async () => {
    const fields = { setup: 'echo set up in $CCA_SESSION >>ignored' };
    await open([{ name: 'a', fields }, { name: 'b' }], { machines: { one: { slots: 3 }, two: { slots: 3 } } });
    const run = ground.group.run(rig.env);
    await begin('b');
    let fake = await begin('a');
    const first = machineOf(fake);
    const ignored = () => readFileSync(join(fake.hello.cwd, 'ignored'), 'utf8');
    for (let round = 1; round <= 3; round += 1) {
      writeFileSync(join(fake.hello.cwd, 'ignored'), `${ignored()}${round}\n`);
      fake = await again('a', fake, run);
      expect(machineOf(fake)).toBe(first);
    }
    expect(ignored()).toBe('set up in a\n1\n2\n3\n');
    writeFileSync(join(fake.hello.cwd, 'two.txt'), 'uncommitted\n');
    const redis = await ground.redis();
    await drainHost(redis, first);
    fake = await again('a', fake, run);
    expect(machineOf(fake)).toBe(first === 'one' ? 'two' : 'one');
    expect(ignored()).toBe('set up in a\n');
    expect(readFileSync(join(fake.hello.cwd, 'two.txt'), 'utf8')).toBe('uncommitted\n');
    redis.close();
    run.signal('SIGHUP');
    await run.result;
  },
  120_000,
);

/** Bundled with its hooks, as in the published package. */
async function bundledMachine(folder: string): Promise<string> {
  const entrypoints = [machineMain, join(checkoutRoot, 'src', 'hook-main.ts')];
  const outdir = join(folder, 'an "installed" program', 'dist', 'program');
  await Bun.build({ entrypoints, outdir, target: 'bun', splitting: true, naming: { entry: '[name].[ext]' } });
  return join(outdir, 'fleet-machine-main.js');
}

interface Hook {
  readonly command: string;
  readonly args: readonly string[];
}

fleetTest.each(['from sources', 'installed as a bundle'])(
  'hooks are started as the host starts them: %s',
  async (kind) => {
    await open([{ name: 'a' }], { machines: {} });
    const main = kind === 'from sources' ? machineMain : await bundledMachine(ground.group.folder);
    ground.addMachine('one', { main });
    const run = ground.group.run(rig.env);
    const fake = await begin('a');
    const settings = (config: string): string => readFileSync(join(config, 'settings.json'), 'utf8');
    const { CLAUDE_CONFIG_DIR = '' } = fake.hello.env;
    const { hooks } = JSON.parse(settings(CLAUDE_CONFIG_DIR)) as Record<string, Record<string, { hooks: Hook[] }[]>>;
    const [task] = hooks?.SessionStart?.flatMap((entry) => entry.hooks) ?? [];
    const ran = Bun.spawnSync([task?.command ?? '', ...(task?.args ?? [])], {
      env: {},
      cwd: fake.hello.cwd,
      stdin: Buffer.from(JSON.stringify({ session_id: ground.group.claudeId('a'), source: 'compact' })),
    });
    expect(ran.stdout.toString()).toContain('do a');
    const isOfBundle = task?.args.some((arg) => arg.includes('hook-main.js')) === true;
    expect(isOfBundle).toBe(kind !== 'from sources');
    // Nothing about the installation here is sent there.
    const here = settings(ground.group.session('a').config);
    for (const path of [checkoutRoot, process.execPath]) expect(here).not.toContain(path);
    await fake.succeed(0.1);
    await run.result;
  },
);

async function until(isTrue: () => boolean): Promise<void> {
  while (!isTrue()) await Bun.sleep(20);
}
