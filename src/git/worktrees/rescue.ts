/**
 * Puts what would be lost with a worktree onto a branch, in whatever state the worktree is: in the middle of a rebase,
 * with open conflicts, on a branch of somebody else. No branch but the session's own is moved.
 */
import { ok, type Result } from '../../core/failure.ts';
import type { Git } from '../git.ts';
import { halfDoneSeries } from '../half-done.ts';
import { gitDirOf } from '../repository.ts';
import { commitOf, identityOptions, longTimeoutMs, nameFiles, runOwn } from '../run-git.ts';
import { stageAll, uncommittedIn } from '../stage.ts';
import { type Doomed, type Standing, standingOf } from './discard.ts';
import { repositoryDir } from './scratch.ts';

export interface Rescued {
  /** As it is now. */
  readonly standing: Standing;
  /** Sentences: what was put onto which branch, and what git cannot keep. */
  readonly notes: readonly string[];
}

/** Fails with `worktree-failed`; then the worktree must stay. `title` is the session's, for the sentences. */
export async function rescue(git: Git, doomed: Doomed, standing: Standing, title: string): Promise<Result<Rescued>> {
  const notes: string[] = [];
  const saved = standing.uncommitted.length > 0 ? await saveFiles(git, doomed, standing, title) : ok(null);
  if (!saved.ok) return saved;
  if (saved.value !== null) notes.push(saved.value.note);
  const kept = await keepLoose(git, doomed, title);
  if (!kept.ok) return kept;
  notes.push(...kept.value);
  const apart = saved.value === null ? standing.uncommitted : saved.value.apart;
  const lost = [
    ...(apart.length > 0 ? [`repositories within it (${nameFiles(apart)})`] : []),
    ...(standing.submodules ? ['the repositories of its submodules'] : []),
    ...(standing.isThere && !standing.isReadable ? ['its folder, which git does not know any more'] : []),
  ];
  if (lost.length > 0) notes.push(`Thrown away with the worktree of ${title}: ${lost.join(' and ')}.`);
  const now = await standingOf(git, doomed);
  return now.ok ? ok({ standing: now.value, notes }) : now;
}

interface Saved {
  readonly note: string;
  /** Repositories within the worktree, of which git keeps no files. */
  readonly apart: readonly string[];
}

/** Null when all there is to save is in repositories of their own. */
async function saveFiles(
  git: Git,
  doomed: Doomed,
  { registered, uncommitted }: Standing,
  title: string,
): Promise<Result<Saved | null>> {
  const { path, repository, branch } = doomed;
  const head = await commitOf(git, path, 'HEAD');
  if (!head.ok) return head;
  const apart = uncommitted.filter((name) => name.endsWith('/'));
  const commit = await commitFiles(git, doomed, head.value, title);
  if (!commit.ok || commit.value === null) return commit.ok ? ok(null) : commit;
  const gitDir = gitDirOf(git.world.files, path);
  const isHome = registered?.branch === branch && gitDir !== null && halfDoneSeries(git, gitDir) === null;
  const name = isHome && branch !== undefined ? branch : besideOf(doomed, commit.value);
  const old = name === branch ? (head.value ?? '') : '';
  const why = 'branch: uncommitted work kept by claude-code-agent';
  const moved = await runOwn(git, repositoryDir(repository), ['update-ref', '-m', why, refOf(name), commit.value, old]);
  if (!moved.ok) return moved;
  const files = uncommitted.filter((file) => !apart.includes(file));
  const what = `what was uncommitted in the worktree of ${title} (${nameFiles(files)})`;
  const note = `Committed on ${name}, ${short(commit.value)}: ${what}.`;
  return ok({ note, apart });
}

/** A commit on no branch yet; null when it would hold nothing new. */
async function commitFiles(
  git: Git,
  { path, fresh }: Doomed,
  head: string | null,
  title: string,
): Promise<Result<string | null>> {
  const found = await uncommittedIn(git, path);
  const staged = found.ok ? await stageAll(git, path, found.value, fresh) : found;
  if (!staged.ok) return staged;
  const tree = await runOwn(git, path, ['write-tree'], { timeoutMs: longTimeoutMs });
  if (!tree.ok) return tree;
  const before = head === null ? ok('') : await runOwn(git, path, ['rev-parse', '--verify', `${head}^{tree}`]);
  if (!before.ok) return before;
  if (before.value.trim() === tree.value.trim()) return ok(null);
  const identity = await identityOptions(git, path);
  if (!identity.ok) return identity;
  const message = `Uncommitted work of ${title}\n\nCommitted by claude-code-agent before the worktree was deleted.`;
  const parents = head === null ? [] : ['-p', head];
  const made = await runOwn(git, path, [
    ...identity.value,
    'commit-tree',
    ...parents,
    '-m',
    message,
    tree.value.trim(),
  ]);
  return made.ok ? ok(made.value.trim()) : made;
}

/** Commits that are checked out and on no branch get one. */
async function keepLoose(git: Git, doomed: Doomed, title: string): Promise<Result<readonly string[]>> {
  const now = await standingOf(git, doomed);
  if (!now.ok) return now;
  const head = now.value.registered?.head;
  if (now.value.loose === 0 || head === undefined) return ok([]);
  const name = besideOf(doomed, head);
  const why = 'branch: kept by claude-code-agent';
  const made = await runOwn(git, repositoryDir(doomed.repository), ['update-ref', '-m', why, refOf(name), head, '']);
  if (!made.ok) return made;
  return ok([`Kept on ${name}, ${short(head)}: what was committed in the worktree of ${title} on no branch.`]);
}

const refOf = (branch: string): string => `refs/heads/${branch}`;
const short = (commit: string): string => commit.slice(0, 12);

/** A name that nobody else has, because it holds the commit's. */
function besideOf({ branch }: Doomed, commit: string): string {
  return `${branch ?? 'cca/kept'}-${short(commit)}`;
}
