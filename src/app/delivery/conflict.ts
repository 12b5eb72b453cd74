/** What to do about work that does not go together: whose it is, and the commands that bring it together by hand. */
import { join } from 'node:path';
import { fail, ok, type Result } from '../../core/failure.ts';
import type { Git } from '../../git/git.ts';
import { gitDirOf } from '../../git/repository.ts';
import { isAncestor, nameFiles } from '../../git/run-git.ts';
import { tipOf } from '../../git/target.ts';
import { changedSince, listed, repositoryDir } from '../../git/worktrees/scratch.ts';
import { shellWord } from '../path-argument.ts';
import { isWorktree, type MergeItem, titleOfItem, uncommittedOf } from './merge-items.ts';

/** What was put together before the work that does not fit, or a part of it. */
export interface Side {
  /** For people: a branch, or `that of 001 a`. */
  readonly title: string;
  /** What git merge takes. */
  readonly name: string;
  /** Full id. */
  readonly commit: string;
}

export interface Conflict {
  readonly repository: string;
  readonly item: MergeItem;
  /** In the order in which they were merged, the target in front. */
  readonly sides: readonly Side[];
  /** Paths from the top. */
  readonly files: readonly string[];
}

/** The branch of a session, or its commit where the branch is gone. Fails with git's reason. */
export async function sideOf(git: Git, item: MergeItem): Promise<Result<Side>> {
  const { repository, branch } = item.workspace;
  const tip = await tipOf(git, repository, branch);
  if (!tip.ok) return tip;
  const name = tip.value === item.source ? branch : item.source;
  return ok({ title: `that of ${titleOfItem(item)}`, name, commit: item.source });
}

/** Always fails, with `merge-conflict` or git's reason. */
export async function conflictFailure(git: Git, conflict: Conflict): Promise<Result<never>> {
  const { repository, item, files } = conflict;
  const others = await othersIn(git, conflict);
  if (!others.ok) return others;
  const advice = await adviceFor(git, conflict, others.value);
  if (!advice.ok) return advice;
  const whom = others.value.map(({ title }) => title).join(' and ');
  return fail(
    'merge-conflict',
    `The work of ${titleOfItem(item)} does not go together with ${whom} in ${repositoryDir(repository)}: both sides ` +
      `changed ${listed(files)}.`,
    `No branch was moved. ${advice.value}`,
  );
}

/** Those that changed the files as well; all that the work does not hold yet, when that cannot be told. */
async function othersIn(git: Git, { repository, item, sides, files }: Conflict): Promise<Result<readonly Side[]>> {
  const contains = (commit: string, of: string) => isAncestor(git, repositoryDir(repository), commit, of);
  const missing: Side[] = [];
  for (const side of sides) {
    const known = await contains(side.commit, item.source);
    if (!known.ok) return known;
    if (!known.value) missing.push(side);
  }
  const guilty: Side[] = [];
  for (const side of missing) {
    const changed = await changedSince(git, repository, item.source, side.commit, files);
    if (!changed.ok) return changed;
    if (changed.value) guilty.push(side);
  }
  const found = guilty.length > 0 ? guilty : missing;
  const tops: Side[] = [];
  for (const [index, side] of found.entries()) {
    let isWithin = false;
    for (const later of found.slice(index + 1)) {
      const within = await contains(side.commit, later.commit);
      if (!within.ok) return within;
      isWithin ||= within.value;
    }
    if (!isWithin) tops.push(side);
  }
  return ok(tops);
}

async function adviceFor(git: Git, { repository, item }: Conflict, others: readonly Side[]): Promise<Result<string>> {
  const { files } = git.world;
  const { path, branch } = item.workspace;
  const merges = (folder: string) => others.map(({ name }) => `git -C ${folder} merge ${shellWord(name)}`);
  if (!isWorktree(git, item.workspace)) {
    const place = shellWord(repositoryDir(repository));
    const tip = await tipOf(git, repository, branch);
    if (!tip.ok) return tip;
    const from =
      tip.value === null ? `checkout -b ${shellWord(branch)} ${item.source}` : `checkout ${shellWord(branch)}`;
    return ok(resolveWith([`git -C ${place} ${from}`, ...merges(place)]));
  }
  const folder = shellWord(path);
  const gitDir = gitDirOf(files, path);
  if (gitDir !== null && files.info(join(gitDir, 'MERGE_HEAD')) !== null) {
    const commit = `git -C ${folder} commit --all --no-edit`;
    return ok(`Its worktree is in the middle of a merge: resolve that, commit it with "${commit}", then try again.`);
  }
  const uncommitted = await uncommittedOf(git, item.workspace);
  if (!uncommitted.ok) return uncommitted;
  const first =
    uncommitted.value.length === 0
      ? ''
      : `First commit in ${path} what is uncommitted there: ${nameFiles(uncommitted.value)}. `;
  return ok(`${first}${resolveWith(merges(folder))}`);
}

function resolveWith(commands: readonly string[]): string {
  return `Bring it together with "${commands.join('", then "')}", resolve and commit that, then try again.`;
}
