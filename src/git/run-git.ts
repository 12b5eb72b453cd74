/** Runs git in the user's repository. Waits for locks of other processes and adds a next step to each error. */
import { type Failure, fail, ok, type Result } from '../core/failure.ts';
import { quoted } from '../core/id.ts';
import { listNames } from '../core/text.ts';
import { askGit, type Git, type GitAnswer, reasonIn } from './git.ts';

/** A large repository needs time to be checked out, merged or compared. */
export const longTimeoutMs = 10 * 60_000;
const shortTimeoutMs = 2 * 60_000;

export interface OwnCall {
  /** Milliseconds; absent = two minutes. */
  readonly timeoutMs?: number;
  readonly variables?: Readonly<Record<string, string>>;
  readonly encoding?: 'latin1';
  readonly input?: string | Uint8Array;
}

/** Pauses between tries, milliseconds: other git commands hold locks and half-made worktrees only briefly. */
const pausesMs = [50, 100, 200, 400, 800, 1600];
const lockHeld = /Unable to create '[\s\S]*\.lock': File exists|could not lock config file [\s\S]*: File exists/;
/** Git reads each worktree of the repository, and fails on one that another git is creating or removing. */
const halfMade =
  /(?:failed to|could not|unable to) (?:read|open) [^\n]*\/worktrees\/[^\n]*: (?:No such|Success|Undefined)/i;

/** Any exit code is a success. Fails with `worktree-failed` when git is missing or does not end. */
export async function askOwn(
  git: Git,
  cwd: string,
  args: readonly string[],
  { timeoutMs = shortTimeoutMs, variables = {}, ...how }: OwnCall = {},
): Promise<Result<GitAnswer>> {
  for (const pauseMs of [...pausesMs, null]) {
    const asked = await askGit(git, { cwd, args, timeoutMs, own: true, variables, ...how });
    if (!asked.ok) return withoutGit(asked.failure);
    if (pauseMs === null || asked.value.exitCode === 0 || !isMomentary(asked.value.stderr)) return asked;
    await new Promise<void>((resolve) => {
      git.world.clock.after(pauseMs, resolve);
    });
  }
  throw new Error('Internal error: the last try has an answer');
}

function isMomentary(stderr: string): boolean {
  return lockHeld.test(stderr) || halfMade.test(stderr);
}

/** Git's output. Fails with `worktree-failed`, with git's reason and the next step. */
export async function runOwn(
  git: Git,
  cwd: string,
  args: readonly string[],
  options: OwnCall = {},
): Promise<Result<string>> {
  const asked = await askOwn(git, cwd, args, options);
  if (!asked.ok) return asked;
  return asked.value.exitCode === 0 ? ok(asked.value.stdout) : gitFailure(args, asked.value);
}

export function gitFailure(args: readonly string[], { stderr, exitCode }: GitAnswer): Result<never> {
  const command = args.find((arg, index) => !arg.startsWith('-') && args[index - 1] !== '-c') ?? '';
  const message = `git ${command} refused: ${reasonIn(stderr, exitCode)}.`;
  const refused = fail('worktree-failed', message, nextStepFor(stderr));
  if (!noPermission.test(stderr)) return refused;
  const nextInPlace = 'Get write permission for the repository, or work in the checkout itself with --isolate none.';
  return { ok: false, failure: { ...refused.failure, nextInPlace } };
}

const noPermission =
  /Permission denied|Read-only file system|insufficient permission|unable to create directory|could not create/i;

