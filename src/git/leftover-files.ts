/** Files that a user's command leaves in a worktree, such as test reports; they are not the session's work. */
import { join } from 'node:path';
import { fail, ok, type Result } from '../core/failure.ts';
import type { Git } from './git.ts';
import { findRepository } from './git.ts';
import { askOwn, commitOf, longTimeoutMs, runOwn, together } from './run-git.ts';
import { exceptOurs, isOurFile } from './stage.ts';

/** Files and links that git neither tracks nor ignores, by paths from `folder`, the top of the worktree. */
export async function untrackedFiles(git: Git, folder: string): Promise<Result<readonly string[]>> {
  const { files } = git.world;
  // Without its own link to git, which a command may have removed, another repository further up would answer.
  if (findRepository(files, folder)?.top !== folder || files.entryKind(join(folder, '.git')) !== 'file') {
    const next = 'Try git worktree repair there, then retry the session.';
    return fail('worktree-failed', `${folder} is no worktree of its repository any more.`, next);
  }
  const args = ['ls-files', '-z', '--others', '--exclude-standard', '--full-name'];
  const listed = await runOwn(git, folder, args, { timeoutMs: longTimeoutMs });
  if (!listed.ok) return listed;
  const names = listed.value.split('\0').filter((name) => name !== '' && !name.endsWith('/'));
  return ok(names.filter((name) => !isOurFile(name)));
}

/**
 * Removes what is among `untrackedFiles` now and is not in `before`: regular files, and links themselves, never what
 * they lead to. Folders stay, and so does whatever git tracks or ignores. Fails with `worktree-failed`; then some of
 * it may be left, and a further call removes it.
 */
export async function clearNewFiles(git: Git, folder: string, before: readonly string[]): Promise<Result<void>> {
  const now = await untrackedFiles(git, folder);
  if (!now.ok) return now;
  const old = new Set(before);
  const added = now.value.filter((name) => !old.has(name));
  if (added.length === 0) return ok(undefined);
  const committed = await runOwn(git, folder, ['ls-tree', '-r', '-z', '--name-only', 'HEAD']);
  if (!committed.ok) return committed;
  // A command that empties the index makes them look new.
  const kept = new Set(committed.value.split('\0'));
  const { files } = git.world;
  for (const name of added) {
    const path = join(folder, name);
    const kind = files.entryKind(path);
    if (kept.has(name) || (kind !== 'file' && kind !== 'link') || !leadsThroughFolders(git, folder, name)) continue;
    try {
      files.remove(path);
    } catch (error) {
      const { code } = error as { readonly code?: unknown };
      if (typeof code !== 'string') throw error;
      const message = `The file ${path}, which a command left behind, cannot be removed: ${code}.`;
      return fail('worktree-failed', message, 'Remove it, then retry the session.');
    }
  }
  return ok(undefined);
}

/** Git does not look behind links; this holds also when one took a folder's place since. */
function leadsThroughFolders({ world: { files } }: Git, folder: string, name: string): boolean {
  const folders = name.split('/').slice(0, -1);
  return folders.every((_, index) => files.entryKind(join(folder, ...folders.slice(0, index + 1))) === 'folder');
}

/** Tracked files that differ from the last commit, by paths from the top. Fails with `worktree-failed`. */
export async function changedTracked(git: Git, folder: string): Promise<Result<readonly string[]>> {
  const args = ['status', '--porcelain', '-z', '--untracked-files=no', '--no-renames', '--ignore-submodules=dirty'];
  const status = await runOwn(git, folder, args, { timeoutMs: longTimeoutMs });
  if (!status.ok) return status;
  const names = status.value.split('\0').flatMap((line) => (line === '' ? [] : [line.slice(3)]));
  return ok(names.filter((name) => !isOurFile(name)));
}

const pathsAtOnce = 200;

/** A hash of HEAD, the changes to tracked files and the new files below `folder`, without our own files. */
export async function fingerprint(git: Git, folder: string): Promise<Result<string>> {
  const long = { timeoutMs: longTimeoutMs };
  const head = await askOwn(git, folder, ['rev-parse', '--verify', '--quiet', 'HEAD']);
  if (!head.ok) return head;
  // A repository without a commit has no HEAD; its files still count.
  const hasHead = head.value.exitCode === 0;
  const against = hasHead ? 'HEAD' : '--cached';
  const plain = ['--binary', '--no-ext-diff', '--no-textconv', '--no-renames'];
  const changed = await runOwn(git, folder, ['diff', ...plain, against, '--', '.', ...exceptOurs], long);
  if (!changed.ok) return changed;
  const others = ['ls-files', '-z', '--others', '--exclude-standard', '--', '.', ...exceptOurs];
  const added = await runOwn(git, folder, others, long);
  if (!added.ok) return added;
  const hash = new Bun.CryptoHasher('sha256').update(head.value.stdout).update(changed.value).update(added.value);
  const paths = added.value.split('\0').filter((path) => path !== '');
  for (let first = 0; first < paths.length; first += pathsAtOnce) {
    const some = paths.slice(first, first + pathsAtOnce);
    const content = await askOwn(git, folder, ['hash-object', '--no-filters', '--', ...some], long);
    if (!content.ok) return content;
    // What vanished meanwhile, or is no file, is refused with its name: that is as good as its content.
    hash.update(content.value.stdout).update(content.value.stderr);
  }
  return ok(hash.digest('hex'));
}

/** A commit that holds the tracked files as they are, and the names of the new ones; null without a commit. */
export async function stateNow(git: Git, folder: string): Promise<Result<readonly [string, ...string[]] | null>> {
  const head = await commitOf(git, folder, 'HEAD');
  if (!head.ok || head.value === null) return head.ok ? ok(null) : head;
  // On no branch and no stash. In the middle of a merge there is none, and HEAD has to do.
  const stash = await askOwn(git, folder, ['stash', 'create'], { timeoutMs: longTimeoutMs });
  const commit = stash.ok && stash.value.exitCode === 0 ? stash.value.stdout.trim() : '';
  const others = ['ls-files', '-z', '--others', '--exclude-standard', '--full-name', '--', '.', ...exceptOurs];
  const added = await runOwn(git, folder, others, { timeoutMs: longTimeoutMs });
  if (!added.ok) return added;
  return ok([commit === '' ? head.value : commit, ...added.value.split('\0').filter((name) => name !== '')]);
}

const timeoutMs = 10_000;

/** Git and tools do not wait for the disk. Without `sync` the system writes some seconds later. */
export const syncDisks = together(
  async ({ world, env }, repository, paths: readonly string[]): Promise<undefined[]> => {
    await world.processes.run({
      program: 'sync',
      args: ['-f', repository, ...paths],
      cwd: repository,
      env: { PATH: env.PATH ?? '', LC_ALL: 'C' },
      timeoutMs,
    });
    return paths.map(() => undefined);
  },
);
