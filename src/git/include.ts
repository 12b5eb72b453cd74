/** Copies ignored files that a worktree needs, such as `.env`, as listed in the project's `.worktreeinclude`. */
import { dirname, join } from 'node:path';
import { fail, ok, type Result } from '../core/failure.ts';
import type { Workspace } from '../core/group.ts';
import type { World } from '../system/world.ts';
import type { Git } from './git.ts';
import { findRepository } from './git.ts';
import { askOwn, gitFailure, longTimeoutMs, nameFiles, runOwn } from './run-git.ts';

const listName = '.worktreeinclude';
const listBytesMax = 1024 * 1024;
/** Arguments of one command are limited by the system. */
const argumentsMax = 200;
const copyTimeoutMs = 10 * 60_000;

export interface Included {
  readonly copied: readonly string[];
  /** Sentences about files that a pattern names but that were not copied. */
  readonly notes: readonly string[];
}

/**
 * Copies the regular, ignored files that a pattern in `.worktreeinclude` (syntax of `.gitignore`) names from the
 * checkout of `from` into the session's worktree. It replaces nothing and follows no symlink. Fails with
 * `worktree-failed`.
 */
export async function copyIncluded(git: Git, workspace: Workspace, from: string): Promise<Result<Included>> {
  const { files } = git.world;
  const top = findRepository(files, from)?.top ?? from;
  try {
    const list = join(top, listName);
    const kind = files.entryKind(list);
    if (kind === null || top === workspace.path) return ok({ copied: [], notes: [] });
    if (kind !== 'file' || (files.info(list)?.size ?? 0) > listBytesMax) {
      const next = 'Make it a text file with patterns as in .gitignore.';
      return fail('worktree-failed', `${list} is not a regular file or is larger than 1 MiB.`, next);
    }
    const named = await namedFiles(git, top, list);
    if (!named.ok) return named;
    const { wanted, notIgnored } = named.value;
    const obstacles = Map.groupBy(wanted, (path) => obstacleTo(git.world, top, workspace.path, path));
    const copied = await copyAll(git, top, workspace.path, obstacles.get(null) ?? []);
    if (!copied.ok) return copied;
    return ok({ copied: copied.value, notes: notesOn([...obstacles, [notIgnoredReason, notIgnored]]) });
  } catch (error) {
    const code = (error as { code?: unknown }).code;
    if (typeof code !== 'string') throw error;
    return fail('worktree-failed', `The files of ${listName} cannot be copied: ${code}.`, copyNext);
  }
}

/** Paths from the top of the worktree of the regular files that its `.worktreeinclude` names. */
export async function namedByProject(git: Git, top: string): Promise<Result<readonly string[]>> {
  const { files } = git.world;
  const list = join(top, listName);
  if (files.entryKind(list) !== 'file' || (files.info(list)?.size ?? 0) > listBytesMax) return ok([]);
  const named = await namedFiles(git, top, list);
  return named.ok ? ok(named.value.wanted.filter((path) => files.entryKind(join(top, path)) === 'file')) : named;
}

/** It is in the worktree already, which is not reported. */
const isInWorktree = '';
const notIgnoredReason = 'git does not ignore them: commit them, or add them to .gitignore';

function notesOn(left: readonly (readonly [reason: string | null, paths: readonly string[]])[]): string[] {
  return left.flatMap(([reason, paths]) => {
    if (reason === null || reason === isInWorktree || paths.length === 0) return [];
    return [`Listed in ${listName} but not copied, because ${reason}: ${nameFiles(paths)}.`];
  });
}

const copyNext = 'Check the permissions of those files and the free disk space, then retry the session.';

interface Named {
  readonly wanted: readonly string[];
  /** Paths that a pattern names and that git does not ignore, so that `git add` would track them. */
  readonly notIgnored: readonly string[];
}

/** Names come from git only, so a pattern with `..` matches nothing outside. */
async function namedFiles(git: Git, top: string, list: string): Promise<Result<Named>> {
  const long = { timeoutMs: longTimeoutMs };
  const listed = ['ls-files', '-z', '--others', '--ignored', `--exclude-from=${list}`];
  const named = await runOwn(git, top, listed, long);
  if (!named.ok) return named;
  const paths = named.value.split('\0').filter((path) => path !== '');
  // Otherwise a name that begins with a colon would be a pathspec.
  const input = paths.map((path) => `./${path}\0`).join('');
  const args = ['check-ignore', '-z', '--stdin'];
  const asked = await askOwn(git, top, args, { ...long, input });
  if (!asked.ok) return asked;
  // It exits with 1 when git ignores none of them.
  if (asked.value.exitCode > 1) return gitFailure(args, asked.value);
  const ignored = new Set(asked.value.stdout.split('\0'));
  const isIgnored = (path: string): boolean => ignored.has(`./${path}`);
  return ok({ wanted: paths.filter(isIgnored), notIgnored: paths.filter((path) => !isIgnored(path)) });
}

/** Why a file is not copied; null for a regular file whose target is free and below real folders only. */
function obstacleTo({ files }: World, top: string, path: string, name: string): string | null {
  if (name.endsWith('/')) return 'nested repositories are not copied';
  const kind = files.entryKind(join(top, name));
  if (kind !== 'file') return kind === 'link' ? 'symlinks are not followed' : 'only regular files are copied';
  const folders = name.split('/').slice(0, -1);
  const isClear = folders.every((_, index) => {
    const there = files.entryKind(join(path, ...folders.slice(0, index + 1)));
    return there === null || there === 'folder';
  });
  if (!isClear) return 'the worktree has a symlink or file where a folder is needed';
  return files.entryKind(join(path, name)) === null ? null : isInWorktree;
}

/** With cp, which keeps modes and does not hold large files in memory. */
async function copyAll(
  { world, env, mark }: Git,
  top: string,
  path: string,
  names: readonly string[],
): Promise<Result<readonly string[]>> {
  for (const [folder, inFolder] of Map.groupBy(names, dirname)) {
    world.files.makeFolder(join(path, folder));
    for (let from = 0; from < inFolder.length; from += argumentsMax) {
      const part = inFolder.slice(from, from + argumentsMax);
      const ran = await world.processes.run({
        program: 'cp',
        args: ['-p', '--', ...part.map((name) => join(top, name)), `${join(path, folder)}/`],
        cwd: top,
        env: { PATH: env.PATH ?? '', LC_ALL: 'C', ...mark },
        timeoutMs: copyTimeoutMs,
      });
      if (ran.ok && ran.value.exitCode === 0) continue;
      const said = ran.ok ? (ran.value.stderr.trim().split('\n')[0] ?? '') : ran.failure.message;
      const message = `Files listed in ${listName} cannot be copied (${nameFiles(part)}): ${said.slice(0, 300)}.`;
      return fail('worktree-failed', message.replace(/\.+$/, '.'), copyNext);
    }
  }
  return ok(names);
}
