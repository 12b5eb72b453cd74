/**
 * Promises: each way in which claude can end has its own reason code and a message with a remedy. Dependents of a
 * failed session are shown as blocked and never started, and the group ends accordingly.
 */
import { expect, test } from 'bun:test';
import { groupProgress } from '../../../src/core/progress.ts';
import { type Invocation, resultLine } from '../../support/fake-claude-rig.ts';
import type { GroupFixture } from '../../support/group-fixture.ts';
import { begin, make, rig, withRig } from '../../support/rig-ground.ts';

withRig((one) => one.remove());
let group: GroupFixture;

const pair = [
  { name: 'first', fields: { retries: 0 } },
  { name: 'second', after: ['first'] },
];

async function endWith(step: (fake: Invocation) => Promise<void> | void, env: Record<string, string> = {}) {
  group = make(pair);
  const run = group.run({ ...rig.env, ...env });
  const fake = await rig.nextFor(group.claudeId('first'));
  await fake.prompt();
  await step(fake);
  const result = await run.result;
  const progress = groupProgress(group.state(), new Map(), Date.now());
  return { result, first: progress.sessions[0], second: progress.sessions[1], status: progress.status };
}

const cases: { name: string; reason: string; says: RegExp; step: (fake: Invocation) => Promise<void> | void }[] = [
  {
    name: 'exit 0 without a result',
    reason: 'no-result',
    says: /without a result.*retry/is,
    step: async (fake) => {
      await fake.init();
      fake.exit(0);
    },
  },
  {
    name: 'no output, an error on stderr',
    reason: 'no-result',
    says: /disk is on fire/,
    step: async (fake) => {
      await fake.stderr('noise\nthe disk is on fire\n');
      fake.exit(1);
    },
  },
  {
    name: 'a result with is_error',
    reason: 'api-error',
    says: /529/,
    step: async (fake) => {
      await fake.init();
      const text = 'API Error: 529 Overloaded.';
      await fake.print(resultLine(0, { is_error: true, result: text, api_error_status: 529 }));
      fake.exit(1);
    },
  },
  {
    name: 'an error subtype',
    reason: 'max-turns',
    says: /turns/,
    step: async (fake) => {
      await fake.init();
      const errors = ['Reached maximum number of turns (1)'];
      await fake.print(resultLine(0.01, { subtype: 'error_max_turns', is_error: true, errors }));
      fake.exit(1);
    },
  },
  {
    name: 'success, then exit code 1',
    reason: 'exit-nonzero',
    says: /exit code 3/,
    step: async (fake) => {
      await fake.ignore('SIGTERM');
      await fake.init();
      await fake.succeed();
      fake.exit(3);
    },
  },
  {
    name: 'ended by a signal from outside',
    reason: 'signalled',
    says: /SIGKILL/,
    step: async (fake) => {
      await fake.init();
      fake.die('SIGKILL');
    },
  },
  {
    name: 'only denied tools',
    reason: 'permission',
    says: /no tool call succeeded \(denied: Bash\)\./,
    step: async (fake) => {
      await fake.init();
      const denials = [{ tool_name: 'Bash', tool_use_id: 't1', tool_input: {} }];
      await fake.print(resultLine(0.01, { permission_denials: denials, result: 'I could not.' }));
    },
  },
  {
    name: 'settings that claude ignores, before any cost',
    reason: 'config-invalid',
    says: /^claude started without the SessionStart hook/,
    // No more output follows, so there is no result to wait for.
    step: (fake) => fake.print({ type: 'system', subtype: 'init', model: 'claude-opus-4-8' }),
  },
  {
    name: 'a hook report after claude has begun',
    reason: 'config-invalid',
    says: /^claude started without the SessionStart hook/,
    step: async (fake) => {
      await fake.ignore('SIGTERM');
      await fake.print({ type: 'system', subtype: 'init', model: 'claude-opus-4-8' });
      await fake.print({ type: 'system', hook_id: 'h', hook_event: 'SessionStart', subtype: 'hook_started' });
      fake.exit(143);
    },
  },
  {
    name: 'not logged in, reported by the stream',
    reason: 'not-logged-in',
    says: /log/i,
    step: refuseLogin,
  },
];

