/** Fetches the files of a repository at one commit, without history, submodules or a remaining connection. */
import { defined } from '../core/defined.ts';
import { type Failure, fail, ok, type Result } from '../core/failure.ts';
import { type Git, runGit } from './git.ts';
import type { UrlCredentials } from './source.ts';

/** Enough for a slow connection and a large repository. */
const fetchTimeoutMs = 5 * 60_000;
const localTimeoutMs = 60_000;

export interface CheckoutInput {
  /** URL, or absolute path of a repository on this machine. */
  readonly repository: string;
  /** Branch, tag or full commit id, checked by parseRef; absent = the repository's HEAD. */
  readonly ref?: string;
  readonly login?: UrlCredentials;
  readonly folder: string;
}

export interface CheckedOut {
  readonly commit: string;
}

/**
 * Fills the folder. Fails with git's reason (`not-found`, `timeout`); the folder then contains whatever was fetched.
 */
export async function checkOut(git: Git, input: CheckoutInput): Promise<Result<CheckedOut>> {
  const { repository, ref, login, folder } = input;
  const local = { cwd: folder, timeoutMs: localTimeoutMs };
  // The user's git template folder could contain hooks, so an empty one is used.
  const made = await runGit(git, { ...local, args: ['init', '--quiet', '--template=', '.'] });
  if (!made.ok) return made;
  const fetched = await runGit(git, {
    cwd: folder,
    timeoutMs: fetchTimeoutMs,
    args: ['fetch', '--quiet', '--depth=1', '--no-tags', '--no-recurse-submodules', '--', repository, ref ?? 'HEAD'],
    ...defined({ login }),
  });
  if (!fetched.ok) return withNext(fetched.failure, ref);
  const found = await runGit(git, { ...local, args: ['rev-parse', '--verify', '--quiet', 'FETCH_HEAD^{commit}'] });
  if (!found.ok) return fail('not-found', `${ref ?? 'HEAD'} is not a commit.`, 'Give a branch, a tag or a commit id.');
  const commit = found.value.trim();
  const filled = await runGit(git, { ...local, args: ['checkout', '--quiet', '--force', '--detach', commit, '--'] });
  if (filled.ok) return ok({ commit });
  return withNext(filled.failure, undefined);
}

export interface TreeEntry {
  readonly path: string;
  readonly isLink: boolean;
}

export async function filesAt(git: Git, folder: string, commit: string): Promise<Result<readonly TreeEntry[]>> {
  const args = ['ls-tree', '-r', '-z', '--full-tree', commit];
  const listed = await runGit(git, { cwd: folder, timeoutMs: localTimeoutMs, args });
  if (!listed.ok) return listed;
  const lines = listed.value.split('\0').filter((line) => line !== '');
  return ok(lines.map((line) => ({ path: line.slice(line.indexOf('\t') + 1), isLink: line.startsWith('120000') })));
}

function withNext(failure: Failure, ref: string | undefined): Result<never> {
  if (failure.next.sentence !== '') return { ok: false, failure };
  const which = ref === undefined ? '' : ` and that ${ref} is a branch, tag or full commit id`;
  return fail(failure.reason, failure.message, `Check that git can read the repository${which}.`);
}
