/** Whether anything in a checkout has changed: one word for all that git would show. */
import { ok, type Result } from '../core/failure.ts';
import type { Git } from './git.ts';
import { exceptOurs } from './our-files.ts';
import { askOwn, longTimeoutMs, runOwn } from './run-git.ts';

/** New files that are hashed by one command; a command line has a limit. */
const pathsAtOnce = 200;

/**
 * Equal as long as HEAD, the tracked files and the new files below `folder` that git does not ignore are the same,
 * whatever becomes of our own; hexadecimal. Fails with `worktree-failed`.
 */
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
