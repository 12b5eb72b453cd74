/**
 * Promises: the order of steps that a crash, a signal or a stop could separate: an event is logged before its effect,
 * a request is removed after its answer, a process is found before it is ended. `tests/system/crash` cuts at such
 * moments.
 */
import { expect, test } from 'bun:test';
import { existsSync } from 'node:fs';
import { answerRequests } from '../../../src/runner/request-answers.ts';
import { openGroupWriter } from '../../../src/store/group-writer.ts';
import { sendRequest, takeRequests } from '../../../src/store/requests.ts';
import { type Invocation, resultLine } from '../../support/fake-claude-rig.ts';
import type { GroupFixture } from '../../support/group-fixture.ts';
import { begin, make, rig, withRig } from '../../support/rig-ground.ts';
import { expectOk } from '../../support/system/rig.ts';

withRig((one) => one.remove());
let group: GroupFixture;

const alive = (pid: number) => group.world.processes.identify(pid) !== null;

/** What claude does when it is interrupted, with its cost so far. */
async function obey(fake: Invocation): Promise<void> {
  const requestId = await fake.control('interrupt');
  await fake.print({ type: 'control_response', response: { subtype: 'success', request_id: requestId } });
  await fake.print(
    resultLine(0.02, { subtype: 'error_during_execution', is_error: true, terminal_reason: 'aborted_tools' }),
  );
}

test('a worker process is logged before it receives its prompt, until when it has cost nothing', async () => {
  group = make([{ name: 'one' }]);
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
  await (await begin(group, 'one')).succeed();
  expect(await run.result).toMatchObject({ kind: 'settled', status: 'completed' });
  expect(logged.length).toBeGreaterThan(0);
  expect(logged).not.toContain(false);
});

test('a request file stays until its answer is logged, so that its sender never acts itself', () => {
  group = make([{ name: 'one' }]);
  const { world, paths } = group;
  const writer = expectOk(openGroupWriter(world, group.root, group.groupId, 'run'));
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

test('a request from another version of this program is refused with its name', () => {
  group = make([{ name: 'one' }]);
  const { world, paths } = group;
  const writer = expectOk(openGroupWriter(world, group.root, group.groupId, 'run'));
  const at = new Date(world.clock.now()).toISOString();
  const [sessionId] = writer.state.sessions.keys();
  for (const kind of ['dance', 'toString']) {
    for (const about of [{}, { sessionId }])
      sendRequest(world, paths, { id: crypto.randomUUID(), runId: 'run', at, kind, ...about } as never);
  }
  const answers: unknown[] = [];
  answerRequests(world, writer, 'run', (bodies) => answers.push(...bodies));
  writer.close();
  const message = expect.stringContaining('another version of the program');
  expect(answers).toEqual(Array(4).fill(expect.objectContaining({ done: false, message })));
});

test('a signal during a freeze continues the frozen workers first, so that they can pause', async () => {
  group = make([{ name: 'one' }]);
  const run = group.run(rig.env);
  const fake = await begin(group, 'one');
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

test('a frozen worker whose runner died continues as soon as it is adopted', async () => {
  group = make([{ name: 'one' }]);
  const first = group.run(rig.env);
  const fake = await begin(group, 'one');
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
