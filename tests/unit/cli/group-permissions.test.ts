/**
 * Promises: permissions of a group apply to all its sessions. A session's own mode takes precedence, and rules of
 * both count together. `group allow` allows denied calls to all sessions, except those denied in spite of their rule.
 */
import { expect, test } from 'bun:test';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { foldEvents } from '../../../src/core/reduce.ts';
import type { GroupState } from '../../../src/core/state.ts';
import { nightUser, withNight } from '../../support/cli/night.ts';
import { type Invocation, resultLine } from '../../support/fake-claude-rig.ts';

withNight();

const stateOf = (group: string) => foldEvents(nightUser.events(group)) as GroupState;

/** Permission mode and rules with which claude was started. */
function permissionsOf({ hello: { args } }: Invocation) {
  const rules = args.flatMap((arg) => /^--allowedTools=(.*)$/.exec(arg)?.[1] ?? []);
  return [args[args.indexOf('--permission-mode') + 1], ...rules];
}

function definitions(group: string) {
  return [...stateOf(group).sessions.values()].map(({ definition }) => definition);
}

/** claude reports that this call was denied. */
async function deny(fake: Invocation, command: string, more: object = {}): Promise<void> {
  const call = { type: 'tool_use', id: `call ${command}`, name: 'Bash', input: { command } };
  await fake.print({ type: 'assistant', message: { id: 'm', role: 'assistant', content: [call] } });
  const message = 'This command requires approval';
  const denial = { tool_name: 'Bash', tool_use_id: call.id };
  await fake.print({ type: 'system', subtype: 'permission_denied', ...denial, message, ...more });
  await fake.print(resultLine(0.01, { permission_denials: [{ ...denial, tool_input: { command } }] }));
}

test('sessions have the group’s permissions, mode and time limit unless they have their own', async () => {
  const shared = ['--allowed-tools', 'Bash(npm test:*)', '--permission-mode', 'dontAsk', '--timeout', '5m'];
  const own = ['--allowed-tools', 'Edit', '--permission-mode', 'plan', '--timeout', '1h'];
  const group = await nightUser.group('auth', { api: [], web: own }, '--no-warm-cache', ...shared);
  const plan = await nightUser.ok('group', 'plan', group);
  expect(plan).toMatch(/001 api .*dontAsk, Bash\(npm test:\*\)/);
  expect(plan).toMatch(/002 web .*plan, Bash\(npm test:\*\), Edit/);
  const run = nightUser.start('group', 'run', group, '--output', 'quiet');
  const [api, web] = await Promise.all([nightUser.begun(group, 'api'), nightUser.begun(group, 'web')]);
  expect(permissionsOf(api)).toEqual(['dontAsk', 'Bash(npm test:*)']);
  expect(permissionsOf(web)).toEqual(['plan', 'Bash(npm test:*)', 'Edit']);
  expect(definitions(group).map(({ timeoutMs }) => timeoutMs)).toEqual([300_000, 3_600_000]);
  await nightUser.ok(
    'group',
    'edit',
    group,
    '--permission-mode',
    'acceptEdits',
    '--no-timeout',
    '--allowed-tools',
    'WebSearch',
  );
  nightUser.note('docs', await nightUser.add(group, 'docs'));
  const docs = await nightUser.begun(group, 'docs');
  expect(permissionsOf(docs)).toEqual(['acceptEdits', 'WebSearch']);
  expect(definitions(group).map(({ timeoutMs }) => timeoutMs)).toEqual([undefined, 3_600_000, undefined]);
  await Promise.all([api, web, docs].map((fake) => fake.succeed()));
  expect((await run.finished).code).toBe(0);
  const copy = await nightUser.ok('group', 'copy', group);
  await nightUser.ok('group', 'edit', copy, '--permission-mode', 'dontAsk', '--no-allowed-tools');
  await nightUser.ok('session', 'edit', `${copy}/web`, '--no-permission-mode', '--timeout', '2h');
  expect(definitions(copy).map(({ permissionMode, allowedTools }) => [permissionMode, allowedTools])).toEqual([
    ['dontAsk', undefined],
    ['dontAsk', ['Edit']],
    ['dontAsk', undefined],
  ]);
  expect(await nightUser.ok('session', 'show', `${copy}/web`)).toContain('Permissions: dontAsk, Edit');
}, 60_000);

test('a workflow sets permissions of its group, and later edits of its file keep them', async () => {
  mkdirSync(nightUser.project('api'), { recursive: true });
  const file = join(nightUser.folder, 'auth.yaml');
  writeFileSync(
    file,
    `version: 1
group: { allowedTools: "Bash(npm test:*)", permissionMode: dontAsk, timeout: 5m, untrusted: true, requires: [gpu] }
sessions:
  api: { project: projects/api, prompt: "Do it.", allowedTools: [Edit] }
  web: { project: projects/api, prompt: "Do it.", permissionMode: plan, untrusted: false, timeout: 1h, requires: [big] }
`,
  );
  const group = await nightUser.ok('group', 'create', 'auth', '--from', file);
  const seen = () =>
    definitions(group).map(({ allowedTools, permissionMode, timeoutMs, untrusted, requires }) => [
      allowedTools?.join(' '),
      permissionMode,
      timeoutMs,
      untrusted,
      requires?.join(' '),
    ]);
  expect(seen()).toEqual([
    ['Bash(npm test:*) Edit', 'dontAsk', 300_000, true, 'gpu'],
    ['Bash(npm test:*)', 'plan', 3_600_000, false, 'gpu big'],
  ]);
  expect(await nightUser.ok('group', 'edit', group, '--file', file)).toBe(`${group} already has these settings.`);
  await nightUser.ok('group', 'edit', group, '--timeout', '10m', '--no-untrusted');
  expect(seen()).toEqual([
    ['Bash(npm test:*) Edit', 'dontAsk', 600_000, false, 'gpu'],
    ['Bash(npm test:*)', 'plan', 3_600_000, false, 'gpu big'],
  ]);
}, 60_000);

