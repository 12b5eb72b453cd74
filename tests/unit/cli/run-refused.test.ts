/** Promises: `run` creates no group if no session could start: claude, login and config.yaml are checked first. */
import { beforeEach, expect, test } from 'bun:test';
import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { configRoot } from '../../../src/store/paths.ts';
import { nightUser, withNight } from '../../support/cli/night.ts';
import { until } from '../../support/cli.ts';

let workflow: string;
withNight();
beforeEach(() => {
  workflow = join(nightUser.folder, 'change.yaml');
  const project = nightUser.project('api');
  writeFileSync(workflow, `version: 1\ntitle: W\nsessions: { a: { project: "${project}", prompt: Do it. } }\n`);
});

const cases: [string, string, RegExp, Record<string, string>][] = [
  ['no claude', '', /no-such-claude/, { CLAUDE_CODE_AGENT_CLAUDE: '/no-such-claude' }],
  ['a claude path that is no program', '', /passwd/, { CLAUDE_CODE_AGENT_CLAUDE: '/etc/passwd' }],
  ['no login', '', /claude is not logged in.*claude auth login/s, { FAKE_CLAUDE_LOGGED_OUT: '1' }],
  ['a broken config.yaml', 'prices: [', /config\.yaml/, {}],
];

for (const [name, config, says, env] of cases) {
  for (const more of [[], ['--detach']]) {
    test(`run creates no group with ${name}${more.length > 0 ? ', detached' : ''}`, async () => {
      const root = configRoot(nightUser.env);
      if (!root.ok) throw new Error(root.failure.message);
      mkdirSync(root.value, { recursive: true });
      if (config !== '') writeFileSync(join(root.value, 'config.yaml'), config);
      const { code, stdout, stderr } = await nightUser.runWith({ env }, 'run', workflow, '--output', 'text', ...more);
      expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
      expect(stderr).toMatch(says);
      expect(stderr).not.toContain('Created group');
      expect(await nightUser.json<unknown[]>('group', 'list')).toEqual([]);
    });
  }
}

test('without a login an existing group is refused too, without an attempt', async () => {
  const group = await nightUser.group('auth', { b: [] });
  const env = { FAKE_CLAUDE_LOGGED_OUT: '1' };
  for (const words of [
    ['group', 'run', group],
    ['group', 'resume', group],
    ['group', 'run', group, '--detach'],
  ]) {
    const { code, stdout, stderr } = await nightUser.runWith({ env }, ...words, '--output', 'text');
    expect({ words, code, stdout }).toEqual({ words, code: 2, stdout: '' });
    expect(stderr).toMatch(/claude is not logged in.*claude auth login/s);
  }
  expect(nightUser.events(group).map(({ type }) => type)).toEqual(['group_created', 'session_added']);
}, 60_000);

test('with claude, login and config.yaml in order, run creates and runs the group', async () => {
  const run = nightUser.start('run', workflow, '--output', 'text');
  const folder = join(nightUser.data, 'session-groups');
  await until(() => existsSync(folder) && readdirSync(folder).some((name) => /^\d/.test(name)));
  const group = readdirSync(folder).find((name) => /^\d/.test(name)) ?? '';
  const sessions = await nightUser.json<{ id: string }[]>('session', 'list', group);
  nightUser.note('a', sessions[0]?.id ?? '');
  const fake = await nightUser.next('a');
  await fake.prompt();
  await fake.init();
  await fake.succeed();
  expect((await run.finished).code).toBe(0);
}, 60_000);
