/** Makes a commit of everything that is uncommitted in a worktree, except what is not the session's work. */
import { ok, type Result } from '../core/failure.ts';
import type { Git } from './git.ts';
import { type Apart, keepApart } from './git-exclude.ts';
import { exceptOurs, isOurFile, isRunState } from './our-files.ts';
import { askOwn, identityOptions, longTimeoutMs, refusal, runOwn } from './run-git.ts';

/** Arguments of one command are limited by the system. */
const pathsAtOnce = 200;

export interface Uncommitted {
  /** Changed, staged or new, by paths from the top; without our own and without what follows. */
  readonly files: readonly string[];
  /** Folders that are repositories of their own, and submodules that were changed: git would keep only their ids. */
  readonly repositories: readonly string[];
}

/** Fails with `worktree-failed`. */
export async function uncommittedIn(git: Git, path: string): Promise<Result<Uncommitted>> {
  const args = ['status', '--porcelain=v2', '-z', '--untracked-files=all', '--no-renames', '--ignore-submodules=none'];
  const status = await runOwn(git, path, args, { timeoutMs: longTimeoutMs });
  if (!status.ok) return status;
  const files: string[] = [];
  const repositories: string[] = [];
  for (const line of status.value.split('\0')) {
    const entry = parseLine(line);
    if (entry === null) continue;
    if (entry.isRepository) repositories.push(entry.path.replace(/\/$/, ''));
    else if (!isOurFile(entry.path)) files.push(entry.path);
  }
  return ok({ files, repositories });
}

function parseLine(line: string): { readonly path: string; readonly isRepository: boolean } | null {
  if (line.startsWith('? ')) return { path: line.slice(2), isRepository: line.endsWith('/') };
  // Kind, state, submodule, then modes and ids, then the path, which may hold blanks.
  const fields = line.startsWith('1 ') ? 8 : line.startsWith('u ') ? 10 : 0;
  if (fields === 0) return null;
  const words = line.split(' ');
  return { path: words.slice(fields).join(' '), isRepository: words[2]?.startsWith('S') === true };
}

export interface CommitScope extends Apart {
  /** Of our own files, what is the session's work all the same; by paths from the top. */
  readonly fresh?: readonly string[];
}

/** Null when there was nothing to commit, else the new commit. The caller has seen that no conflict is open. */
export async function commitAll(
  git: Git,
  path: string,
  message: string,
  scope: CommitScope,
): Promise<Result<string | null>> {
  const { base, fresh } = scope;
  const staged = await stageAll(git, path, fresh);
  if (!staged.ok) return staged;
  const apart = await keepApart(git, path, scope);
  if (!apart.ok) return apart;
  const dropped = await dropRunState(git, path, base);
  if (!dropped.ok) return dropped;
  const args = ['diff', '--cached', '--quiet', '--no-ext-diff'];
  const same = await askOwn(git, path, args, { timeoutMs: longTimeoutMs });
  if (!same.ok) return same;
  if (same.value.exitCode > 1) return refusal(args, same.value);
  const merging = await askOwn(git, path, ['rev-parse', '--verify', '--quiet', 'MERGE_HEAD']);
  if (!merging.ok) return merging;
  if (same.value.exitCode === 0 && merging.value.exitCode !== 0) return ok(null);
  return commitIndex(git, path, message);
}

/**
 * All that is uncommitted, but for repositories within this one and our own files; of these only those in `fresh`, by
 * paths from the top. Fails with `worktree-failed`.
 */
export async function stageAll(git: Git, path: string, fresh: readonly string[] = []): Promise<Result<void>> {
  const found = await uncommittedIn(git, path);
  if (!found.ok) return found;
  const apart = found.value.repositories.map((name) => `:(top,exclude,literal)${name}`);
  const added = await runOwn(git, path, ['add', '--all', '--', '.', ...exceptOurs, ...apart], {
    timeoutMs: longTimeoutMs,
  });
  const unstaged = added.ok ? await unstageOurs(git, path) : added;
  if (!unstaged.ok) return unstaged;
  for (const name of fresh) {
    // Git refuses what it is told to ignore, and that stays out as all such files do.
    const taken = await askOwn(git, path, ['--literal-pathspecs', 'add', '--', name]);
    if (!taken.ok) return taken;
  }
  return ok(undefined);
}

/** What the session itself had staged of ours. */
async function unstageOurs(git: Git, path: string): Promise<Result<void>> {
  const args = ['diff', '--cached', '--name-only', '--no-renames', '--no-relative', '--no-ext-diff', '-z'];
  const staged = await runOwn(git, path, args, { timeoutMs: longTimeoutMs });
  if (!staged.ok) return staged;
  const ours = staged.value.split('\0').filter((name) => name !== '' && isOurFile(name));
  return inParts(git, path, ['reset', '--quiet', '--'], ours);
}

/** What tells of a run and was committed since `base` by the session: its history keeps it, its result does not. */
async function dropRunState(git: Git, path: string, base: string): Promise<Result<void>> {
  const args = ['diff', '--name-only', '--no-renames', '--no-relative', '--diff-filter=A', '--no-ext-diff', '-z'];
  const added = await runOwn(git, path, [...args, base, 'HEAD'], { timeoutMs: longTimeoutMs });
  if (!added.ok) return added;
  const state = added.value.split('\0').filter((name) => name !== '' && isRunState(name));
  return inParts(git, path, ['rm', '--cached', '--quiet', '--ignore-unmatch', '--'], state);
}

async function inParts(git: Git, path: string, args: readonly string[], names: readonly string[]) {
  for (let from = 0; from < names.length; from += pathsAtOnce) {
    const part = names.slice(from, from + pathsAtOnce);
    const done = await runOwn(git, path, ['--literal-pathspecs', ...args, ...part]);
    if (!done.ok) return done;
  }
  return ok(undefined);
}

const messageMax = 10_000;

async function commitIndex(git: Git, path: string, message: string): Promise<Result<string>> {
  const identity = await identityOptions(git, path);
  if (!identity.ok) return identity;
  const text = message.replaceAll('\0', '').slice(0, messageMax).trim() || 'Uncommitted work of a session';
  const flags = ['--quiet', '--no-verify', '--no-signoff', '--cleanup=whitespace', '--allow-empty-message'];
  const args = [...identity.value, 'commit', ...flags, `--message=${text}`];
  const made = await runOwn(git, path, args, { timeoutMs: longTimeoutMs });
  if (!made.ok) return made;
  const head = await runOwn(git, path, ['rev-parse', '--verify', 'HEAD']);
  return head.ok ? ok(head.value.trim()) : head;
}