test('group allow adds rules for denied calls to all sessions and retries the failed ones', async () => {
  const group = await nightUser.group('auth', { api: ['--allowed-tools', 'Edit'], web: [] }, '--no-warm-cache');
  const run = nightUser.start('group', 'run', group, '--output', 'text');
  const [api, web] = await Promise.all([nightUser.begun(group, 'api'), nightUser.begun(group, 'web')]);
  await Promise.all([deny(api, 'npm test'), deny(web, 'make all')]);
  const { code, stdout } = await run.finished;
  expect(code).not.toBe(0);
  const [events = ''] = stdout.split('\n\n');
  // Once when it happened, and not again as a warning.
  expect(events.match(/call was denied: Bash npm test/g)).toHaveLength(1);
  expect(await nightUser.ok('group', 'allow', group)).toBe(
    [
      'denied to 001 api: Bash npm test',
      '   1 Bash(npm test:*)',
      'denied to 002 web: Bash make all',
      '   2 Bash(make all:*)',
      `Allow all of these and resume: claude-code-agent group allow ${group} --denied --retry`,
    ].join('\n'),
  );
  const again = nightUser.start('group', 'allow', group, '--denied', '--retry');
  const fakes = await Promise.all([nightUser.begun(group, 'api'), nightUser.begun(group, 'web')]);
  const rules = ['acceptEdits', 'Bash(npm test:*)', 'Bash(make all:*)'];
  expect(fakes.map(permissionsOf)).toEqual([[...rules, 'Edit'], rules]);
  await Promise.all(fakes.map((fake) => fake.succeed()));
  const retried = await again.finished;
  expect(retried).toMatchObject({ code: 0 });
  // Denials of an earlier attempt do not count.
  for (const text of [retried.stdout, await nightUser.ok('group', 'show', group)]) expect(text).not.toContain('denied');
  expect((await nightUser.run('group', 'allow', group, 'nonsense((')).code).toBe(2);
}, 60_000);

test('after a denial every command suggests the command that allows the call, and it works', async () => {
  const sessions = { api: [], web: ['--depends-on', 'api'], docs: [] };
  const group = await nightUser.group('auth', sessions, '--no-warm-cache');
  const run = nightUser.start('group', 'run', group, '--output', 'quiet');
  const [api, docs] = await Promise.all([nightUser.begun(group, 'api'), nightUser.begun(group, 'docs')]);
  const done = { type: 'tool_use', id: 'ls', name: 'Bash', input: { command: 'ls' } };
  await docs.print({ type: 'assistant', message: { id: 'n', role: 'assistant', content: [done] } });
  await docs.print({ type: 'user', message: { content: [{ type: 'tool_result', tool_use_id: 'ls', content: 'a' }] } });
  await deny(docs, 'make docs');
  await deny(api, 'npm test');
  await run.finished;
  const allow = `session allow ${group}/api --denied && claude-code-agent group run ${group} --retry-failed`;
  const next = `Allow the denied calls, then retry: claude-code-agent ${allow}`;
  for (const [command, words] of [
    [['group', 'show'], next],
    [['merge'], `Give --partial to merge the completed sessions. ${next}`],
    [['pr'], `Give --partial to merge the completed sessions. ${next}`],
    [['session', 'diff', 'auth/web'], next],
    [['session', 'show', 'auth/docs'], `Bash make docs. Allow it, or see other ways, with: `],
    [['session', 'show', 'auth/docs'], `with: claude-code-agent session allow ${group}/docs\n`],
  ] as const) {
    const { stdout, stderr } = await nightUser.run(...command);
    expect({ command, text: `${stdout}${stderr}` }).toEqual({ command, text: expect.stringContaining(words) });
  }
  await nightUser.ok('session', 'allow', `${group}/api`, '--denied');
  const again = nightUser.start('group', 'run', group, '--retry-failed', '--output', 'quiet');
  for (const name of ['api', 'web']) await (await nightUser.begun(group, name)).succeed();
  expect((await again.finished).code).toBe(0);
}, 60_000);

test('a call denied in spite of its rule or by a hook is not offered again, and the remedy is shown', async () => {
  const sessions = { api: ['--allowed-tools', 'Bash(sed -n 1p)'], web: [] };
  const group = await nightUser.group('auth', sessions, '--no-warm-cache');
  const run = nightUser.start('group', 'run', group, '--output', 'quiet');
  const [api, web] = await Promise.all([nightUser.begun(group, 'api'), nightUser.begun(group, 'web')]);
  await Promise.all([deny(api, 'sed -n 1p'), deny(web, 'make all', { decision_reason_type: 'hook' })]);
  await run.finished;
  expect(await nightUser.run('session', 'allow', 'auth/api', '--denied', '--retry')).toEqual({
    code: 2,
    stdout: '',
    stderr: expect.stringContaining('it was denied although Bash(sed -n 1p) was set'),
  });
  const shown = await nightUser.ok('group', 'allow', group);
  expect(shown).toContain(`session edit ${group}/api --permission-mode bypassPermissions`);
  expect(shown).toContain('no rule helps: a hook denied it');
  expect(shown).not.toContain('--denied');
  await nightUser.ok('session', 'edit', 'auth/api', '--permission-mode', 'bypassPermissions');
  expect(await nightUser.ok('session', 'allow', 'auth/api')).not.toContain('--permission-mode');
}, 60_000);