async function refuseLogin(fake: Invocation): Promise<void> {
  await fake.init();
  await fake.print({
    type: 'assistant',
    error: 'authentication_failed',
    message: { id: 'm', model: '<synthetic>', content: [{ type: 'text', text: 'Not logged in' }] },
  });
  await fake.print(resultLine(0, { is_error: true, result: 'Not logged in · Please run /login' }));
  fake.exit(1);
}

for (const { name, reason, says, step } of cases) {
  test(`each end of claude has its own reason code: ${name}`, async () => {
    const { result, first, second, status } = await endWith(step);
    const ended = reason === 'not-logged-in' ? 'paused' : 'failed';
    expect(result).toMatchObject({ kind: 'settled', status: ended });
    expect(first).toMatchObject({ status: 'failed', reason });
    expect(first?.message).toMatch(says);
    expect(second).toMatchObject({ status: 'pending', reason: 'blocked' });
    expect(second?.message).toContain('Blocked by first');
    expect(status).toBe(ended);
  });
}

test('a missing claude program fails the session with reason claude-missing', async () => {
  group = make(pair);
  const result = await group.run({ ...rig.env, CLAUDE_CODE_AGENT_CLAUDE: '/nowhere/claude' }).result;
  expect(result).toMatchObject({ kind: 'settled', status: 'paused' });
  const [first, second] = groupProgress(group.state(), new Map(), 0).sessions;
  expect(first).toMatchObject({ status: 'failed', reason: 'claude-missing' });
  expect(first?.message).toContain('CLAUDE_CODE_AGENT_CLAUDE');
  expect(second).toMatchObject({ reason: 'blocked' });
});

test('after a missing login no other session is tried', async () => {
  group = make([{ name: 'first' }, { name: 'second' }, { name: 'third' }], { maxConcurrentSessions: 1 });
  const before = rig.invocations.length;
  const run = group.run(rig.env);
  await refuseLogin(await begin(group, 'first'));
  expect(await run.result).toMatchObject({ kind: 'settled', status: 'paused' });
  expect(rig.invocations.length).toBe(before + 1);
  const { sessions } = groupProgress(group.state(), new Map(), 0);
  expect(sessions.map((session) => session.status)).toEqual(['failed', 'pending', 'pending']);
  expect(sessions[0]).toMatchObject({ reason: 'not-logged-in' });
  // After the login the same command continues with all three.
  const second = group.run(rig.env);
  for (const name of ['first', 'second', 'third']) {
    const fake = await begin(group, name);
    await fake.succeed();
  }
  expect(await second.result).toMatchObject({ kind: 'settled', status: 'completed' });
});

test('unreadable output lines are kept, counted and ignored', async () => {
  const { result, first } = await endWith(async (fake) => {
    await fake.init();
    await fake.printRaw('this is not JSON\n');
    await fake.printRaw('{"type":"never_heard_of","session_id":"x"}\n');
    await fake.printRaw('[]\n\n{"type":42}\n');
    await fake.print({ type: 'assistant', message: { id: 'm1', content: [{ type: 'text', text: 'a\u2028b é' }] } });
    await fake.printRaw(`{"type":"user","message":{"content":"${'x'.repeat(20_000_000)}"}}\n`);
    await fake.succeed();
    void rig.nextFor(group.claudeId('second')).then(async (next) => {
      await next.init();
      await next.succeed();
    });
  });
  expect(result).toMatchObject({ kind: 'settled', status: 'completed' });
  expect(first).toMatchObject({ status: 'completed' });
  const record = group.state().sessions.get(group.id('first'));
  expect(record?.warnings.map((warning) => warning.code)).toContain('malformed-lines');
  const transcript = await Bun.file(group.session('first').transcript).text();
  expect(transcript).toContain('this is not JSON\n');
  expect(transcript.length).toBeGreaterThan(20_000_000);
});
