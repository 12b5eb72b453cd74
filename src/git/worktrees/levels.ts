/** What lies around a worktree: the folders above the user's checkout, with links to what else they hold. */
import { basename, dirname, join, relative } from 'node:path';
import type { Files } from '../../system/world.ts';

/** Instructions for claude and configuration of tools that are looked for in the folders above a project. */
const configurationFiles: ReadonlySet<string> = new Set([
  ...['CLAUDE.md', 'CLAUDE.local.md', 'AGENTS.md', '.claude', '.mcp.json', '.env', '.envrc', '.editorconfig'],
  ...['.cargo', '.config', '.yarn', '.npmrc', '.yarnrc', '.yarnrc.yml', '.pnpmfile.cjs', '.nvmrc', '.node-version'],
  ...['.python-version', '.ruby-version', '.tool-versions', 'mise.toml', '.mise.toml', 'package.json', 'nx.json'],
  ...['pnpm-workspace.yaml', 'lerna.json', 'turbo.json', 'tsconfig.json', 'tsconfig.base.json', 'biome.json'],
  ...['deno.json', 'Cargo.toml', 'rust-toolchain', 'rust-toolchain.toml', 'go.work', 'pyproject.toml', 'ruff.toml'],
  ...['setup.cfg', 'tox.ini', 'conftest.py', 'Makefile', 'justfile', 'compose.yaml', 'compose.yml', 'pom.xml'],
  ...['docker-compose.yml', 'docker-compose.yaml', 'settings.gradle', 'settings.gradle.kts', 'gradle.properties'],
  ...['Directory.Build.props', 'Directory.Packages.props', 'global.json', 'NuGet.config', 'MODULE.bazel', 'WORKSPACE'],
]);
const configurationName =
  /^(?:\.(?:eslint|prettier|babel|stylelint)rc|(?:eslint|prettier|babel|jest|vitest)\.config\.)/;
function isBelow(path: string, folder: string): boolean {
  return folder === '/' ? path !== '/' : path.startsWith(`${folder}/`);
}

/**
 * The highest folder above the checkout that its workspace shows: one that holds configuration, or that the checkout
 * shares with one of `others`, and lies below the home folder; else the parent. All paths are real ones.
 */
function highestLevel(files: Files, checkout: string, home: string, others: readonly string[]): string {
  const border = isBelow(checkout, home) ? home : '/';
  let highest = dirname(checkout);
  for (let folder = dirname(highest); isBelow(folder, border); folder = dirname(folder)) {
    const isShared = others.some((other) => isBelow(other, folder) && !isBelow(other, highest));
    if (isShared || holdsConfiguration(files, folder)) highest = folder;
  }
  return highest;
}

function holdsConfiguration(files: Files, folder: string): boolean {
  return entriesOf(files, folder).some((name) => configurationFiles.has(name) || configurationName.test(name));
}

/** None of a folder that may not be read. */
function entriesOf(files: Files, folder: string): string[] {
  try {
    return files.list(folder);
  } catch {
    return [];
  }
}

export interface NewPlace {
  readonly checkout: string;
  readonly home: string;
  /** Checkouts on whose work the session builds. */
  readonly others: readonly string[];
}

/** Where a new worktree of the checkout lies below `top`, the session's own folder. */
export function placeBelow(files: Files, top: string, { checkout, home, others }: NewPlace): string {
  const highest = highestLevel(files, checkout, files.realPath(home) ?? home, others);
  return join(top, basename(highest), relative(highest, checkout));
}

/** The folder of the session of that name above its worktree; null for a worktree that lies elsewhere. */
export function topOf(path: string, name: string): string | null {
  const at = path.lastIndexOf(`/${name}/`);
  return at < 0 ? null : path.slice(0, at + 1 + name.length);
}

/** Folders below `top` that git has filled, through no link. */
export function checkoutsBelow(files: Files, top: string): string[] {
  if (files.entryKind(top) !== 'folder') return [];
  if (files.entryKind(join(top, '.git')) !== null) return [top];
  return entriesOf(files, top).flatMap((name) => checkoutsBelow(files, join(top, name)));
}

/** Removes the levels once the worktree is gone. Returns what else somebody has put there, which stays. */
export function removeLevels(files: Files, top: string): string[] {
  const left: string[] = [];
  for (const name of files.list(top)) {
    const path = join(top, name);
    const kind = files.entryKind(path);
    if (kind === 'link' || name === '.claude') files.remove(path);
    else if (kind === 'folder' && files.entryKind(join(path, '.git')) === null) left.push(...removeLevels(files, path));
    else left.push(path);
  }
  if (left.length === 0) files.remove(top);
  return left;
}
