/**
 * Promises: a session gets the protections and limits that it sets, and does not start where a limit cannot be
 * enforced. Their effect on claude is tested in `tests/system/claude/untrusted.test.ts` and `memory.test.ts`.
 */

import { expect, test } from 'bun:test';
import { readFileSync } from 'node:fs';
import type { LimitKind, Limits, World } from '../../../src/system/world.ts';
import { begin, make, rig, withRig } from '../../support/rig-ground.ts';

withRig();

test('a protection set for a session applies, and a project cannot remove it', async () => {
  const fields = { untrusted: true, memoryBytes: 500_000_000 } as const;
  const group = make([{ name: 'a', fields }, { name: 'b' }]);
  const run = group.run(rig.env);
  const given: unknown[] = [];
  for (const name of ['a', 'b']) {
    const fake = await begin(group, name);
    const { env } = JSON.parse(readFileSync(group.session(name).workerSettings, 'utf8'));
    for (const where of [fake.hello.env, env]) {
      given.push([where.CLAUDE_CODE_IGNORE_PERSISTED_TRUST, where.CLAUDE_CODE_TOOL_MEMORY_LIMIT]);
    }
    expect(fake.hello.args).toContain('--forward-subagent-text');
    await fake.succeed();
  }
  expect(given).toEqual([
    ['1', '500000000'],
    ['1', '500000000'],
    [undefined, undefined],
    ['', ''],
  ]);
  expect(await run.result).toMatchObject({ kind: 'settled', status: 'completed' });
});

/** Pretends that this host can set these limits and that sessions reach them; records the limits in order. */
function limiting(world: World, kinds: readonly LimitKind[]): (Limits | undefined)[] {
  const given: (Limits | undefined)[] = [];
  const { spawn } = world.processes;
  Object.assign(world.processes, {
    limits: () => new Set(kinds),
    limitsHit: () => kinds,
    spawn: ({ limits, ...options }: Parameters<typeof spawn>[0]) => {
      if (options.contained !== undefined) given.push(limits);
      return spawn.call(world.processes, options);
    },
  });
  return given;
}

test('a session whose limits cannot be enforced here does not start', async () => {
  const group = make([{ name: 'a', fields: { maxProcesses: 100 } }]);
  expect(limiting(group.world, ['memory'])).toEqual([]);
  expect(await group.run(rig.env).result).toMatchObject({ kind: 'settled', status: 'failed' });
  const failed = group.events().find(({ type }) => type === 'session_failed');
  const next = expect.stringContaining('systemd-run --user --scope -p Delegate=yes claude-code-agent');
  const message = '--max-processes cannot be enforced on this machine.';
  expect(failed).toMatchObject({ reason: 'spawn-failed', message, next });
  expect(group.events().map(({ type }) => type)).not.toContain('session_started');
});

test('limits apply to all processes of a session, and its warnings name the limits that were reached', async () => {
  const both = { memoryBytes: 500_000_000, maxProcesses: 100 };
  const sketches = [{ name: 'a', fields: both }, { name: 'b', fields: { ...both, retries: 0 } }, { name: 'c' }];
  const group = make(sketches, { maxConcurrentSessions: 1 });
  const given = limiting(group.world, ['memory', 'processes']);
  const run = group.run(rig.env);
  const first = await begin(group, 'a');
  expect(first.hello.env.CLAUDE_CODE_TOOL_MEMORY_LIMIT).toBe('500000000');
  await first.succeed();
  await (await begin(group, 'b')).exit(3);
  await (await begin(group, 'c')).succeed();
  await run.result;
  const limits = { memory: 500_000_000 + 1024 ** 3, processes: 100 };
  expect(given).toEqual([limits, limits, undefined]);
  const { warnings, state } = group.state().sessions.get(group.id('a')) ?? {};
  expect(state).toMatchObject({ status: 'completed' });
  const sentences = [/^The session reached its memory limit .*--memory/, /^The session reached --max-processes/];
  const code = 'limit-reached';
  expect(warnings).toMatchObject(sentences.map((one) => ({ code, message: expect.stringMatching(one) })));
  const failed = group.events().find(({ type }) => type === 'session_failed');
  expect(failed).toMatchObject({
    sessionId: group.id('b'),
    message: expect.stringMatching(/--memory .*--max-processes/),
  });
});
