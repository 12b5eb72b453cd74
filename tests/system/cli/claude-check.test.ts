/**
 * Promises: a failed required check refuses a run with exit code 2 before anything starts, unless exactly that version
 * is accepted. Any other failure is a warning. `doctor` shows the results.
 */
import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { broken } from '../../../src/app/claude-check/checks.ts';
import { defaultScript } from '../../../src/rehearsal/script.ts';
import { startScriptedApi } from '../../../src/rehearsal/scripted-api.ts';
import { claudeBinary } from '../../support/claude/rig.ts';
import { breakClaude, removeFolders } from '../../support/claude-check/rig.ts';
import { Night } from '../../support/cli/night.ts';
import { User } from '../../support/cli/user.ts';
import { obeyInterrupt, rig, withRig } from '../../support/rig-ground.ts';
import { noteTried } from '../../support/tried.ts';

let user: Night;
withRig();
beforeEach(() => {
  user = new Night(rig);
});
afterEach(() => {
  user.remove();
  removeFolders();
});

const forbidden = broken('deny', 'a forbidden command ran');
const silent = broken('hooks', 'no text');

test('a claude that breaks a required promise starts nothing, and the message names the next step', async () => {
  noteTried(user.data, rig.program, forbidden, silent);
  const group = await user.group('one', { a: [] });
  const refused = await user.run('group', 'run', group, '--output', 'json');
  expect(refused).toMatchObject({ code: 2, stdout: '' });
  expect(refused.stderr).toContain('A session can do what its rules forbid (a forbidden command ran).');
  expect(refused.stderr).toContain('--accept-claude 2.1.332');
  expect(await user.json('group', 'show', group)).toMatchObject({ status: 'created' });
  expect((await user.run('group', 'run', group, '--accept-claude', '2.1.333')).code).toBe(2);
  expect(rig.invocations).toEqual([]);

  const workflow = join(user.folder, 'w.yaml');
  writeFileSync(workflow, 'version: 1\ntitle: W\nsessions: { a: { project: ., prompt: Do it. } }\n');
  const before = await user.json<{ groups: unknown[] }>('group', 'list');
  expect((await user.run('run', workflow)).code).toBe(2);
  expect(await user.json<{ groups: unknown[] }>('group', 'list')).toEqual(before);
  expect((await user.run('group', 'run', group, '--detach')).code).toBe(2);
});

test('exactly that version can be accepted, which is remembered, and the failure is still reported', async () => {
  noteTried(user.data, rig.program, forbidden, silent);
  const group = await user.group('one', { a: [], b: ['--depends-on', 'a'] });
  const run = user.start('group', 'run', group, '--output', 'json', '--accept-claude', '2.1.332');
  const fake = await user.begun(group, 'a');
  await fake.succeed();
  const second = await user.begun(group, 'b');
  run.kill('SIGINT');
  await obeyInterrupt(second, 0.01);
  const { code, stdout, stderr } = await run.finished;
  expect(code).toBe(3);
  for (const line of stdout.trim().split('\n')) expect(() => JSON.parse(line)).not.toThrow();
  expect(stderr).toContain('A session can do what its rules forbid');
  expect(stderr).toContain('Sessions work without their saved state and rules (no text).');
  expect(await user.ok('group', 'show', group)).toContain('accepts claude 2.1.332 even if its check fails');
  const next = user.start('group', 'run', group, '--output', 'quiet');
  await (await user.begun(group, 'b')).succeed();
  expect(await next.finished).toMatchObject({ code: 0, stderr: '' });
});

test('a failed optional check is a warning, and the run continues', async () => {
  noteTried(user.data, rig.program, silent);
  const group = await user.group('one', { a: [] });
  const run = user.start('group', 'run', group, '--output', 'text');
  await (await user.begun(group, 'a')).succeed();
  const { code, stderr } = await run.finished;
  expect(code).toBe(0);
  expect(stderr).toContain('claude 2.1.332: Sessions work without their saved state and rules (no text).');
});

