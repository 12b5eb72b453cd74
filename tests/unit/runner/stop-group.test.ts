/**
 * Promises: `group stop` ends what a dead runner left, with its cost known: a frozen worker and a running acceptance
 * command.
 */
import { expect, test } from 'bun:test';
import { attemptMark } from '../../../src/claude/launch/environment.ts';
import { stopGroup } from '../../../src/runner/stop-group.ts';
import { openGroupWriter } from '../../../src/store/group-writer.ts';
import { resultLine } from '../../support/fake-claude-rig.ts';
import type { GroupFixture } from '../../support/group-fixture.ts';
import { begin, make, rig, withRig } from '../../support/rig-ground.ts';
import { eventually, expectOk } from '../../support/system/rig.ts';

withRig((one) => one.remove());
let group: GroupFixture;

const alive = (pid: number) => group.world.processes.identify(pid) !== null;

test('stop without a runner continues a frozen worker, interrupts it, and records its cost', async () => {
  group = make([{ name: 'one' }]);
  const run = group.run(rig.env);
  const fake = await begin(group, 'one');
  await run.event('session_identified');
  run.signal('SIGHUP');
  await run.result;
  process.kill(fake.hello.pid, 'SIGSTOP');
  const writer = expectOk(openGroupWriter(group.world, group.root, group.groupId, 'stop'));
  const stopped = stopGroup(group.world, writer, 'user');
  const requestId = await fake.control('interrupt');
  await fake.print({ type: 'control_response', response: { subtype: 'success', request_id: requestId } });
  await fake.print(
    resultLine(0.02, { subtype: 'error_during_execution', is_error: true, terminal_reason: 'aborted_tools' }),
  );
  await stopped;
  writer.close();
  expect(alive(fake.hello.pid)).toBe(false);
  const record = group.state().sessions.get(group.id('one'));
  expect(record?.state).toMatchObject({ status: 'paused', reason: 'user' });
  expect(record?.usage.costUsd).toBeCloseTo(0.02);
});

test('stop without a runner ends the acceptance command, and the work stays done', async () => {
  group = make([{ name: 'one', fields: { accept: 'until [ -e go ]; do sleep 0.05; done' } }]);
  const run = group.run(rig.env);
  const fake = await begin(group, 'one');
  await fake.succeed(0.03);
  const accepting = await run.event('session_accepting');
  run.signal('SIGHUP');
  await run.result;
  // A runner that exits ends its command; a killed one leaves one like this.
  const id = 'attemptId' in accepting ? accepting.attemptId : '';
  const command = Bun.spawn(['sleep', '600'], { env: { PATH: '/usr/bin:/bin', [attemptMark]: id } });
  // Its environment cannot be read until it is `sleep`.
  await eventually(() => group.world.processes.findMarked(attemptMark, id).length > 0);
  const writer = expectOk(openGroupWriter(group.world, group.root, group.groupId, 'stop'));
  await stopGroup(group.world, writer, 'user');
  writer.close();
  const isLeft = alive(command.pid);
  command.kill('SIGKILL');
  expect(isLeft).toBe(false);
  const record = group.state().sessions.get(group.id('one'));
  expect(record?.state).toMatchObject({ status: 'paused', reason: 'user' });
  expect(record?.finished).toEqual({ result: 'done' });
  expect(record?.usage.costUsd).toBeCloseTo(0.03);
});
