/** Names branches and worktrees that claude itself made in the user's repository, such as for isolated agents. */
import { sep } from 'node:path';
import { ok, type Result } from '../core/failure.ts';
import type { Git } from './git.ts';
import { listBranches } from './worktrees/discard.ts';
import { repositoryDir } from './worktrees/scratch.ts';
import { listWorktrees } from './worktrees/worktree.ts';

export interface Inventory {
  readonly repository: string;
  readonly file: string;
  /** Worktrees below these folders are made by this program. */
  readonly ownFolders: readonly string[];
}

const ownBranches = 'cca/';
const namesShown = 10;

/** Writes down what is there before the first attempt of the session. Without it nothing is reported later. */
export async function noteBranches(git: Git, inventory: Inventory): Promise<void> {
  const { files } = git.world;
  if (files.info(inventory.file) !== null) return;
  const found = await branchesAndWorktrees(git, inventory);
  if (found.ok) files.writeAtomic(inventory.file, found.value.join('\0'));
}

/** Names what was not there before in one sentence; null when nothing is new, or nothing was written down. */
export async function appearedBranches(git: Git, inventory: Inventory): Promise<string | null> {
  const before = git.world.files.readText(inventory.file);
  if (before === null) return null;
  const now = await branchesAndWorktrees(git, inventory);
  const known = new Set(before.split('\0'));
  const fresh = now.ok ? now.value.filter((one) => !known.has(one)) : [];
  if (fresh.length === 0) return null;
  const more = fresh.length > namesShown ? ` and ${fresh.length - namesShown} more` : '';
  const names = `${fresh.slice(0, namesShown).join(', ')}${more}`;
  return `New in the repository since the session began: ${names}. The session's work does not include them.`;
}

/** One text for each of them, without those of this program. Fails with git's reason. */
async function branchesAndWorktrees(git: Git, { repository, ownFolders }: Inventory): Promise<Result<string[]>> {
  const branches = await listBranches(git, repository, '');
  if (!branches.ok) return branches;
  const worktrees = await listWorktrees(git, repositoryDir(repository));
  if (!worktrees.ok) return worktrees;
  const own = ownFolders.map((folder) => `${git.world.files.realPath(folder) ?? folder}${sep}`);
  return ok([
    ...worktrees.value.flatMap(({ path }) =>
      own.some((folder) => path.startsWith(folder)) ? [] : [`worktree ${path}`],
    ),
    ...branches.value.flatMap((name) => (name.startsWith(ownBranches) ? [] : [`branch ${name}`])),
  ]);
}
