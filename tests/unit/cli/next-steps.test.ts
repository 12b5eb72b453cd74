/** Promises: the suggested next step works when typed as printed. */
import { afterEach, beforeEach, expect, test } from 'bun:test';
import { join } from 'node:path';
import { Ground, story } from '../../support/cli/bad-input/ground.ts';

let user: Ground;
beforeEach(() => {
  user = new Ground();
});
afterEach(() => user.remove());

test('a rehearsal continues as a rehearsal with its script', async () => {
  const script = join(user.folder, 'script.yaml');
  const run = { ...story.started.run, rehearsal: true, script } as const;
  const group = user.make('auth', [{ name: 'api' }], [{ ...story.started, run }, story.intended, story.spawned]);
  for (const command of ['show', 'watch', 'why', 'archive', 'merge', 'report']) {
    const { stdout, stderr } = await user.run('group', command, group);
    expect({ command, says: `${stdout}${stderr}`.replaceAll('\\', '') }).toEqual({
      command,
      says: expect.stringContaining(`claude-code-agent group run ${group} --rehearse`),
    });
  }
  // A missing script is reported and not replaced.
  expect(await user.run('group', 'run', group, '--rehearse')).toMatchObject({
    code: 2,
    stderr: expect.stringContaining(`is gone: ${script}. Restore it`),
  });
});

test('a paused rehearsal is resumed as one by every suggested command', async () => {
  const run = { ...story.started.run, rehearsal: true } as const;
  const paused = { ...story.groupPaused, message: 'Paused on request.' };
  const events = [{ ...story.started, run }, story.intended, story.spawned, story.paused, paused];
  const group = user.make('auth', [{ name: 'api' }, { name: 'web' }], events);
  const command = `claude-code-agent group resume ${group} --rehearse`;
  const typed = `Continue with: ${command}`;
  expect(await user.ok('group', 'why', group)).toContain(typed);
  expect(await user.ok('group', 'show', group)).toEndWith(`Paused on request.\nContinue with: ${command}`);
  expect(await user.json('group', 'why', group)).toMatchObject({
    sessions: [{ name: 'api' }, { name: 'web', message: `Paused on request. ${typed}` }],
  });
});

test('a failure that needs a person suggests how its rehearsal continues', async () => {
  const run = { ...story.started.run, rehearsal: true } as const;
  const failed = { ...story.failed, reason: 'not-logged-in', next: 'Log in.' } as const;
  const events = [{ ...story.started, run }, story.intended, story.spawned, failed, story.groupFailed];
  const group = user.make('auth', [{ name: 'api' }], events);
  for (const command of ['why', 'show']) {
    expect(await user.ok('group', command, group)).toContain(
      `Log in. Continue with: claude-code-agent group resume ${group} --rehearse`,
    );
  }
});

test('a session that could not start is retried after its cause is fixed', async () => {
  const failed = { ...story.failed, reason: 'spawn-failed', next: 'Remove it there.' } as const;
  const events = [story.started, story.intended, story.spawned, failed, story.groupFailed];
  const group = user.make('auth', [{ name: 'api' }], events);
  const said = await user.ok('group', 'show', group);
  expect(said).toContain(`Remove it there. Then retry with: claude-code-agent session retry ${group}/api`);
  expect(said).toEndWith(`Fix the cause, then continue with: claude-code-agent group run ${group} --retry-failed`);
});

test('a reason that applies to the whole group is printed once', async () => {
  const group = user.make(
    'auth',
    [...'abcdefghi'].map((name) => ({ name })),
  );
  const sentence = 'The group has not been started. Start it with: ';
  const said = await user.ok('group', 'why', group);
  const lines = said.split('\n');
  expect(said.split(sentence)).toHaveLength(2);
  expect(lines[0]).toBe(`not-started: ${sentence}claude-code-agent group run ${group}`);
  expect(lines.slice(1, 4)).toEqual(['', expect.stringMatching(/^SESSION/), '001 a    pending  not-started']);
  expect(lines).toHaveLength(3 + 9);
  // Answers about one session and in JSON are complete.
  expect(await user.ok('group', 'why', group, 'b')).toMatch(/^002 b .*Start it with/m);
  const { sessions } = await user.json<{ sessions: { message: string }[] }>('group', 'why', group);
  expect(sessions.every(({ message }) => message.startsWith(sentence))).toBe(true);
});
