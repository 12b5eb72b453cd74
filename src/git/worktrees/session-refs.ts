/** Refs that keep a session's commits, and their transfer between repositories by `git push` and `git fetch`. */
import { fail, ok, type Result } from '../../core/failure.ts';
import { type Git, type GitAnswer, reasonIn } from '../git.ts';
import { askOwn, gitFailure, runOwn } from '../run-git.ts';

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
/** A prompt of ssh could not be answered. */
const sshCommand = 'ssh -o BatchMode=yes -o ConnectTimeout=15';
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
const noRoom = /No space left|Disk quota/i;

function outOfReach(command: string, url: string, { stderr, exitCode }: GitAnswer): Result<never> | null {
  if (!unreached.test(stderr) && !noRoom.test(stderr)) return null;
  if (command === 'fetch' && noRoom.test(stderr)) return fail('write-failed', 'The disk is full.', 'Free some space.');
  const why = stderr.split('\n').find((line) => noRoom.test(line) || /^ssh: |denied|refused/i.test(line)) ?? '';
  const reason = why.trim() === '' ? reasonIn(stderr, exitCode) : why.trim().replace(/\.$/, '');
  return fail('timeout', `git ${command} could not reach ${url}: ${reason}.`, 'Fix that, then retry the session.');
}