test('a claude replaced during a run is checked before the next session, and a failure pauses the group', async () => {
  const program = join(user.folder, 'claude');
  const install = (version: string): void => {
    const text = readFileSync(rig.program, 'utf8').replace('2.1.332', version);
    writeFileSync(`${program}.new`, text, { mode: 0o755 });
    renameSync(`${program}.new`, program);
  };
  install('2.1.332');
  user.env.CLAUDE_CODE_AGENT_CLAUDE = program;
  noteTried(user.data, program);
  const group = await user.group('one', { a: [], b: ['--depends-on', 'a'] });
  const run = user.start('group', 'run', group, '--output', 'text');
  const first = await user.begun(group, 'a');
  install('2.1.333');
  await first.succeed();
  const { code, stdout, stderr } = await run.finished;
  expect({ code, stderr }).toEqual({ code: 3, stderr: expect.stringContaining('claude 2.1.333 is new here') });
  expect(stderr).not.toContain('replaced');
  const told = stdout.split('\n').filter((line) => line.includes('2.1.332, which this run used, was replaced or'));
  // At the end, with the next step.
  expect(stdout).toContain('failed (claude-unproven)');
  expect(told).toEqual([expect.stringContaining('--accept-claude 2.1.333')]);
  const shown = await user.ok('group', 'show', group);
  // As typed it is refused until another claude is installed.
  for (const text of [stdout, shown])
    expect(text).toMatch(/Install another version of claude, then continue with: .* group resume/);
  expect(shown.split('which this run used, was replaced or removed.')).toHaveLength(2);
  const { sessions } = await user.json<{ sessions: { reason?: string; status: string }[] }>('group', 'show', group);
  expect(sessions.map(({ status, reason }) => [status, reason])).toEqual([
    ['completed', undefined],
    ['failed', 'claude-unproven'],
  ]);
  expect((await user.run('group', 'resume', group)).code).toBe(2);

  const next = user.start('group', 'resume', group, '--output', 'quiet', '--accept-claude', '2.1.333');
  await (await user.begun(group, 'b')).succeed();
  expect((await next.finished).code).toBe(0);
});

test('doctor shows remembered results and unchecked versions', async () => {
  const check = async () => {
    const { stdout } = await user.run('doctor', '--json');
    const { checks } = JSON.parse(stdout) as { checks: { check: string; level: string; message: string }[] };
    return checks.find((one) => one.check === 'compat');
  };
  expect(await check()).toMatchObject({ level: 'ok', message: expect.stringContaining('8 of 8 checks passed') });
  noteTried(user.data, rig.program, silent);
  expect(await check()).toMatchObject({ level: 'warning', message: expect.stringContaining('hooks is broken') });
  noteTried(user.data, rig.program, forbidden);
  expect(await check()).toMatchObject({ level: 'broken', message: expect.stringContaining('deny is broken') });
  writeFileSync(join(user.data, 'tried-claudes.json'), '');
  expect(await check()).toMatchObject({ level: 'ok', message: expect.stringContaining('not checked yet') });
  expect(await user.run('doctor', '--claude', '--worktrees')).toMatchObject({ code: 2 });
});

describe('the real claude', () => {
  test.if(claudeBinary !== undefined)(
    'a broken promise is caught before a prompt is sent',
    async () => {
      const api = startScriptedApi({ script: defaultScript, nameOf: () => undefined });
      const env = { ANTHROPIC_BASE_URL: api.url, ANTHROPIC_API_KEY: 'test-key', IS_SANDBOX: '1' };
      const real = new User(env);
      try {
        const program = breakClaude('ignores deny rules', real.folder);
        real.env.CLAUDE_CODE_AGENT_CLAUDE = program;
        const group = await real.ok('group', 'create', 'one');
        await real.add(group, 'a');
        const refused = await real.run('group', 'run', group, '--output', 'text');
        expect(refused.code).toBe(2);
        expect(refused.stderr).toContain('claude 9.9.9 is new here: checking it at no cost (a few seconds) ...');
        expect(refused.stderr).toContain('A session can do what its rules forbid');
        expect(api.requests).toEqual([]);

        const table = await real.run('doctor', '--claude', '--json');
        expect(table.code).toBe(1);
        const { checks } = JSON.parse(table.stdout) as { checks: object[] };
        expect(checks).toContainEqual(expect.objectContaining({ id: 'deny', verdict: 'broken', isRequired: true }));
        expect((await real.run('doctor', '--claude')).stdout).toContain('A session can do what its rules forbid');

        const known = readFileSync(join(real.data, 'tried-claudes.json'), 'utf8');
        const run = await real.run('group', 'run', group, '--accept-claude', '9.9.9', '--output', 'text');
        expect(run.code).toBe(0);
        expect(run.stderr).not.toContain('is new here');
        expect(readFileSync(join(real.data, 'tried-claudes.json'), 'utf8')).toBe(known);
        expect(api.requests.length).toBe(2);
      } finally {
        await api.stop();
        real.remove();
      }
    },
    180_000,
  );
});
