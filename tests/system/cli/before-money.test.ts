/**
 * Promises: an outdated claude, limits that cannot be set, a refused project and a missing version are reported before
 * a run starts, and by `group plan` and `--dry-run`, once and not per session.
 */
import { expect, test } from 'bun:test';
import { existsSync, mkdirSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { broken } from '../../../src/app/claude-check/checks.ts';
import { createRealWorld } from '../../../src/system/real-world.ts';
import { nightUser, withNight } from '../../support/cli/night.ts';
import { Repository } from '../../support/git/repository.ts';
import { rig } from '../../support/rig-ground.ts';
import { noteTried } from '../../support/tried.ts';

withNight();

interface Plan {
  readonly missing: { readonly sessionId?: string; readonly message: string; readonly next: string }[];
}

/** A workflow of two sessions, the second with these additional keys; returns its path. */
function workflow(session: string): string {
  const file = join(nightUser.folder, 'change.yaml');
  const task = `project: "${nightUser.project('api')}", prompt: Do it.`;
  writeFileSync(file, `version: 1\ntitle: W\nsessions: { a: { ${task} }, b: { ${task}, ${session} } }\n`);
  return file;
}

test('an outdated claude is refused before anything is created, even for a rehearsal', async () => {
  const program = join(nightUser.folder, 'old-claude');
  writeFileSync(program, "#!/bin/sh\necho '2.1.307 (Claude Code)'\n", { mode: 0o755 });
  nightUser.env.CLAUDE_CODE_AGENT_CLAUDE = program;
  const why = 'claude 2.1.307 is too old; this program needs 2.1.308 or newer.';
  const cure = 'Update it with: npm install -g @anthropic-ai/claude-code@latest';
  const file = workflow('untrusted: true');
  for (const more of [[], ['--detach'], ['--rehearse'], ['--accept-claude', '2.1.307']]) {
    const refused = await nightUser.run('run', file, '--output', 'text', ...more);
    expect({ code: refused.code, stdout: refused.stdout }).toEqual({ code: 2, stdout: '' });
    expect(refused.stderr).toContain(why);
    expect(refused.stderr).toContain(cure);
  }
  expect(await nightUser.json<unknown[]>('group', 'list')).toEqual([]);
  const dry = JSON.parse((await nightUser.run('run', file, '--dry-run', '--output', 'json')).stdout) as Plan;
  expect(dry.missing).toContainEqual({ message: why, next: cure });
  const { checks } = JSON.parse((await nightUser.run('doctor', '--json')).stdout) as { checks: object[] };
  expect(checks).toContainEqual(expect.objectContaining({ check: 'claude', level: 'broken', message: why }));
});

const canLimit = createRealWorld().processes.limits().has('processes');
if (canLimit) console.log('Skipped, because processes can be limited here: the refusal of --max-processes.');

test.skipIf(canLimit)('a process limit that cannot be set here is refused, even for a rehearsal', async () => {
  const why = '--max-processes cannot be enforced on this machine.';
  const next = 'systemd-run --user --scope -p Delegate=yes claude-code-agent';
  const file = workflow('maxProcesses: 100');
  const before = rig.invocations.length;
  for (const more of [[], ['--detach'], ['--rehearse'], ['--rehearse', '--detach']]) {
    const refused = await nightUser.run('run', file, '--output', 'text', ...more);
    expect({ code: refused.code, stdout: refused.stdout }).toEqual({ code: 2, stdout: '' });
    expect(refused.stderr).toContain(`Session b: ${why}`);
    expect(refused.stderr).toContain(next);
  }
  expect(await nightUser.json<unknown[]>('group', 'list')).toEqual([]);

  const group = await nightUser.group('one', {
    first: [],
    second: ['--depends-on', 'first', '--max-processes', '100'],
  });
  for (const [command = '', ...more] of [['run'], ['run', '--detach'], ['resume'], ['run', '--rehearse']]) {
    const refused = await nightUser.run('group', command, group, ...more, '--output', 'text');
    expect({ code: refused.code, stdout: refused.stdout }).toEqual({ code: 2, stdout: '' });
    expect(refused.stderr).toContain(why);
  }
  expect(await nightUser.json('group', 'show', group)).toMatchObject({ status: 'created' });
  for (const [command = '', ...more] of [['plan'], ['run', '--dry-run'], ['run', '--dry-run', '--rehearse']]) {
    const plan = await nightUser.run('group', command, group, ...more);
    expect(plan.code).toBe(1);
    expect(plan.stdout).toContain(`002 second: ${why}`);
  }
  expect(rig.invocations.length).toBe(before);
});

/** All system programs except git; returns the folder. */
function folderWithoutGit(): string {
  const folder = join(nightUser.folder, 'without git');
  mkdirSync(folder);
  for (const from of ['/bin', '/usr/bin', '/usr/local/bin']) {
    for (const name of existsSync(from) ? readdirSync(from) : []) {
      if (!name.startsWith('git') && !existsSync(join(folder, name))) symlinkSync(join(from, name), join(folder, name));
    }
  }
  symlinkSync(process.execPath, join(folder, 'bun'), 'file');
  return folder;
}

test('without git, a session that needs a worktree is refused before anything is created', async () => {
  const why = 'gets a git worktree: The program git was not found.';
  const next = 'Install git, or work in the folder itself with --isolate none.';
  for (const name of ['api', 'second']) new Repository(nightUser.project(name)).commit({ 'README.md': name });
  const group = await nightUser.group('one', { first: [], second: ['--isolate', 'worktree'] });
  nightUser.env.PATH = folderWithoutGit();
  const file = workflow('isolate: worktree');
  const before = rig.invocations.length;
  for (const more of [[], ['--detach'], ['--rehearse'], ['--rehearse', '--detach']]) {
    const refused = await nightUser.run('run', file, '--output', 'text', ...more);
    expect({ code: refused.code, stdout: refused.stdout }).toEqual({ code: 2, stdout: '' });
    expect(refused.stderr).toContain(`Session a ${why} ${next}`);
  }
  expect(await nightUser.json<unknown[]>('group', 'list')).toHaveLength(1);
  for (const [command = '', ...more] of [['run'], ['run', '--detach'], ['resume'], ['run', '--rehearse']]) {
    const refused = await nightUser.run('group', command, group, ...more, '--output', 'text');
    expect({ code: refused.code, stdout: refused.stdout }).toEqual({ code: 2, stdout: '' });
    expect(refused.stderr).toContain(why);
  }
  expect(await nightUser.json('group', 'show', group)).toMatchObject({ status: 'created' });
  for (const more of [
    ['group', 'plan', group],
    ['group', 'run', group, '--dry-run'],
    ['run', file, '--dry-run'],
  ]) {
    const plan = await nightUser.run(...more);
    expect([plan.code, plan.stdout]).toEqual([1, expect.stringContaining(why)]);
  }
  expect(rig.invocations.length).toBe(before);
  // A session that works in the folder itself needs no git.
  const plain = await nightUser.group('plain', { api: ['--isolate', 'none'] });
  const run = nightUser.start('group', 'run', plain);
  await (await nightUser.begun(plain, 'api')).succeed();
  expect((await run.finished).code).toBe(0);
});

test('a plan also reports a claude that breaks a required promise', async () => {
  noteTried(nightUser.data, rig.program, broken('deny', 'a forbidden command ran'));
  const group = await nightUser.group('one', { a: [] });
  const plan = await nightUser.run('group', 'plan', group);
  expect(plan.code).toBe(1);
  expect(plan.stdout).toContain('A session can do what its rules forbid (a forbidden command ran).');
  expect((await nightUser.run('group', 'run', group, '--dry-run', '--accept-claude', '2.1.332')).code).toBe(0);
});
