/**
 * Promises: no work of a session is lost because of its name. What the repository tracks, and resume files that this
 * program did not put into the worktree, are committed like any other file, and the worktree stays while they are not.
 */
import { afterEach, beforeEach, expect, test } from 'bun:test';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { MergeUser } from '../../support/cli/merge-ground.ts';
import { git } from '../../support/git/repository.ts';

let user: MergeUser;
beforeEach(() => {
  user = new MergeUser();
});
afterEach(() => user.remove());

const tracked = ['.cpm-progress-a.md', '.fractary/runs/notes.json'];
const fresh = ['docs/resume-context.md', 'src/.cpm-progress-bar.css'];
const planned = '02-projects/x/01-planning/resume-context.md';

async function run(slug: string, files: readonly string[], options: readonly string[], rc = 0): Promise<string> {
  const folders = [...new Set(files.map((file) => `"$(dirname ${file})"`))].join(' ');
  const command = `mkdir -p ${folders}; for f in ${files.join(' ')}; do echo new >$f; done; git add ${files.at(-1)}`;
  const steps = [{ tool: 'Bash', input: { command } }, { text: 'Done.' }];
  const script = join(user.folder, 'script.json');
  writeFileSync(script, JSON.stringify({ version: 1, sessions: { '*': { steps } } }));
  const group = await user.ok('group', 'create', slug);
  const session = ['--name', 'a', '--prompt', 'hi', '--isolate', 'worktree', '--allowed-tools', 'Bash', ...options];
  await user.ok('session', 'add', group, '--project', user.folderOf('shop'), ...session);
  expect((await user.run('group', 'run', group, '--rehearse', script)).code).toBe(rc);
  return group;
}

const committed = (slug: string) =>
  git(user.folderOf('shop'), 'diff', '--name-only', 'main', `cca/${slug}/001-a`).split('\n').sort();

test('files that bear a name of ours are committed and merged, also without the systems that use it', async () => {
  user.repository('shop').commit(Object.fromEntries(tracked.map((name) => [name, 'old\n'])));
  await run('with', [...tracked, ...fresh], []);
  expect(committed('with')).toEqual([...tracked, ...fresh].sort());
  await run('without', [...tracked, planned], ['--context', 'none']);
  expect(committed('without')).toEqual([...tracked, planned].sort());
  const merged = await user.run('group', 'merge', 'without', '--yes');
  expect(merged.code).toBe(0);
  expect(git(user.folderOf('shop'), 'show', `main:${planned}`)).toBe('new');
}, 120_000);

test('while they are in no commit, the worktree stays and they are named', async () => {
  const group = await run('left', [planned], ['--context', 'none', '--no-commit']);
  const deleted = await user.run('group', 'delete', group, '--yes');
  expect(deleted.stderr + deleted.stdout).toContain(planned);
  expect(existsSync(join(user.data, 'session-groups', group))).toBe(true);
}, 120_000);
