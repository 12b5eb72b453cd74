/** Detects a session's changes in the parts of a repository that all its worktrees share. */
import { join, sep } from 'node:path';
import { ok, type Result } from '../core/failure.ts';
import { listNames } from '../core/text.ts';
import { parseOwn } from '../store/json.ts';
import type { Files } from '../system/world.ts';
import type { Git } from './git.ts';
import { runOwn } from './run-git.ts';
import { listBranches } from './worktrees/discard.ts';
import { listWorktrees, repositoryDir } from './worktrees/worktree.ts';

export interface Inventory {
  readonly repository: string;
  readonly file: string;
  /** Worktrees below these folders are made by this program. */
  readonly ownFolders: readonly string[];
}

/** What an item is called in a sentence, and a value that differs when it has changed. */
type Items = Readonly<Record<string, string>>;

const ownBranches = 'cca/';
const namesShown = 10;

/** Records the state before the session's first attempt. Without a record nothing is reported later. */
export async function noteBranches(git: Git, inventory: Inventory): Promise<void> {
  const { files } = git.world;
  if (files.info(inventory.file) !== null) return;
  const found = await sharedParts(git, inventory);
  if (found.ok) files.writeAtomic(inventory.file, JSON.stringify(found.value));
}

/** Sentences about later changes; none without a record. */
export async function changesInRepository(git: Git, inventory: Inventory): Promise<readonly string[]> {
  const before = parseOwn<Items>(git.world.files.readText(inventory.file));
  const now = before === null ? null : await sharedParts(git, inventory);
  if (before === null || now?.ok !== true) return [];
  const names = Object.keys(now.value);
  const added = names.filter((name) => before[name] === undefined);
  const changed = names.filter((name) => before[name] !== undefined && before[name] !== now.value[name]);
  const gone = Object.keys(before).filter(
    (name) => now.value[name] === undefined && !/^(?:branch|worktree) /.test(name),
  );
  const where = repositoryDir(inventory.repository);
  const sentence = (words: string, items: readonly string[], rest = ''): string[] =>
    items.length === 0 ? [] : [`${words} ${where} while the session ran: ${listNames(items, namesShown)}.${rest}`];
  return [
    ...sentence('New in', added, " The session's work does not include that."),
    ...sentence('Changed in', changed),
    ...sentence('Removed from', gone, ' Restore a stash with: git stash apply <commit>'),
  ];
}

/** Without the items of this program. Fails with git's reason. */
async function sharedParts(git: Git, { repository, ownFolders }: Inventory): Promise<Result<Items>> {
  const { files } = git.world;
  const branches = await listBranches(git, repository, '');
  if (!branches.ok) return branches;
  const worktrees = await listWorktrees(git, repositoryDir(repository));
  if (!worktrees.ok) return worktrees;
  const own = ownFolders.map((folder) => `${files.realPath(folder) ?? folder}${sep}`);
  const others = worktrees.value.filter(({ path }) => !own.some((folder) => path.startsWith(folder)));
  const names = [
    ...others.map(({ path }) => `worktree ${path}`),
    ...branches.value.flatMap((name) => (name.startsWith(ownBranches) ? [] : [`branch ${name}`])),
    ...stashes(files, repository),
  ];
  return ok({
    ...Object.fromEntries(names.map((name) => [name, ''])),
    ...(await settings(git, repository, 'setting', ['--file', join(repository, 'config')])),
    ...(await settings(git, repository, 'setting of your own git configuration', ['--global'])),
    ...hooks(files, repository),
  });
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
async function settings(git: Git, repository: string, kind: string, source: readonly string[]): Promise<Items> {
  const printed = await runOwn(git, repositoryDir(repository), ['config', ...source, '--list', '-z']);
  // A missing file has no settings.
  const entries = printed.ok ? printed.value.split('\0').filter((entry) => entry !== '') : [];
  const others = entries.map((entry) => entry.split('\n')).filter(([key = '']) => !noted.test(key));
  const values = Map.groupBy(others, ([key]) => `${kind} ${key}`);
  return Object.fromEntries([...values].map(([name, all]) => [name, Bun.hash(JSON.stringify(all)).toString(36)]));
}

function hooks(files: Files, repository: string): Items {
  const names = files.list(join(repository, 'hooks')).filter((name) => !name.endsWith('.sample'));
  const others = names.map((name) => `hooks/${name}`);
  const found = [...others, 'info/attributes', 'info/exclude'].flatMap((name) => {
    const path = join(repository, name);
    if (files.info(path)?.kind !== 'file') return [];
    // FABER's commands write that line.
    const lines = (files.readText(path) ?? '').split('\n').filter((line) => line !== '' && line !== '.active-run-id');
    return [[name, Bun.hash(lines.join('\n')).toString(36)]];
  });
  return Object.fromEntries(found);
}
