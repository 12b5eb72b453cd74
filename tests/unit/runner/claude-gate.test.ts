/**
 * Promises: the gate decides which claude program starts an attempt. If no program is allowed during a run, running
 * sessions continue, nothing else starts, the group pauses with that reason, and a resume continues it.
 */
import { expect, test } from 'bun:test';
import { fail, ok } from '../../../src/core/failure.ts';
import type { ClaudeGate } from '../../../src/worker/attempt/attempt-setup.ts';
import { begin, make, rig, withRig } from '../../support/rig-ground.ts';

withRig();

/** Allows the requested program this many times. */
function gateFor(times: number, asked: (string | undefined)[] = []): ClaudeGate {
  return {
    choose: async (accepted) => {
      asked.push(accepted);
      if (asked.length <= times) return ok({ program: rig.program });
      return fail('claude-unproven', 'claude 2.1.401 was tried.', 'Use another version.');
    },
  };
}

test('a claude program that is not allowed pauses the group, and the next run continues', async () => {
  const group = make([{ name: 'a' }, { name: 'b', after: ['a'] }]);
  const env = { ...rig.env, CLAUDE_CODE_AGENT_CLAUDE: '/nowhere/claude' };
  const run = group.run(env, { claude: gateFor(1) });
  await (await begin(group, 'a')).succeed();
  expect(await run.result).toMatchObject({ kind: 'settled', status: 'paused' });
  const state = group.state();
  expect(state.sessions.get(group.id('a'))?.state.status).toBe('completed');
  expect(state.sessions.get(group.id('b'))?.state).toMatchObject({
    status: 'failed',
    failure: { reason: 'claude-unproven' },
  });
  expect(state).toMatchObject({ status: 'paused', reason: 'needs-person' });
  expect(group.events().at(-1)).toMatchObject({
    type: 'group_paused',
    message: expect.stringContaining('claude 2.1.401 was tried. Use another version.'),
  });

  const asked: (string | undefined)[] = [];
  const overrides = { acceptClaude: '2.1.401' };
  const again = group.run(env, { claude: gateFor(1, asked), overrides });
  await (await begin(group, 'b')).succeed();
  expect(await again.result).toMatchObject({ kind: 'settled', status: 'completed' });
  expect(asked).toEqual(['2.1.401']);
  expect(group.state().group.config.acceptClaude).toBe('2.1.401');
});

test('running sessions continue when no allowed claude program is found for another session', async () => {
  const group = make([{ name: 'a' }, { name: 'b' }], { maxConcurrentSessions: 2 });
  const run = group.run(rig.env, { claude: gateFor(1) });
  const fake = await begin(group, 'a');
  await run.event('session_failed', group.id('b'));
  await fake.succeed();
  expect(await run.result).toMatchObject({ kind: 'settled', status: 'paused' });
  expect(group.state().sessions.get(group.id('a'))?.state.status).toBe('completed');
});
