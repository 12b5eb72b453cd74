/**
 * Promises: `session allow` shows denied calls with the rules that would allow them. The chosen rules are added, the
 * session continues, and rules added meanwhile by others are kept.
 */
import { expect, test } from 'bun:test';
import type { GroupEvent } from '../../../src/core/event.ts';
import { nightUser, withNight } from '../../support/cli/night.ts';
import { type Invocation, resultLine } from '../../support/fake-claude-rig.ts';
import { obeyInterrupt } from '../../support/rig-ground.ts';
import { TestTerminal } from '../../support/terminal.ts';

withNight();

const denied = [
  { tool_name: 'Bash', tool_use_id: 'a', tool_input: { command: 'npm test && rm -rf build' } },
  { tool_name: 'WebFetch', tool_use_id: 'b', tool_input: { url: 'https://bun.sh/docs' } },
  { tool_name: 'Write', tool_use_id: 'c', tool_input: { file_path: '/p/.git/config' } },
];
const offered = ['Bash(npm test:*)', 'Bash(rm -rf build)', 'WebFetch(domain:bun.sh)'];

/** claude reports that these calls were denied: old versions at the end, newer ones also at once. */
async function denyAll(fake: Invocation): Promise<void> {
  const content = denied.map(({ tool_name, tool_use_id, tool_input }) => ({
    type: 'tool_use',
    id: tool_use_id,
    name: tool_name,
    input: tool_input,
  }));
  await fake.print({ type: 'assistant', message: { id: 'm', role: 'assistant', content } });
  const message = 'You asked to edit a file which is a sensitive file.';
  await fake.print({ type: 'system', subtype: 'permission_denied', tool_name: 'Write', tool_use_id: 'c', message });
  await fake.print(resultLine(0.01, { permission_denials: denied }));
}

/** A group with one session, which failed because all its calls were denied. */
async function deniedGroup(...options: string[]): Promise<string> {
  const group = await nightUser.group('auth', { api: options });
  const run = nightUser.start('group', 'run', group, '--output', 'quiet');
  await denyAll(await nightUser.begun(group, 'api'));
  expect((await run.finished).code).toBe(1);
  return group;
}

function allowed(group: string): readonly string[] | undefined {
  const last = nightUser.events(group).findLast((event) => event.type === 'session_changed');
  return (last as Extract<GroupEvent, { type: 'session_changed' }> | undefined)?.session.allowedTools;
}

test('session allow --all allows all denied calls, and the session continues', async () => {
  const group = await deniedGroup('--allowed-tools', 'Edit');
  expect(await nightUser.ok('group', 'show', group)).toContain(`session allow ${group}/api --denied --retry`);
  const allow = nightUser.start('session', 'allow', 'auth/api', '--denied', '--retry');
  const fake = await nightUser.begun(group, 'api');
  expect(fake.hello.args.filter((arg) => arg.startsWith('--allowedTools='))).toEqual(
    ['Edit', ...offered].map((rule) => `--allowedTools=${rule}`),
  );
  await fake.succeed();
  const stillDenied =
    'Still denied: Write /p/.git/config; no rule helps. You asked to edit a file which is a sensitive file.';
  expect(await allow.finished).toMatchObject({ code: 0, stderr: `${stillDenied}\n` });
  expect(nightUser.events(group).filter(({ type }) => type === 'session_changed')).toMatchObject([
    { changed: ['allowedTools'] },
  ]);
}, 60_000);

test('session allow lists denied calls with their rules, and the command that adds them', async () => {
  const group = await deniedGroup();
  const shown = await nightUser.ok('session', 'allow', 'auth/api');
  expect(shown).toBe(
    [
      'denied: Write /p/.git/config',
      '     no rule helps. You asked to edit a file which is a sensitive file.',
      '     Tell the session to use another way, or change its permission mode: ' +
        `claude-code-agent session retry ${group}/api --prompt TEXT · ` +
        `claude-code-agent session edit ${group}/api --permission-mode bypassPermissions`,
      'denied: Bash npm test && rm -rf build',
      '   1 Bash(npm test:*)',
      '   2 Bash(rm -rf build)',
      'denied: WebFetch https://bun.sh/docs',
      '   3 WebFetch(domain:bun.sh)',
      `Allow all of these and resume: claude-code-agent session allow ${group}/api --denied --retry`,
    ].join('\n'),
  );
  expect(allowed(group)).toBeUndefined();
  const said = await nightUser.ok('session', 'allow', 'auth/api', offered[0] ?? '');
  expect(said).toBe(
    `Session 001 api now allows Bash(npm test:*). Retry with: claude-code-agent session retry ${group}/api`,
  );
  const json = await nightUser.json<object>('session', 'allow', 'auth/api', '--denied');
  expect(json).toMatchObject({ session: nightUser.id('api'), allowed: offered.slice(1) });
  expect(allowed(group)).toEqual(offered);
  expect(await nightUser.run('session', 'allow', 'auth/api', '--denied')).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('are already allowed'),
  });
}, 60_000);

test('on a terminal session allow lets the user choose rules by number', async () => {
  const group = await deniedGroup();
  const line = [nightUser.program, 'session', 'allow', 'auth/api'];
  const terminal = new TestTerminal(line, { cwd: nightUser.folder, env: nightUser.env, columns: 100 });
  await terminal.shows('Allow which?');
  terminal.type('1, 3\r');
  expect(await terminal.exited).toBe(0);
  expect(allowed(group)).toEqual([offered[0] ?? '', offered[2] ?? '']);
  const again = new TestTerminal(line, { cwd: nightUser.folder, env: nightUser.env, columns: 100 });
  await again.shows('Allow which?', 'Bash(rm -rf build)');
  again.type('9\r');
  expect(await again.exited).toBe(2);
  expect(allowed(group)).toHaveLength(2);
}, 60_000);

test('a live runner adds allowed rules to a waiting session, also from two commands at once', async () => {
  const group = await nightUser.group('auth', { api: [], web: ['--depends-on', 'api'] });
  const run = nightUser.start('group', 'run', group, '--output', 'quiet');
  const api = await nightUser.begun(group, 'api');
  const rules = ['Edit', 'Bash(make)', 'WebSearch'];
  const asked = rules.map((rule) => nightUser.start('session', 'allow', 'auth/web', rule).finished);
  for (const { code } of await Promise.all(asked)) expect(code).toBe(0);
  expect([...(allowed(group) ?? [])].sort()).toEqual([...rules].sort());
  const refused = await nightUser.run('session', 'allow', 'auth/api', 'Edit');
  expect(refused).toMatchObject({ code: 1, stderr: expect.stringContaining(`session pause ${group}/api`) });
  const pause = nightUser.start('group', 'pause', group);
  await obeyInterrupt(api, 0.01);
  await pause.finished;
  await run.finished;
}, 60_000);

test('session allow refuses an invalid rule, and a session without denied calls', async () => {
  const group = await nightUser.group('auth', { api: [] });
  for (const [rules, words] of [
    [['--', '--mcp-config'], 'is not a permission rule'],
    [['Bash(('], 'is not a permission rule'],
    [['--denied'], 'No calls of'],
    [['--json', '--retry'], 'cannot be used with option'],
  ] as const) {
    const { code, stdout, stderr } = await nightUser.run('session', 'allow', 'auth/api', ...rules);
    expect([rules, code, stdout, stderr]).toEqual([rules, 2, '', expect.stringContaining(words)]);
  }
  expect(await nightUser.ok('session', 'allow', 'auth/api')).toBe('No calls of session 001 api were denied.');
  expect(allowed(group)).toBeUndefined();
});
