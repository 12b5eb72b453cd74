/** Commits the whole content of a worktree, without ignored files, on top of its HEAD, and restores it. */
import { fail, ok, type Result } from '../../core/failure.ts';
import type { Workspace } from '../../core/group.ts';
import { withIndexCopy } from '../diff.ts';
import { type Git, gitDirOf } from '../git.ts';
import { askOwn, currentBranch, gitFailure, longTimeoutMs, runOwn } from '../run-git.ts';
import { setRefs } from './session-refs.ts';

const long = { timeoutMs: longTimeoutMs };

export interface Snapshot {
  readonly head: string;
  /** HEAD itself if everything is committed. */
  readonly snapshot: string;
}

export async function snapshotOf(git: Git, path: string): Promise<Result<Snapshot>> {
  // Git would answer for an enclosing repository.
  if (gitDirOf(git.world.files, path) === null) {
    return fail('worktree-failed', `${path} is not a worktree.`, 'See git worktree list.');
  }
  const status = await runOwn(git, path, statusArgs, long);
  if (!status.ok) return status;
  const [first = '', ...rest] = status.value.split('\0').filter((line) => !line.startsWith('# branch.head '));
  const head = /^# branch\.oid ([0-9a-f]+)$/.exec(first)?.[1];
  if (head === undefined) return fail('worktree-failed', `Nothing is checked out in ${path}.`, 'See git log there.');
  if (rest.every((line) => line === '' || line.startsWith('# '))) return ok({ head, snapshot: head });
  const tree = await treeOf(git, path);
  if (!tree.ok) return tree;
  const args = ['commit-tree', '-p', head, '-m', 'Snapshot of the files of a session', tree.value];
  const made = await runOwn(git, path, args, { variables: fixedIdentity });
  return made.ok ? ok({ head, snapshot: made.value.trim() }) : made;
}

const statusArgs = [
  ...['status', '--porcelain=v2', '--branch', '--no-ahead-behind', '-z'],
  ...['--untracked-files=normal', '--ignore-submodules=dirty', '--no-renames'],
];

/** Constant, so that the same files on the same commit give the same snapshot everywhere. */
const fixedIdentity = {
  ...{ GIT_AUTHOR_NAME: 'claude-code-agent', GIT_AUTHOR_EMAIL: 'claude-code-agent@localhost' },
  ...{ GIT_COMMITTER_NAME: 'claude-code-agent', GIT_COMMITTER_EMAIL: 'claude-code-agent@localhost' },
  ...{ GIT_AUTHOR_DATE: '@0 +0000', GIT_COMMITTER_DATE: '@0 +0000' },
};

const noRoom = /No space left|Disk quota/i;

/** The tree of all files except untracked ignored ones. */
function treeOf(git: Git, path: string): Promise<Result<string>> {
  return withIndexCopy(git, path, async (index) => {
    const call = { ...long, ...index };
    // A file that disappears or cannot be read must not block all others.
    const add = ['add', '--all', '--ignore-errors'];
    const added = await askOwn(git, path, add, call);
    if (!added.ok) return added;
    const { exitCode, stderr } = added.value;
    // The tree would contain the files of the earlier index.
    if (exitCode > 1 || noRoom.test(stderr)) return gitFailure(add, added.value);
    const tree = await runOwn(git, path, ['write-tree'], call);
    return tree.ok ? ok(tree.value.trim()) : tree;
  });
}

export interface Applying {
  readonly workspace: Pick<Workspace, 'path' | 'branch' | 'repository'>;
  readonly known: Snapshot;
  readonly wanted: Snapshot;
  /**
   * Names a commit while the worktree is being changed to it; after a crash the change continues, whatever the folder
   * contains.
   */
  readonly markRef: string;
  /** The commit of that ref now; undefined = none. The caller removes it once the worktree is there. */
  readonly marked: string | undefined;
}

/** Sets worktree and branch to the snapshot; fails unless they match it or the known state. */
export async function applySnapshot(
  git: Git,
  { workspace: { path, branch, repository }, known, wanted, markRef, marked }: Applying,
): Promise<Result<void>> {
  if (marked !== wanted.snapshot) {
    const now = await snapshotOf(git, path);
    if (!now.ok) return now;
    const isDone = await areSame(git, path, now.value, wanted);
    if (!isDone.ok || isDone.value) return isDone.ok ? ok(undefined) : isDone;
    const isKnown = await areSame(git, path, now.value, known);
    if (!isKnown.ok) return isKnown;
    if (!isKnown.value) return changedMeanwhile(path, branch);
  }
  const isMarked = await setRefs(git, repository, [[markRef, wanted.snapshot]]);
  if (!isMarked.ok) return isMarked;
  const current = await currentBranch(git, path);
  if (!current.ok) return current;
  const steps = [
    ...(current.value === branch ? [] : [['symbolic-ref', 'HEAD', `refs/heads/${branch}`]]),
    ['read-tree', '--reset', '-u', wanted.snapshot],
    ['clean', '-ffd', '--quiet'],
    ['reset', '--mixed', '--quiet', wanted.head],
  ];
  for (const args of steps) {
    const done = await runOwn(git, path, args, long);
    if (!done.ok) return done;
  }
  return ok(undefined);
}

export function isSame(one: Snapshot, other: Snapshot): boolean {
  return one.head === other.head && one.snapshot === other.snapshot;
}

/** The same parent commit and the same files. Fails with `worktree-failed`. */
async function areSame(git: Git, path: string, one: Snapshot, other: Snapshot): Promise<Result<boolean>> {
  if (isSame(one, other)) return ok(true);
  if (one.head !== other.head) return ok(false);
  const trees = await runOwn(git, path, ['rev-parse', `${one.snapshot}^{tree}`, `${other.snapshot}^{tree}`]);
  if (!trees.ok) return trees;
  const [first, second] = trees.value.trim().split('\n');
  return ok(first === second);
}

function changedMeanwhile(path: string, branch: string): Result<never> {
  const message =
    `The worktree ${path} was changed here while the session worked on another host, so the work of that host ` +
    `was not copied here.`;
  const next = `It is kept as refs/claude-code-agent/…/checkpoint. Merge both on ${branch}, then retry the session.`;
  return fail('worktree-failed', message, next);
}
