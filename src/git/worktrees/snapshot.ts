/**
 * Commits the whole content of a worktree, without ignored files, on top of its HEAD, and restores it. Refs keep these
 * commits; `git push` and `git fetch` transfer them between repositories.
 */
import { fail, ok, type Result } from '../../core/failure.ts';
import type { Workspace } from '../../core/group.ts';
import { withIndexCopy } from '../diff.ts';
import { type Git, type GitAnswer, gitDirOf, reasonIn } from '../git.ts';
import { askOwn, currentBranch, gitFailure, longTimeoutMs, runOwn } from '../run-git.ts';

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

// Refs that keep a session's commits, and their transfer between repositories by `git push` and `git fetch`.

const keepingRefs = 'refs/claude-code-agent';

/** The ref that keeps commits of a session on no branch; `name` is unique within the session. */
export function keepingRef(sessionId: string, name: string): string {
  return `${keepingRefs}/${sessionId}/${name}`;
}

export type RefChanges = readonly (readonly [ref: string, commit: string | null])[];

/** Sets the refs to these commits, null = removes them; all of them or none. */
export async function setRefs(git: Git, repository: string, changes: RefChanges): Promise<Result<void>> {
  const lines = changes.map(([ref, commit]) => (commit === null ? `delete ${ref}\n` : `update ${ref} ${commit}\n`));
  const set = await runOwn(git, repository, ['update-ref', '--stdin'], { input: lines.join('') });
  return set.ok ? ok(undefined) : set;
}

/** Commits of the session's refs, by the end of their names. Fails with `worktree-failed`. */
export async function keptCommits(
  git: Git,
  repository: string,
  sessionId: string,
): Promise<Result<ReadonlyMap<string, string>>> {
  const folder = keepingRef(sessionId, '');
  const listed = await runOwn(git, repository, ['for-each-ref', '--format=%(objectname) %(refname)', folder]);
  if (!listed.ok) return listed;
  const lines = listed.value.split('\n').filter((line) => line !== '');
  return ok(
    new Map(lines.map((line) => [line.slice(line.indexOf(' ') + 1 + folder.length), line.split(' ')[0] ?? ''])),
  );
}

/** A repository on another machine that exchanges commits. */
export interface CodeUrl {
  /** As git takes it: a path, `user@host:/path`, or a server's URL. */
  readonly url: string;
  /** It is the fleet's own on a host, and is created when missing. */
  readonly isOnHost: boolean;
}

/** The first transfer of a large repository takes long. */
const transferTimeoutMs = 60 * 60_000;
/** A prompt could not be answered, and ssh by itself does not notice that the host has lost power. */
export const sshOptions = ['-o', 'BatchMode=yes', '-o', 'ConnectTimeout=15', '-o', 'ServerAliveInterval=10'];
const sshCommand = ['ssh', ...sshOptions].join(' ');
const makeAndReceive = [
  'test -e "$0/HEAD" || git init --quiet --bare --template= "$0"',
  'exec git -c gc.auto=0 -c receive.shallowUpdate=true receive-pack "$0"',
].join('; ');
const quiet = ['--quiet', '--force', '--recurse-submodules=no'];

/**
 * Fails with `timeout` when the other repository is unreachable or its disk is full, otherwise with `worktree-failed`.
 */
export function pushRefs(git: Git, cwd: string, to: CodeUrl, refspecs: readonly string[]): Promise<Result<void>> {
  const receive = to.isOnHost ? [`--receive-pack=sh -c '${makeAndReceive}'`] : [];
  return transfer(git, cwd, to, ['push', ...quiet, '--no-verify', '--no-signed', ...receive, to.url, ...refspecs]);
}

/** Fetches the commits and sets the refs to them. Fails as `pushRefs`, and with `write-failed` on a full disk. */
export function fetchCommits(
  git: Git,
  cwd: string,
  from: CodeUrl,
  wanted: readonly (readonly [commit: string, ref: string])[],
): Promise<Result<void>> {
  // Commits of an earlier checkpoint may be on no ref any more.
  const upload = from.isOnHost ? ['--upload-pack=git -c uploadpack.allowAnySHA1InWant=true upload-pack'] : [];
  const refspecs = wanted.map(([commit, ref]) => `+${commit}:${ref}`);
  const how = [...quiet, '--no-tags', '--no-prune', '--no-write-fetch-head', ...upload];
  return transfer(git, cwd, from, ['fetch', ...how, from.url, ...refspecs]);
}

async function transfer(git: Git, cwd: string, { url, isOnHost }: CodeUrl, args: string[]): Promise<Result<void>> {
  const isOwnSsh = !isOnHost || git.env.GIT_SSH_COMMAND !== undefined || git.env.GIT_SSH !== undefined;
  const variables = isOwnSsh ? {} : { GIT_SSH_COMMAND: sshCommand };
  const asked = await askOwn(git, cwd, args, { timeoutMs: transferTimeoutMs, variables });
  if (!asked.ok) return asked;
  if (asked.value.exitCode === 0) return ok(undefined);
  return outOfReach(args[0] as string, url, asked.value) ?? gitFailure(args, asked.value);
}

const unreached = /Could not read from remote|unable to access|Connection (?:refused|closed|reset|timed out)|hung up/i;

function outOfReach(command: string, url: string, { stderr, exitCode }: GitAnswer): Result<never> | null {
  if (!unreached.test(stderr) && !noRoom.test(stderr)) return null;
  if (command === 'fetch' && noRoom.test(stderr)) return fail('write-failed', 'The disk is full.', 'Free some space.');
  const why =
    stderr.split('\n').find((line) => noRoom.test(line) || /^ssh: |denied|refused|not responding/i.test(line)) ?? '';
  const reason = why.trim() === '' ? reasonIn(stderr, exitCode) : why.trim().replace(/\.$/, '');
  return fail('timeout', `git ${command} could not reach ${url}: ${reason}.`, 'Fix that, then retry the session.');
}
