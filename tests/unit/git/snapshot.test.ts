/**
 * Promises: a work snapshot holds all files of a worktree except ignored ones, and changes nothing there. Restoring
 * one keeps uncommitted changes uncommitted, and is refused if the worktree was changed meanwhile.
 */
import { afterEach, beforeEach, expect, test } from 'bun:test';
import { existsSync, mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ok } from '../../../src/core/failure.ts';
import { applySnapshot, type Snapshot, snapshotOf } from '../../../src/git/worktrees/snapshot.ts';
import { createRealWorld } from '../../../src/system/real-world.ts';
import { git, Repository } from '../../support/git/repository.ts';

const own = { world: createRealWorld(), env: { PATH: process.env.PATH, HOME: '/nonexistent' } };
const markRef = 'refs/claude-code-agent/x/applying';
let folder: string;
let project: string;
let path: string;
beforeEach(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), 'cca snapshot ')));
  project = join(folder, 'project');
  path = join(folder, 'worktree');
  new Repository(project).commit({ 'kept.txt': 'kept\n', 'gone.txt': 'gone\n', '.gitignore': 'ignored\n' });
  git(project, 'worktree', 'add', '--quiet', '-b', 'work', path);
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const write = (name: string, text: string) => writeFileSync(join(path, name), text);
const read = (name: string) => (existsSync(join(path, name)) ? readFileSync(join(path, name), 'utf8') : null);

async function taken(): Promise<Snapshot> {
  const made = await snapshotOf(own, path);
  if (!made.ok) throw new Error(made.failure.message);
  return made.value;
}

/** As another host would have left it: a commit, a changed, a new and a removed file. */
async function workElsewhere(what = { commits: true, leaves: true }): Promise<{ known: Snapshot; wanted: Snapshot }> {
  const known = await taken();
  if (what.commits) {
    write('committed.txt', 'committed\n');
    git(path, 'add', 'committed.txt');
    git(path, 'commit', '--quiet', '-m', 'elsewhere');
  }
  if (what.leaves) {
    write('kept.txt', 'changed\n');
    write('new.txt', 'new\n');
    rmSync(join(path, 'gone.txt'));
  }
  const wanted = await taken();
  git(path, 'reset', '--quiet', '--hard', known.head);
  git(path, 'clean', '-fdq');
  return { known, wanted };
}

const marked = () => git(path, 'for-each-ref', '--format=%(objectname)', markRef) || undefined;
const apply = (known: Snapshot, wanted: Snapshot) =>
  applySnapshot(own, {
    workspace: { path, branch: 'work', repository: join(project, '.git') },
    known,
    wanted,
    markRef,
    marked: marked(),
  });

test('the work snapshot of a clean worktree is its commit', async () => {
  const { head, snapshot } = await taken();
  expect(snapshot).toBe(head);
  expect(head).toBe(git(path, 'rev-parse', 'HEAD'));
});

test('a work snapshot holds changed, new and removed files, and leaves index and files alone', async () => {
  write('kept.txt', 'changed\n');
  write('new.txt', 'new\n');
  write('ignored', 'secret\n');
  rmSync(join(path, 'gone.txt'));
  const before = git(path, 'status', '--porcelain');
  const { head, snapshot } = await taken();
  expect(git(path, 'status', '--porcelain')).toBe(before);
  expect(git(path, 'ls-tree', '--name-only', snapshot).split('\n')).toEqual(['.gitignore', 'kept.txt', 'new.txt']);
  expect(git(path, 'rev-parse', `${snapshot}^`)).toBe(head);
});

test('a work snapshot holds ignored files that the session committed or staged', async () => {
  write('new.txt', 'new\n');
  await taken();
  write('ignored', 'built\n');
  git(path, 'add', '--force', 'ignored');
  const files = async () => git(path, 'ls-tree', '--name-only', (await taken()).snapshot).split('\n');
  const all = ['.gitignore', 'gone.txt', 'ignored', 'kept.txt', 'new.txt'];
  expect(await files()).toEqual(all);
  git(path, 'commit', '--quiet', '-m', 'Built');
  expect(await files()).toEqual(all);
  git(path, 'rm', '--quiet', '--cached', 'ignored');
  expect(await files()).toEqual(all.filter((name) => name !== 'ignored'));
});

test('a work snapshot works beside the lock of a killed git, and leaves nothing behind', async () => {
  write('new.txt', 'new\n');
  const own = join(project, '.git', 'worktrees', 'worktree');
  writeFileSync(join(own, 'index.lock'), '');
  const before = readdirSync(own);
  const { snapshot } = await taken();
  expect(git(path, 'ls-tree', '--name-only', snapshot).split('\n')).toContain('new.txt');
  expect(readdirSync(own).toSorted()).toEqual(before.toSorted());
});

test('restoring a work snapshot brings commits, uncommitted changes, and leaves ignored files alone', async () => {
  const { known, wanted } = await workElsewhere();
  write('ignored', 'stays\n');
  expect((await apply(known, wanted)).ok).toBe(true);
  expect(git(path, 'rev-parse', 'work')).toBe(wanted.head);
  expect(git(path, 'diff', '--name-status', 'HEAD').split('\n')).toEqual(['D\tgone.txt', 'M\tkept.txt']);
  expect(git(path, 'ls-files', '--others', '--exclude-standard')).toBe('new.txt');
  expect([read('kept.txt'), read('new.txt'), read('gone.txt'), read('ignored')]).toEqual([
    ...['changed\n', 'new\n', null, 'stays\n'],
  ]);
  // Restoring again changes nothing.
  expect((await apply(known, wanted)).ok).toBe(true);
});

test.each<[string, () => void]>([
  ['a changed file', () => write('kept.txt', 'by a person\n')],
  ['a new file', () => write('mine.txt', 'by a person\n')],
  ['a new commit on the branch', () => git(path, 'commit', '--allow-empty', '--quiet', '-m', 'by a person')],
])('a work snapshot is not restored over changes made by the user: %s', async (_, change) => {
  const { known, wanted } = await workElsewhere();
  change();
  const before = [git(path, 'rev-parse', 'HEAD'), git(path, 'status', '--porcelain'), read('kept.txt')];
  const applied = await apply(known, wanted);
  expect(applied.ok ? '' : applied.failure.message).toContain('was changed here while the session worked');
  expect([git(path, 'rev-parse', 'HEAD'), git(path, 'status', '--porcelain'), read('kept.txt')]).toEqual(before);
});

test('an interrupted restore is completed after a crash, whatever the worktree holds', async () => {
  const { known, wanted } = await workElsewhere();
  git(project, 'update-ref', markRef, wanted.snapshot);
  write('kept.txt', 'half of it\n');
  expect((await apply(known, wanted)).ok).toBe(true);
  expect(read('kept.txt')).toBe('changed\n');
});

test.each([
  [128, 'fatal: unable to write loose object file: No space left on device'],
  [1, 'error: unable to write file: No space left on device'],
])('on a full disk (exit code %i) no work snapshot is created', async (exitCode, stderr) => {
  write('new.txt', 'new\n');
  const { processes } = own.world;
  const run: typeof processes.run = async (options) =>
    options.args.includes('add') ? ok({ exitCode, stdout: '', stderr }) : processes.run(options);
  const world = { ...own.world, processes: Object.assign(Object.create(processes), { run }) };
  expect(await snapshotOf({ ...own, world }, path)).toMatchObject({
    ok: false,
    failure: {
      message: expect.stringContaining('No space left'),
      next: { sentence: 'Free some disk space, then try again.' },
    },
  });
});
