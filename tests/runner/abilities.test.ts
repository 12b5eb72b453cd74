/**
 * Promises: a session that asks for a protection starts only with a claude that was seen to give it, and is given it
 * then. What the protection does is in tests/claude/untrusted.test.ts.
 */

import { expect, test } from 'bun:test';
import { readFileSync } from 'node:fs';
import { begin, make, rig, withRig } from '../support/rig-ground.ts';

withRig();

const asked = [
  ['untrusted', { untrusted: true as const }],
  ['toolMemory', { memoryBytes: 500_000_000 }],
] as const;

test.each(asked)(
  'what asks for %s is not started where nobody tried it, nor where it has no effect',
  async (name, fields) => {
    for (const can of [{}, { [name]: false }]) {
      const group = make([{ name: 'a', fields }]);
      const run = group.run(rig.env, { can });
      expect(await run.result).toMatchObject({ kind: 'settled', status: 'failed' });
      const failed = group.events().find(({ type }) => type === 'session_failed');
      expect(failed).toMatchObject({ reason: 'spawn-failed', usage: { costUsd: 0 } });
      expect(group.events().map(({ type }) => type)).not.toContain('session_started');
    }
  },
);

test('what claude is able to is given to those who ask for it, and no project takes it back', async () => {
  const fields = { untrusted: true, memoryBytes: 500_000_000 } as const;
  const group = make([{ name: 'a', fields }, { name: 'b' }]);
  const run = group.run(rig.env, { can: { untrusted: true, toolMemory: true, forwardsSubagents: true } });
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
