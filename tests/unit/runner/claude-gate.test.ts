/**
 * Promises: the gate decides which program an attempt is started with; when it lets none through in the middle of a
 * run, what runs goes on, nothing else starts, the group is paused with that reason, and a resume goes on.
 */
import { expect, test } from 'bun:test';
import { fail, ok } from '../../../src/core/failure.ts';
import type { ClaudeGate } from '../../../src/worker/attempt/attempt-setup.ts';
import { begin, make, rig, withRig } from '../../support/rig-ground.ts';

withRig();

/** Lets through what was asked for so many times. */
function gateFor(times: number, asked: (string | undefined)[] = []): ClaudeGate {
  return {
    choose: async (accepted) => {
      asked.push(accepted);
      if (asked.length <= times) return ok({ program: rig.program });
      return fail('claude-unproven', 'claude 2.1.401 was tried.', 'Use another version.');
    },
  };
}

test('a claude that is not let through pauses the group, and the next run goes on', async () => {
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

test('what runs goes on when another session finds no claude that is let through', async () => {
  const group = make([{ name: 'a' }, { name: 'b' }], { maxConcurrentSessions: 2 });
  const run = group.run(rig.env, { claude: gateFor(1) });
  const fake = await begin(group, 'a');
  await run.event('session_failed', group.id('b'));
  await fake.succeed();
  expect(await run.result).toMatchObject({ kind: 'settled', status: 'paused' });
  expect(group.state().sessions.get(group.id('a'))?.state.status).toBe('completed');
});
