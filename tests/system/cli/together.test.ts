/**
 * Promises about several processes on one group: simultaneous additions all succeed with numbers of their own. A live
 * runner handles requests, exclusive commands are refused as busy, and watchers see every event.
 */
import { afterEach, beforeEach, expect, test } from 'bun:test';
import { answerRequests } from '../../../src/runner/request-answers.ts';
import { type GroupWriter, openGroupWriter } from '../../../src/store/group-writer.ts';
import { createRealWorld } from '../../../src/system/real-world.ts';
import { User } from '../../support/cli/user.ts';
import { sampleAttempt, sampleUsage } from '../../support/view/sample-run.ts';

const world = createRealWorld();
const runId = 'the-runner';

let user: User;
let writer: GroupWriter | undefined;
beforeEach(() => {
  user = new User();
});
afterEach(() => {
  writer?.close();
  writer = undefined;
  user.remove();
});

/** This process becomes the live runner of the group. */
function hold(group: string): GroupWriter {
  const opened = openGroupWriter(world, user.data, group, runId);
  if (!opened.ok) throw new Error(opened.failure.message);
  writer = opened.value;
  writer.record([{ type: 'group_started', run: { id: runId, runner: world.machine.self } }]);
  return writer;
}

/** Answers requests as a runner does until the promise settles. */
async function answering<T>(held: GroupWriter, pending: Promise<T>): Promise<T> {
  let isSettled = false;
  const settled = pending.finally(() => {
    isSettled = true;
  });
  while (!isSettled) {
    answerRequests(world, held, runId, (bodies) => held.record(bodies));
    await Bun.sleep(10);
  }
  return settled;
}

test('ten sessions added at the same moment', async () => {
  const group = await user.ok('group', 'create', 'auth');
  const names = Array.from({ length: 10 }, (_, index) => `s${index}`);
  const ids = await Promise.all(names.map((name) => user.add(group, name)));
  expect(ids.map((id) => Number.parseInt(id, 10)).sort((a, b) => a - b)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
  const listed = await user.json<{ id: string }[]>('session', 'list', group);
  expect(listed.map(({ id }) => id)).toEqual([...ids].sort());
}, 60_000);

test('a live runner adds and removes sessions on request, and its refusals are printed', async () => {
  const group = await user.makeGroup();
  const held = hold(group);
  const added = await answering(held, user.add(group, 'docs', '--depends-on', 'web'));
  expect([...held.state.sessions.keys()][2]).toBe(added);
  expect(held.state.sessions.get(added)?.definition.dependsOn).toEqual([[...held.state.sessions.keys()][1] as string]);
  const refused = await answering(held, user.run('session', 'remove', `${group}/web`));
  expect(refused).toMatchObject({ code: 2, stdout: '' });
  const removed = await answering(held, user.run('session', 'remove', `${group}/docs`));
  expect(removed).toMatchObject({ code: 0 });
  expect(held.state.sessions.has(added)).toBe(false);
}, 60_000);

test('when the runner exits without an answer, the command does it itself', async () => {
  const group = await user.makeGroup();
  hold(group);
  const pending = user.add(group, 'docs');
  const { requests } = (writer as GroupWriter).paths;
  while (world.files.list(requests).length === 0) await Bun.sleep(10);
  writer?.close();
  expect(await pending).toStartWith('003-');
  expect(world.files.list(requests)).toEqual([]);
}, 60_000);

test('watchers get past and new events, and end with the group', async () => {
  const group = await user.makeGroup();
  const held = hold(group);
  const [api, web] = [...held.state.sessions.keys()] as [string, string];
  const record = (id: string): void => {
    const [starting, startedEvent, identified] = sampleAttempt(id);
    held.record([starting, startedEvent, identified].flatMap((event) => event ?? []));
    const attemptId = `attempt-${id.slice(0, 3)}-1`;
    held.record([
      { type: 'session_completed', sessionId: id, attemptId, result: 'ok', usage: sampleUsage(0.1, 10, 20, 30) },
    ]);
  };
  record(api);
  const json = user.start('group', 'watch', group, '--output', 'json');
  const text = user.start('group', 'watch', group);
  record(web);
  held.record([{ type: 'group_completed' }]);
  held.close();
  const [asJson, asText] = await Promise.all([json.finished, text.finished]);
  const types = asJson.stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line).type);
  const each = ['session_started', 'session_completed'];
  expect(types).toEqual(['header', 'group_started', ...each, ...each, 'group_completed']);
  expect([asJson.code, asText.code]).toEqual([0, 0]);
  expect(asText.stdout).toContain('002 web  completed');
  expect(asText.stdout).toContain('2 of 2 sessions completed');
}, 60_000);
