/**
 * Promises: the order of things that a crash, a signal or a stop could fall between: on record before it is done,
 * answered before the question goes, found before it is ended. tests/crash cuts at such moments; here they are seen.
 */
import { afterAll, afterEach, beforeAll, expect, test } from 'bun:test';
import { existsSync } from 'node:fs';
import { answerRequests } from '../../../src/runner/request-answers.ts';
import { openGroupWriter } from '../../../src/store/group-writer.ts';
import { sendRequest, takeRequests } from '../../../src/store/requests.ts';
import { type Invocation, type Rig, resultLine, startRig } from '../../support/fake-claude-rig.ts';
import { type GroupFixture, makeGroup } from '../../support/group-fixture.ts';
import { unwrap } from '../../support/store-world.ts';

let rig: Rig;
let group: GroupFixture;
beforeAll(async () => {
  rig = await startRig();
});
afterAll(() => rig.stop());
afterEach(() => group.remove());

const alive = (pid: number) => group.world.processes.identify(pid) !== null;

async function begin(): Promise<Invocation> {
  const fake = await rig.nextFor(group.claudeId('one'));
  await fake.prompt();
  await fake.init();
  return fake;
}

/** What claude does when it is interrupted, with what it has cost so far. */
async function obey(fake: Invocation): Promise<void> {
  const requestId = await fake.control('interrupt');
  await fake.print({ type: 'control_response', response: { subtype: 'success', request_id: requestId } });
  await fake.print(
    resultLine(0.02, { subtype: 'error_during_execution', is_error: true, terminal_reason: 'aborted_tools' }),
  );
}

test('the process is on record before it is told what to do: until then it has cost nothing', async () => {
  group = makeGroup([{ name: 'one' }]);
  const { fifos } = group.world;
  const { openWriter } = fifos;
  const logged: boolean[] = [];
  fifos.openWriter = (path) => {
    const writer = openWriter(path);
    if (writer === null) return null;
    const writeLine = (line: string): void => {
      logged.push(group.events().some((event) => event.type === 'session_started'));
      writer.writeLine(line);
    };
    return { writeLine, close: () => writer.close() };
  };
  const run = group.run(rig.env);
  await (await begin()).succeed();
  expect(await run.result).toMatchObject({ kind: 'settled', status: 'completed' });
  expect(logged.length).toBeGreaterThan(0);
  expect(logged).not.toContain(false);
});

test('a request is there until its answer is on record: a sender that finds neither would act by itself', () => {
  group = makeGroup([{ name: 'one' }]);
  const { world, paths } = group;
  const writer = unwrap(openGroupWriter(world, group.root, group.groupId, 'run'));
  const at = new Date(world.clock.now()).toISOString();
  sendRequest(world, paths, {
    id: crypto.randomUUID(),
    runId: 'run',
    at,
    kind: 'edit-group',
    config: { maxBudgetUsd: 5 },
  });
  sendRequest(world, paths, { id: crypto.randomUUID(), runId: 'run', at, kind: 'thaw' });
  const [first, second] = takeRequests(world, paths, 'run').map(({ path }) => path) as [string, string];
  const there: boolean[][] = [];
  answerRequests(world, writer, 'run', () => {
    there.push([first, second].map((path) => existsSync(path)));
  });
  writer.close();
  expect(there).toEqual([
    [true, true],
    [false, true],
  ]);
  expect([first, second].map((path) => existsSync(path))).toEqual([false, false]);
});

test('what a worker has started is known before it is told to stop: afterwards nothing may lead to it', async () => {
  group = makeGroup([{ name: 'one' }]);
  const run = group.run(rig.env);
  const fake = await begin();
  // In a session of its own already, as everything that the fake starts.
  const tool = await fake.spawn(['sleep', '600'], 'wiped');
  expect(alive(tool)).toBe(true);
  await run.event('session_identified');
  run.signal('SIGTERM');
  await fake.control('interrupt');
  fake.die('SIGKILL');
  expect(await run.result).toMatchObject({ kind: 'settled', status: 'paused' });
  expect([fake.hello.pid, tool].filter(alive)).toEqual([]);
});

test('the first signal while a drain goes on pauses what runs: nothing is left alone', async () => {
  group = makeGroup([{ name: 'one' }]);
  const run = group.run(rig.env);
  const fake = await begin();
  await run.event('session_identified');
  expect(await run.ask({ kind: 'pause', mode: 'drain' })).toMatchObject({ done: true });
  run.signal('SIGTERM');
  await obey(fake);
  expect(await run.result).toMatchObject({ kind: 'settled', status: 'paused' });
  expect(alive(fake.hello.pid)).toBe(false);
});

