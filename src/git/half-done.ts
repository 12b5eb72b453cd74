/** What a session may have begun in its worktree without ending it: a rebase, a conflict that stands in the files. */
import { join } from 'node:path';
import type { Git } from './git.ts';
import type { Unmerged } from './stage.ts';

/** Half of a rebase or of a series of commits is on no branch, so nobody but who began it can say what is wanted. */
const series = [
  ['rebase-merge', 'a rebase', 'git rebase --continue or git rebase --abort'],
  ['rebase-apply', 'a rebase or a series of patches', 'git rebase --continue or git am --continue'],
  ['sequencer/todo', 'a series of cherry-picks or reverts', 'git cherry-pick --continue or git revert --continue'],
] as const;

export interface HalfDone {
  /** With its article. */
  readonly what: string;
  /** Commands that end it. */
  readonly cure: string;
}

/** Null when no series of commits is under way. */
export function halfDoneSeries({ world: { files } }: Git, gitDir: string): HalfDone | null {
  const found = series.find(([name]) => files.info(join(gitDir, name)) !== null);
  return found === undefined ? null : { what: found[1], cure: found[2] };
}

const bytesMax = 32 * 1024 * 1024;
const marker = /^(?:<{7,}|>{7,})(?: |\r?$)/m;

/** Paths of open conflicts that nobody settled. A session often mends the files and forgets to tell git. */
export function openConflicts(git: Git, top: string, unmerged: readonly Unmerged[]): readonly string[] {
  return unmerged.flatMap(({ path, hasBoth }) => (isSettled(git, join(top, path), hasBoth) ? [] : [path]));
}

/** What git left in the folder when it gave up looks like one side, unless both sides are text. */
function isSettled({ world: { files } }: Git, path: string, hasBoth: boolean): boolean {
  const kind = files.entryKind(path);
  if (kind === null) return true;
  const size = kind === 'file' ? (files.info(path)?.size ?? 0) : 0;
  if (kind !== 'file' || !hasBoth || size > bytesMax) return false;
  const bytes = files.readBytes(path, 0, size);
  return !bytes.includes(0) && !marker.test(new TextDecoder().decode(bytes));
}
