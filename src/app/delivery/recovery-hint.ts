/** How unmerged work that a session left gets to where it is wanted; only commands that will not be refused. */

import { commandText } from '../../core/advice.ts';
import type { GroupState } from '../../core/state.ts';
import { nextGroupStatus } from '../../core/status.ts';
import { repositoryDir } from '../../git/worktrees/scratch.ts';
import { briefPath, shellWord } from '../path-argument.ts';
import type { Leftover } from './worktree-cleanup.ts';

/** The beginning of a sentence, without a dot. */
export function recoveryHint(state: GroupState, leftover: Leftover): string {
  const { doomed, standing } = leftover;
  if (standing === null) return `Put the repository ${briefPath(repositoryDir(doomed.repository))} back where it was`;
  if (!standing.ok) return 'Make git work there again';
  const { isThere, isReadable, uncommitted, loose, unmerged, stashes, submodules } = standing.value;
  if (isThere && !isReadable) return `Save what you need from ${briefPath(doomed.path)}`;
  if (uncommitted.length > 0) {
    const merge = mergeCommand(state, leftover);
    return `Commit it on its branch in ${briefPath(doomed.path)}, then merge that with "${merge}"`;
  }
  if (loose > 0) return `Put it on a branch of your own with "git -C ${shellWord(doomed.path)} branch <name>"`;
  if (unmerged > 0) return `Merge it with "${mergeCommand(state, leftover)}"`;
  if (submodules) return 'Push what you need from its submodules';
  if (stashes > 0) return `Take what you need from "git -C ${shellWord(repositoryDir(doomed.repository))} stash list"`;
  return 'Settle that';
}

/** Only completed sessions of groups that are not put away are handed over. */
function mergeCommand({ group, status, sessions }: GroupState, { doomed, record }: Leftover): string {
  const isOpen = nextGroupStatus(status, 'group_merged') !== null;
  if (isOpen && record?.state.status === 'completed' && record.isolated === true) {
    const isPartial = [...sessions.values()].some(({ state }) => state.status !== 'completed');
    return commandText(['group', 'merge', group.id, ...(isPartial ? ['--partial'] : [])]);
  }
  return `git -C ${shellWord(repositoryDir(doomed.repository))} merge ${shellWord(doomed.branch ?? '<its branch>')}`;
}
