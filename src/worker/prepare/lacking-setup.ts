/** What a new worktree has only after a set-up command: installed packages and submodules. */
import { basename, dirname, join } from 'node:path';
import { shellWord } from '../../core/advice.ts';
import { findRepository } from '../../git/git.ts';
import type { World } from '../../system/world.ts';
import { projectFileFor } from '../../template/workflow/project-file.ts';

interface Installer {
  readonly command: string;
  /** The folder into which it installs. */
  readonly into: string;
}

/**
 * Installs what a lockfile of the project, or at the top of its repository, names; null if there is none, or the
 * project file has a set-up command.
 */
export function installerOf(world: World, project: string): Installer | null {
  const own = projectFileFor(world, project);
  if (own.ok && own.value?.work.setup !== undefined) return null;
  for (const place of new Set([project, topOf(world, project)])) {
    // What is at the top of a repository may serve other projects of it.
    const found = installers.find(([lock, , folder]) => {
      return [join(place, lock), join(project, manifests[folder])].every((path) => isThere(world, path));
    });
    if (found !== undefined) return { command: found[1], into: join(place, found[2]) };
  }
  return null;
}

const manifests = { node_modules: 'package.json', '.venv': 'pyproject.toml', vendor: 'composer.json' } as const;
const installers: readonly (readonly [lock: string, command: string, folder: keyof typeof manifests])[] = [
  ['package-lock.json', 'npm ci', 'node_modules'],
  ['pnpm-lock.yaml', 'pnpm install --frozen-lockfile', 'node_modules'],
  ['yarn.lock', 'yarn install --frozen-lockfile', 'node_modules'],
  ['bun.lock', 'bun install --frozen-lockfile', 'node_modules'],
  ['uv.lock', 'uv sync --frozen', '.venv'],
  ['poetry.lock', 'poetry install', '.venv'],
  ['composer.lock', 'composer install', 'vendor'],
];

/** Sentences with the remedy; none for a session that has a set-up command. */
export function lackingSetup(
  world: World,
  { projectPath, setup }: { readonly projectPath: string; readonly setup?: string | undefined },
): string[] {
  if (setup !== undefined) return [];
  const top = topOf(world, projectPath);
  const fill = "Fill them in each one with --setup 'git submodule update --init'.";
  const modules = isThere(world, join(top, '.gitmodules'))
    ? [`${top}: submodules are empty in worktrees. ${fill}`]
    : [];
  const { command, into } = installerOf(world, projectPath) ?? {};
  if (command === undefined || into === undefined || !isThere(world, into)) return modules;
  const [place, folder] = [dirname(into), basename(into)];
  const included = join(place, '.worktreeinclude');
  if (isThere(world, included) && world.files.readText(included)?.includes(folder) === true) return modules;
  const install = `Install them in each one with --setup ${shellWord(command)}.`;
  return [...modules, `${place}: worktrees lack the packages in ${folder}. ${install}`];
}

const topOf = ({ files }: World, project: string): string => findRepository(files, project)?.top ?? project;

/** False also where this user may not look. */
function isThere({ files }: World, path: string): boolean {
  try {
    return files.entryKind(path) !== null;
  } catch {
    return false;
  }
}