const nextSteps: readonly (readonly [RegExp, string])[] = [
  [/\.lock': File exists/, 'If no git command is running there, remove that file, then try again.'],
  [/No space left|Disk quota|Out of diskspace|couldn't write .*\.lock/i, 'Free some disk space, then try again.'],
  [
    /dubious ownership/,
    'The repository belongs to another user. Allow it with: git config --global --add safe.directory <folder>',
  ],
  [noPermission, 'Get write permission for the repository, then try again.'],
  [/is already (?:checked out|used by worktree) at/, 'Check out another branch there, then try again.'],
  [/locked working tree|missing but locked/, 'Unlock it with git worktree unlock, then try again.'],
  [/': '[^']*' exists; cannot create/, 'Rename that branch: git cannot create branches below its name.'],
  [
    /smudge filter|external filter|clean filter/,
    'Make git checkout work there (for example git lfs install, or log in to the LFS server), then try again.',
  ],
  [
    /unable to read|bad object|invalid object|missing blob|Could not read|promisor|not a valid object/i,
    'Objects are missing: check with git fsck, or get them with git fetch.',
  ],
];

function nextStepFor(stderr: string): string {
  const known = nextSteps.find(([pattern]) => pattern.test(stderr));
  return known?.[1] ?? 'Check git status and git worktree list in the project, then try again.';
}

function withoutGit({ reason, message }: Failure): Result<never> {
  if (reason === 'not-found') {
    const { failure } = fail('worktree-failed', message, 'Install git, then try again.');
    return {
      ok: false,
      failure: { ...failure, nextInPlace: 'Install git, or work in the folder itself with --isolate none.' },
    };
  }
  const next =
    reason === 'timeout'
      ? 'Check whether the disk or a git filter hangs, then try again.'
      : 'Check that the folder exists, then try again.';
  return fail('worktree-failed', message, next);
}

/** The commit of the revision, null without one. Fails with `worktree-failed`. */
export async function commitOf(git: Git, cwd: string, revision: string): Promise<Result<string | null>> {
  const args = ['rev-parse', '--verify', '--quiet', '--end-of-options', `${revision}^{commit}`];
  const asked = await askOwn(git, cwd, args);
  if (!asked.ok) return asked;
  if (asked.value.exitCode === 0) return ok(asked.value.stdout.trim());
  // Git prints nothing for a missing revision, and an error when it cannot look.
  return asked.value.stderr.trim() === '' ? ok(null) : gitFailure(args, asked.value);
}

/** Whether the first commit is an ancestor of, or equal to, the second. Fails with `worktree-failed`. */
export async function isAncestor(git: Git, cwd: string, commit: string, of: string): Promise<Result<boolean>> {
  const args = ['merge-base', '--is-ancestor', commit, of];
  const asked = await askOwn(git, cwd, args);
  if (!asked.ok) return asked;
  const { exitCode } = asked.value;
  return exitCode === 0 || exitCode === 1 ? ok(exitCode === 0) : gitFailure(args, asked.value);
}

/** The checked-out branch without `refs/heads/`; null for a detached HEAD. Fails with `worktree-failed`. */
export async function currentBranch(git: Git, cwd: string): Promise<Result<string | null>> {
  const args = ['symbolic-ref', '--quiet', 'HEAD'];
  const asked = await askOwn(git, cwd, args);
  if (!asked.ok) return asked;
  const { exitCode, stdout } = asked.value;
  if (exitCode !== 0 && exitCode !== 1) return gitFailure(args, asked.value);
  const ref = stdout.replace(/\n$/, '');
  return ok(ref.startsWith('refs/heads/') ? ref.slice('refs/heads/'.length) : null);
}

const ownIdentity = { name: 'claude-code-agent', email: 'claude-code-agent@localhost' };

/** Options for git that supply a committer's name and address where the user has set none. */
export async function identityOptions(git: Git, cwd: string): Promise<Result<readonly string[]>> {
  const asked = await askOwn(git, cwd, ['config', '-z', '--get-regexp', '^user\\.(name|email)$']);
  if (!asked.ok) return asked;
  const set = new Set(
    asked.value.stdout.split('\0').flatMap((entry) => {
      const [key = '', value = ''] = entry.split('\n');
      return /[\p{L}\p{N}]/u.test(value) ? [key.toLowerCase()] : [];
    }),
  );
  return ok(
    (['name', 'email'] as const).flatMap((what) =>
      set.has(`user.${what}`) ? [] : ['-c', `user.${what}=${ownIdentity[what]}`],
    ),
  );
}

const namesMax = 10;

/** Some of the paths for a sentence, each quoted so that its end is visible. */
export function nameFiles(paths: readonly string[]): string {
  return listNames(
    paths.map((path) => (/^[\p{L}\p{N}_./@+-]+$/u.test(path) ? path : quoted(path))),
    namesMax,
  );
}
