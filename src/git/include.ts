/** Files that git ignores but a worktree needs, such as `.env`: the project's `.worktreeinclude` names them. */
import { dirname, join } from 'node:path';
import { fail, ok, type Result } from '../core/failure.ts';
import type { Workspace } from '../core/group.ts';
import type { World } from '../system/world.ts';
import type { Git } from './git.ts';
import { findRepository } from './git.ts';
import { longTimeoutMs, nameFiles, runOwn } from './run-git.ts';

const listName = '.worktreeinclude';
const listBytesMax = 1024 * 1024;
/** Arguments of one command are limited by the system. */
const argumentsMax = 200;
const copyTimeoutMs = 10 * 60_000;

export interface Included {
  readonly copied: readonly string[];
  /** Sentences about what a pattern names and what was left out all the same. */
  readonly notes: readonly string[];
}

/**
 * Copies, from the checkout that holds `from` into the session's worktree, the regular files that git ignores and that
 * a pattern in `.worktreeinclude` (as in `.gitignore`) names. Nothing that exists is replaced, and no link is followed.
 * Fails with `worktree-failed`.
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
      return fail('worktree-failed', `${list} is not a regular file, or larger than 1 MiB.`, next);
    }
    const named = await namedFiles(git, top, list);
    if (!named.ok) return named;
    const { wanted, notIgnored } = named.value;
    const chosen = wanted.map((path) => ({ path, why: obstacleTo(git.world, top, workspace.path, path) }));
    const copied = await copyAll(
      git,
      top,
      workspace.path,
      chosen.flatMap(({ path, why }) => (why === null ? [path] : [])),
    );
    if (!copied.ok) return copied;
    const left = [...chosen, ...notIgnored.map((path) => ({ path, why: 'not-ignored' as const }))];
    return ok({ copied: copied.value, notes: notesOn(left) });
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

/** Why a file that is named is not copied; one that is there already needs no word. */
type Obstacle = 'there' | 'link' | 'special' | 'repository' | 'way' | 'not-ignored';

const reasons: Readonly<Record<Exclude<Obstacle, 'there'>, string>> = {
  link: 'links are not followed',
  special: 'only regular files are copied',
  repository: 'repositories within the repository are not copied',
  way: 'in the worktree a link or a file is where a folder is needed',
  'not-ignored': 'git does not ignore them: commit them, or add them to .gitignore',
};

function notesOn(left: readonly { readonly path: string; readonly why: Obstacle | null }[]): string[] {
  return Object.entries(reasons).flatMap(([why, reason]) => {
    const paths = left.flatMap((file) => (file.why === why ? [file.path] : []));
    return paths.length === 0 ? [] : [`Named in ${listName} and not copied, because ${reason}: ${nameFiles(paths)}.`];
  });
}

const copyNext = 'Check the permissions of those files and the free disk space, then retry the session.';

interface Named {
  readonly wanted: readonly string[];
  /** What a pattern names and git would track as soon as somebody adds it. */
  readonly notIgnored: readonly string[];
}

/** Names come from git alone, so a pattern with `..` leads nowhere. */
async function namedFiles(git: Git, top: string, list: string): Promise<Result<Named>> {
  const args = ['ls-files', '-z', '--others', '--ignored'];
  const long = { timeoutMs: longTimeoutMs };
  const named = await runOwn(git, top, [...args, `--exclude-from=${list}`], long);
  if (!named.ok) return named;
  const names = named.value.split('\0').filter((path) => path !== '');
  const wanted: string[] = [];
  const notIgnored: string[] = [];
  for (const part of parts(names)) {
    const ignored = await runOwn(git, top, ['--literal-pathspecs', ...args, '--exclude-standard', '--', ...part], long);
    if (!ignored.ok) return ignored;
    const known = new Set(ignored.value.split('\0'));
    for (const path of part) (known.has(path) ? wanted : notIgnored).push(path);
  }
  return ok({ wanted, notIgnored });
}

function parts<T>(list: readonly T[]): readonly (readonly T[])[] {
  const count = Math.ceil(list.length / argumentsMax);
  return Array.from({ length: count }, (_, index) => list.slice(index * argumentsMax, (index + 1) * argumentsMax));
}

/** Null for a regular file whose place is free, and reached through folders of the worktree only. */
function obstacleTo({ files }: World, top: string, path: string, name: string): Obstacle | null {
  if (name.endsWith('/')) return 'repository';
  const kind = files.entryKind(join(top, name));
  if (kind !== 'file') return kind === 'link' ? 'link' : 'special';
  const folders = name.split('/').slice(0, -1);
  const isClear = folders.every((_, index) => {
    const there = files.entryKind(join(path, ...folders.slice(0, index + 1)));
    return there === null || there === 'folder';
  });
  if (!isClear) return 'way';
  return files.entryKind(join(path, name)) === null ? null : 'there';
}

/** With cp, which keeps their modes and does not hold large files in memory. */
async function copyAll(
  { world, env, mark }: Git,
  top: string,
  path: string,
  names: readonly string[],
): Promise<Result<readonly string[]>> {
  for (const [folder, inFolder] of byFolder(names)) {
    world.files.makeFolder(join(path, folder));
    for (const part of parts(inFolder)) {
      const ran = await world.processes.run({
        program: 'cp',
        args: ['-p', '--', ...part.map((name) => join(top, name)), `${join(path, folder)}/`],
        cwd: top,
        env: { PATH: env.PATH ?? '', LC_ALL: 'C', ...mark },
        timeoutMs: copyTimeoutMs,
      });
      if (ran.ok && ran.value.exitCode === 0) continue;
      const said = ran.ok ? (ran.value.stderr.trim().split('\n')[0] ?? '') : ran.failure.message;
      const message = `Files that ${listName} names cannot be copied (${nameFiles(part)}): ${said.slice(0, 300)}.`;
      return fail('worktree-failed', message.replace(/\.+$/, '.'), copyNext);
    }
  }
  return ok(names);
}

function byFolder(names: readonly string[]): ReadonlyMap<string, readonly string[]> {
  const folders = new Map<string, string[]>();
  for (const name of names) {
    const inFolder = folders.get(dirname(name));
    if (inFolder === undefined) folders.set(dirname(name), [name]);
    else inFolder.push(name);
  }
  return folders;
}
