/**
 * Promises: what would keep a session from starting is reported when it is added and by the plan, and a run refuses it
 * before it starts anything: a repository without a commit, without files, owned by another user, or with a branch in
 * the way of ours. A permission mode that claude refuses to root, and commands with a missing program, are reported
 * too.
 */
import { expect, test } from 'bun:test';
import { user, withUser } from '../../support/cli/user.ts';
import { git as gitIn } from '../../support/git/repository.ts';

withUser();

test('session add and group plan report what keeps a session from starting', async () => {
  const [fresh, bare, taken, foreign] = ['fresh', 'bare', 'taken', 'foreign'].map((name) => user.project(name));
  const git = (folder: string | undefined, ...args: string[]) => gitIn(folder ?? '', ...args);
  git(fresh, 'init', '--quiet');
  git(bare, 'init', '--quiet', '--bare');
  for (const folder of [taken, foreign]) {
    git(folder, 'init', '--quiet');
    git(folder, 'commit', '--quiet', '--allow-empty', '-m', 'first');
  }
  git(taken, 'branch', 'cca');
  if (process.getuid?.() === 0) Bun.spawnSync(['chown', '-R', '4711', foreign ?? '']);
  const group = await user.ok('group', 'create', 'auth', '--retries', '0');
  const said: Record<string, RegExp> = {
    fresh: /has no commit yet\. Make a first commit/,
    bare: /bare is a bare repository without files to work on/,
    taken: /taken has a branch "cca", .*git branch -m cca NAME/,
    ...(process.getuid?.() === 0 ? { foreign: /foreign/ } : {}),
  };
  for (const [name, words] of Object.entries(said)) {
    const given = ['--project', user.project(name), '--prompt', 'Do it.', '--name', name, '--isolate', 'worktree'];
    const { code, stderr } = await user.run('session', 'add', group, ...given);
    expect({ name, code, stderr }).toEqual({ name, code: 0, stderr: expect.stringMatching(words) });
    expect(stderr).toStartWith('It cannot start yet: ');
  }
  const inPlace = ['--project', fresh ?? '', '--prompt', 'Do it.', '--name', 'place', '--isolate', 'none'];
  expect(await user.run('session', 'add', group, ...inPlace)).toMatchObject({ code: 0, stderr: '' });
  const { code, stdout } = await user.run('group', 'plan', group);
  expect(code).toBe(1);
  for (const words of Object.values(said)) expect(stdout).toMatch(words);
  for (const more of [[], ['--rehearse'], ['--detach']]) {
    const run = await user.run('group', 'run', group, '--output', 'text', ...more);
    expect(run).toMatchObject({ code: 2, stderr: expect.stringMatching(said.fresh as RegExp) });
  }
  expect(await user.json('group', 'show', group)).toMatchObject({ status: 'created' });
}, 60_000);

test('plan and run name a setup or acceptance program that is not on PATH', async () => {
  const project = user.project('api');
  gitIn(project, 'init', '--quiet');
  const group = await user.ok('group', 'create', 'auth');
  const commands: Record<string, readonly string[]> = {
    setup: ['--setup', 'CI=1 no-such-setup ci', '--accept', 'what-setup-brings'],
    accept: ['--accept', 'no-such-accept', '--isolate', 'none'],
    there: ['--setup', 'cd . && nothing', '--accept', 'sh check.sh'],
    script: ['--accept', './no-such-script', '--isolate', 'none'],
  };
  for (const [name, more] of Object.entries(commands)) {
    await user.ok('session', 'add', group, '--project', project, '--prompt', 'x', '--name', name, ...more);
  }
  const setup = 'The program no-such-setup of its setup command is not on PATH. Install it, or correct PATH.';
  const accept = 'The program no-such-accept of its accept command is not on PATH. Install it, or correct PATH.';
  const { code, stdout } = await user.run('group', 'plan', group);
  expect(code).toBe(1);
  expect(stdout.match(/^.*not on PATH.*$/gm)).toEqual([`  001 setup: ${setup}`, `  002 accept: ${accept}`]);
  const { stderr } = await user.run('group', 'run', group, '--output', 'text');
  expect(stderr).toContain(`Session setup will fail: ${setup}\nSession accept will fail: ${accept}\n`);
  expect(stderr).not.toContain('what-setup-brings');
}, 60_000);

test.if(process.getuid?.() === 0)(
  'a permission mode that claude refuses to root is reported, unless in a sandbox',
  async () => {
    const group = await user.ok('group', 'create', 'auth', '--permission-mode', 'bypassPermissions');
    const given = ['session', 'add', group, '--project', user.project('api'), '--prompt', 'Do it.'];
    const refused = await user.runWith({ env: { IS_SANDBOX: '' } }, ...given);
    expect(refused.stderr).toContain('claude refuses the permission mode bypassPermissions for root.');
    expect(await user.runWith({ env: { IS_SANDBOX: '1' } }, ...given)).toMatchObject({ code: 0, stderr: '' });
    const plan = await user.runWith({ env: { IS_SANDBOX: '' } }, 'group', 'plan', group);
    expect(plan.stdout).toContain('set IS_SANDBOX=1');
  },
);
