/** What the log of a worktree's HEAD tells about its branch: where it was left, and for which commit. */
import { join } from 'node:path';
import type { Files } from '../system/world.ts';

export interface HeadLog {
  /** The last commit that was checked out on the branch, as far as the log knows. */
  readonly tip?: string;
  /** The commit that was checked out when the branch was left last; absent = it was not, or nothing is known. */
  readonly leftFor?: string;
}

/** Commits of a session are a few; the end of a longer log says all that matters. */
const bytesMax = 4 * 1024 * 1024;
const linePattern = /^[0-9a-f]{40,64} ([0-9a-f]{40,64}) [^\t]*\t(.*)$/;

/** Empty when git keeps no such log. */
export function readHeadLog(files: Files, gitDir: string, branch: string): HeadLog {
  const path = join(gitDir, 'logs', 'HEAD');
  const info = files.info(path);
  if (info?.kind !== 'file') return {};
  const bytes = files.readBytes(path, Math.max(0, info.size - bytesMax), bytesMax);
  let isOnBranch = true;
  let log: { tip?: string; leftFor?: string } = {};
  for (const line of new TextDecoder().decode(bytes).split('\n')) {
    const [, commit, message] = linePattern.exec(line) ?? [];
    // To be renamed, a branch is without a commit for a moment.
    if (commit === undefined || message === undefined || /^0+$/.test(commit)) continue;
    const move = moveIn(message);
    if (move !== null) {
      if (isOnBranch && move !== branch) log = { ...log, leftFor: commit };
      isOnBranch = move === branch;
    }
    if (isOnBranch) log = { tip: commit };
  }
  return log;
}

/** What is checked out from then on: a branch, or something else that is no branch of ours; null = as before. */
function moveIn(message: string): string | null {
  const moved = /^checkout: moving from .* to (.*)$/.exec(message)?.[1];
  if (moved !== undefined) return moved;
  const renamed = /^Branch: renamed refs\/heads\/.* to refs\/heads\/(.*)$/.exec(message)?.[1];
  if (renamed !== undefined) return renamed;
  if (/^(?:rebase|pull)\b.*\(start\)/.test(message)) return '';
  return /\(finish\): returning to refs\/heads\/(.*)$/.exec(message)?.[1] ?? null;
}