test('a signal during a freeze: what is halted goes on first, or it could not hear that it is to pause', async () => {
  group = makeGroup([{ name: 'one' }]);
  const run = group.run(rig.env);
  const fake = await begin();
  await run.event('session_identified');
  expect(await run.ask({ kind: 'pause', mode: 'freeze' })).toMatchObject({ done: true });
  run.signal('SIGTERM');
  await obey(fake);
  expect(await run.result).toMatchObject({ kind: 'settled', status: 'paused' });
  const types = group.events().map(({ type }) => type);
  expect(types.indexOf('group_thawed')).toBeGreaterThan(types.indexOf('group_frozen'));
  expect(types.indexOf('group_pausing')).toBeGreaterThan(types.indexOf('group_thawed'));
  expect(alive(fake.hello.pid)).toBe(false);
});

test('a session is paused during a freeze: it alone goes on, as far as that takes', async () => {
  group = makeGroup([{ name: 'one' }]);
  const run = group.run(rig.env);
  const fake = await begin();
  await run.event('session_identified');
  expect(await run.ask({ kind: 'pause', mode: 'freeze' })).toMatchObject({ done: true });
  expect(await run.ask({ kind: 'pause-session', sessionId: group.id('one') })).toMatchObject({ done: true });
  await obey(fake);
  await run.event('session_paused');
  expect(await run.ask({ kind: 'thaw' })).toMatchObject({ done: true });
  expect(await run.result).toMatchObject({ kind: 'settled', status: 'paused' });
  expect(alive(fake.hello.pid)).toBe(false);
});

test('a terminal that closes during a freeze frees what is halted: nobody else would', async () => {
  group = makeGroup([{ name: 'one' }]);
  const run = group.run(rig.env);
  const fake = await begin();
  await run.event('session_identified');
  expect(await run.ask({ kind: 'pause', mode: 'freeze' })).toMatchObject({ done: true });
  run.signal('SIGHUP');
  expect(await run.result).toMatchObject({ kind: 'left' });
  await fake.succeed(0.03);
  expect(await group.run(rig.env).result).toMatchObject({ kind: 'settled', status: 'completed' });
  expect(group.state().sessions.get(group.id('one'))?.attempts).toBe(1);
});

test('a worker that was halted when its runner died goes on as soon as it is adopted', async () => {
  group = makeGroup([{ name: 'one' }]);
  const first = group.run(rig.env);
  const fake = await begin();
  const tool = await fake.spawn(['sleep', '600']);
  await first.event('session_identified');
  first.signal('SIGHUP');
  expect(await first.result).toMatchObject({ kind: 'left' });
  for (const pid of [tool, fake.hello.pid]) process.kill(pid, 'SIGSTOP');
  const second = group.run(rig.env);
  await second.event('session_adopted');
  await fake.succeed(0.03);
  expect(await second.result).toMatchObject({ kind: 'settled', status: 'completed' });
  expect([fake.hello.pid, tool].filter(alive)).toEqual([]);
});

test('a success that stood there when the interrupt was not answered in time is finished work', async () => {
  group = makeGroup([{ name: 'one' }]);
  const { clock, files } = group.world;
  const { after } = clock;
  const { info, openRead } = files;
  const { transcript } = group.session('one');
  // The grace of the interrupt ends when the success was read, not when five seconds have passed.
  let endGrace = (): void => {};
  let sizeWithSuccess = Number.POSITIVE_INFINITY;
  clock.after = (delayMs, action) => {
    if (delayMs !== 5_000) return after(delayMs, action);
    let isDue = true;
    endGrace = () => {
      if (isDue) action();
      isDue = false;
    };
    return () => {
      isDue = false;
    };
  };
  files.openRead = (path) => {
    const file = openRead(path);
    if (file === null || path !== transcript) return file;
    const read: typeof file.read = (offset, maxBytes) => {
      const bytes = file.read(offset, maxBytes);
      // What was read is handled in the same breath.
      if (offset + bytes.length >= sizeWithSuccess) queueMicrotask(() => endGrace());
      return bytes;
    };
    return { read, close: () => file.close() };
  };
  const run = group.run(rig.env);
  const fake = await begin();
  await run.event('session_identified');
  run.signal('SIGTERM');
  await fake.control('interrupt');
  await fake.succeed(0.03);
  sizeWithSuccess = info(transcript)?.size ?? 0;
  expect(await run.result).toMatchObject({ kind: 'settled', status: 'completed' });
  expect(group.state().usage.costUsd).toBeCloseTo(0.03);
});
