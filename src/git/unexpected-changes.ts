/** Detects a session's changes in the parts of a repository that all its worktrees share. */
import { join, sep } from 'node:path';
import { ok, type Result } from '../core/failure.ts';
import { listNames } from '../core/text.ts';
import type { Files } from '../system/world.ts';
import type { Git } from './git.ts';
import { runOwn } from './run-git.ts';
import { listBranches } from './worktrees/discard.ts';
import { repositoryDir } from './worktrees/scratch.ts';
import { listWorktrees } from './worktrees/worktree.ts';

export interface Inventory {
  readonly repository: string;
  readonly file: string;
  /** Worktrees below these folders are made by this program. */
  readonly ownFolders: readonly string[];
}

const ownBranches = 'cca/';
const namesShown = 10;

/** Records the state before the session's first attempt. Without a record nothing is reported later. */
export async function noteBranches(git: Git, inventory: Inventory): Promise<void> {
  const { files } = git.world;
  if (files.info(inventory.file) !== null) return;
  const found = await sharedParts(git, inventory);
  if (found.ok) files.writeAtomic(inventory.file, found.value.join('\0'));
}

/** Sentences about later changes; none without a record. */
export async function changesInRepository(git: Git, inventory: Inventory): Promise<readonly string[]> {
  const before = git.world.files.readText(inventory.file)?.split('\0');
  const now = before === undefined ? null : await sharedParts(git, inventory);
  if (before === undefined || now?.ok !== true) return [];
  const fresh = without(now.value, before);
  const gone = without(before, now.value);
  const of = (kind: string, entries: readonly string[]): readonly string[] =>
    entries.flatMap((entry) => (entry.startsWith(`${kind} `) ? [entry.slice(kind.length + 1)] : []));
  const made = fresh.filter((entry) => /^(?:branch|worktree) /.test(entry));
  const changed = (kind: string): readonly string[] =>
    [...of(kind, fresh), ...of(kind, gone)].map((entry) => entry.replace(/ [^ ]*$/, ''));
  const where = repositoryDir(inventory.repository);
  return [
    ...sentence(made, (names) => `New in the repository since the session started: ${names}. ${notIncluded}`),
    ...sentence(of('stash', fresh), (names) => `A stash was created in ${where} while the session ran: ${names}.`),
    ...sentence(
      of('stash', gone),
      (names) => `A stash was removed from ${where} while the session ran: ${names}. See: git stash apply <commit>`,
    ),
    ...sentence(
      changed('config'),
      (names) => `The git configuration of ${where} was changed while the session ran: ${names}.`,
    ),
    ...sentence(
      changed('global'),
      (names) => `Your own git configuration was changed while the session ran: ${names}.`,
    ),
    ...sentence(changed('file'), (names) => `Changed in ${inventory.repository} while the session ran: ${names}.`),
  ];
}

const notIncluded = "The session's work does not include them.";

function without(entries: readonly string[], others: readonly string[]): string[] {
  const known = new Set(others);
  return entries.filter((entry) => !known.has(entry));
}

function sentence(entries: readonly string[], words: (names: string) => string): string[] {
  const names = [...new Set(entries)];
  if (names.length === 0) return [];
  return [words(listNames(names, namesShown))];
}

/** One text per item, without those of this program. Fails with git's reason. */
async function sharedParts(git: Git, inventory: Inventory): Promise<Result<string[]>> {
  const made = await branchesAndWorktrees(git, inventory);
  if (!made.ok) return made;
  const { files } = git.world;
  const { repository } = inventory;
  return ok([
    ...made.value,
    ...stashes(files, repository),
    ...(await settings(git, repository, 'config', ['--file', join(repository, 'config')])),
    ...(await settings(git, repository, 'global', ['--global'])),
    ...hooks(files, repository),
  ]);
}

function stashes(files: Files, repository: string): string[] {
  const lines = files.readText(join(repository, 'logs', 'refs', 'stash'))?.split('\n') ?? [];
  return lines.flatMap((line) => {
    const [, commit, message] = /^[0-9a-f]+ ([0-9a-f]{12})[^\t]*\t(.*)$/.exec(line) ?? [];
    return commit === undefined ? [] : [`stash ${commit} (${message})`];
  });
}

/** Settings that git itself writes about branches, large files and initialised submodules. */
const noted = /^(?:branch|lfs)\.|^submodule\..*\.(?:active|url)$/i;

/** Values may be secrets, so only their hashes are kept. */
async function settings(git: Git, repository: string, kind: string, source: readonly string[]): Promise<string[]> {
  const printed = await runOwn(git, repositoryDir(repository), ['config', ...source, '--list', '-z']);
  // A missing file has no settings.
  const entries = printed.ok ? printed.value.split('\0').filter((entry) => entry !== '') : [];
  return entries.flatMap((entry) => {
    const [key = '', ...value] = entry.split('\n');
    return noted.test(key) ? [] : [`${kind} ${key} ${Bun.hash(value.join('\n')).toString(36)}`];
  });
}

function hooks(files: Files, repository: string): string[] {
  const names = files.list(join(repository, 'hooks')).filter((name) => !name.endsWith('.sample'));
  const others = names.map((name) => `hooks/${name}`);
  return [...others, 'info/attributes', 'info/exclude'].flatMap((name) => {
    const path = join(repository, name);
    const info = files.info(path);
    if (info?.kind !== 'file') return [];
    if (name !== 'info/exclude') return [`file ${name} ${info.size}-${info.mtimeMs}`];
    // FABER's commands write that line.
    const lines = (files.readText(path) ?? '').split('\n').filter((line) => line !== '' && line !== '.active-run-id');
    return [`file ${name} ${Bun.hash(lines.join('\n')).toString(36)}`];
  });
}

async function branchesAndWorktrees(git: Git, { repository, ownFolders }: Inventory): Promise<Result<string[]>> {
  const branches = await listBranches(git, repository, '');
  if (!branches.ok) return branches;
  const worktrees = await listWorktrees(git, repositoryDir(repository));
  if (!worktrees.ok) return worktrees;
  const own = ownFolders.map((folder) => `${git.world.files.realPath(folder) ?? folder}${sep}`);
  return ok([
    ...worktrees.value.flatMap(({ path }) =>
      own.some((folder) => path.startsWith(folder)) ? [] : [`worktree ${path}`],
    ),
    ...branches.value.flatMap((name) => (name.startsWith(ownBranches) ? [] : [`branch ${name}`])),
  ]);
}
