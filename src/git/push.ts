/** Remote repositories: the remote of a branch, its name there, and pushing to it. */
import { join } from 'node:path';
import { fail, ok, type Result } from '../core/failure.ts';
import { quoted } from '../core/id.ts';
import type { Git } from './git.ts';
import { askOwn, gitFailure, longTimeoutMs, runOwn } from './run-git.ts';
import { quotedNames, repositoryDir } from './worktrees/worktree.ts';

export interface PushRemote {
  /** The remote that receives pushes; possibly a fork of the one that receives the pull request. */
  readonly name: string;
  /** Owner of the fork. */
  readonly owner?: string;
  /** The branch's name there, without `refs/heads/`. */
  readonly base: string;
  /** `HOST/OWNER/NAME` for servers with such names; absent = only git knows the location. */
  readonly slug?: string;
}

const long = { timeoutMs: longTimeoutMs };

/** The remote of the branch, or the only one, and the push remote. Fails with `usage` and `worktree-failed`. */
export async function remoteOf(git: Git, repository: string, branch: string): Promise<Result<PushRemote>> {
  const names = await runOwn(git, repositoryDir(repository), ['remote']);
  if (!names.ok) return names;
  const known = names.value.split('\n').filter((name) => name !== '');
  const upstream = await configured(git, repository, `branch.${branch}.remote`);
  if (!upstream.ok) return upstream;
  const isUpstream = upstream.value !== null && known.includes(upstream.value);
  const [only, ...others] = known;
  const name = isUpstream ? upstream.value : others.length === 0 ? only : undefined;
  if (name === undefined || name === null) return noRemote(repository, branch, known);
  const merge = await configured(git, repository, `branch.${branch}.merge`);
  if (!merge.ok) return merge;
  const base = isUpstream && merge.value?.startsWith('refs/heads/') ? merge.value.slice('refs/heads/'.length) : branch;
  const slug = await slugOfRemote(git, repository, name);
  if (!slug.ok) return slug;
  const place = { base, ...(slug.value === null ? {} : { slug: slug.value }) };
  const chosen = await configured(git, repository, 'remote.pushDefault');
  if (!chosen.ok) return chosen;
  if (chosen.value === null || chosen.value === name || !known.includes(chosen.value)) return ok({ name, ...place });
  const fork = await slugOfRemote(git, repository, chosen.value);
  if (!fork.ok) return fork;
  const owner = fork.value?.split('/')[1];
  return ok({ name: chosen.value, ...place, ...(owner === undefined ? {} : { owner }) });
}

async function slugOfRemote(git: Git, repository: string, name: string): Promise<Result<string | null>> {
  const url = await runOwn(git, repositoryDir(repository), ['remote', 'get-url', '--push', '--', name]);
  return url.ok ? ok(repositorySlug(url.value.trim())) : url;
}

/** The name of the branch in a pull request. */
export function headIn({ owner }: PushRemote, branch: string): string {
  return owner === undefined ? branch : `${owner}:${branch}`;
}

function noRemote(repository: string, branch: string, known: readonly string[]): Result<never> {
  const place = repositoryDir(repository);
  if (known.length === 0) {
    const next = 'Add one with git remote add, or merge the group locally.';
    return fail('usage', `${place} has no remote repository to push to.`, next);
  }
  const remotes = quotedNames(known);
  const message = `${place} has several remote repositories (${remotes}) and ${quoted(branch)} belongs to none.`;
  return fail('usage', message, `Choose with: git branch --set-upstream-to=<remote>/${branch} ${branch}`);
}

async function configured(git: Git, repository: string, key: string): Promise<Result<string | null>> {
  const asked = await askOwn(git, repositoryDir(repository), ['config', '--get', key]);
  if (!asked.ok) return asked;
  return ok(asked.value.exitCode === 0 ? asked.value.stdout.trim() : null);
}

const urlForms = [
  /^(?:https?|ssh|git):\/\/(?:[^@/]*@)?([^/:]+)(?::\d+)?\/([^/]+)\/([^/]+?)(?:\.git)?\/?$/,
  /^(?:[^@/]+@)?([^/:]+):([^/]+)\/([^/]+?)(?:\.git)?\/?$/,
];

/** `HOST/OWNER/NAME`; null for a path, and for a host defined only in the user's ssh configuration. */
export function repositorySlug(url: string): string | null {
  const found = urlForms.map((form) => form.exec(url)).find((match) => match !== null);
  const [, host, owner, name] = found ?? [];
  return host?.includes('.') ? `${host.replace(/^ssh\.github\.com$/, 'github.com')}/${owner}/${name}` : null;
}

export async function remoteTip(
  git: Git,
  repository: string,
  remote: string,
  branch: string,
): Promise<Result<string | null>> {
  const ref = `refs/heads/${branch}`;
  const args = ['ls-remote', '--', remote, ref];
  const listing = await askOwn(git, repositoryDir(repository), args, long);
  if (!listing.ok) return listing;
  if (listing.value.exitCode !== 0) return unreachable(args, listing.value, remote);
  const line = listing.value.stdout.split('\n').find((text) => text.endsWith(`\t${ref}`));
  return ok(line?.split('\t')[0] ?? null);
}

export async function fetchBranch(git: Git, repository: string, remote: string, branch: string): Promise<Result<void>> {
  const args = [
    'fetch',
    '--quiet',
    '--no-tags',
    '--no-write-fetch-head',
    '--refmap=',
    '--',
    remote,
    `refs/heads/${branch}`,
  ];
  const fetched = await askOwn(git, repositoryDir(repository), args, long);
  if (!fetched.ok) return fetched;
  return fetched.value.exitCode === 0 ? ok(undefined) : unreachable(args, fetched.value, remote);
}

/** Arguments that push the commit to the branch, never with force. */
export function pushArgs(remote: string, branch: string, commit = 'HEAD'): string[] {
  return ['push', '--quiet', '--', remote, `${commit}:refs/heads/${branch}`];
}

export interface Push {
  readonly repository: string;
  readonly remote: string;
  readonly branch: string;
  readonly commit: string;
}

/** Fails with `worktree-failed`: no login, no permission, or another push came first. */
export async function pushCommit(git: Git, { repository, remote, branch, commit }: Push): Promise<Result<void>> {
  // Run in the checkout, because a login's configuration may depend on the folder. The hook that pushes large files is
  // off like all hooks, because the session could have changed it.
  const large = usesLfs(git, repository) ? [['lfs', 'push', remote, commit]] : [];
  for (const args of [...large, pushArgs(remote, branch, commit)]) {
    const pushed = await askOwn(git, repositoryDir(repository), args, long);
    if (!pushed.ok) return pushed;
    if (pushed.value.exitCode !== 0) return unreachable(args, pushed.value, remote);
  }
  return ok(undefined);
}

/** The folder of large files that were added or checked out. */
function usesLfs({ world: { files } }: Git, repository: string): boolean {
  return files.entryKind(join(repository, 'lfs', 'objects')) !== null;
}

function unreachable(args: readonly string[], answer: Parameters<typeof gitFailure>[1], remote: string): Result<never> {
  const refused = gitFailure(args, answer);
  if (refused.ok) return refused;
  const next = /is not a git command/.test(answer.stderr)
    ? 'Install git-lfs, then run the command again.'
    : `Run "git push ${remote}" by hand and log in if needed, then run the command again.`;
  return fail('worktree-failed', refused.failure.message, next);
}
