/** The surroundings of a worktree: the folders above the user's checkout, with symlinks to their other entries. */
import { basename, dirname, join, relative } from 'node:path';
import type { GroupId, SessionId, Workspace } from '../../core/group.ts';
import type { SessionRecord } from '../../core/session-state.ts';
import { workspaceName } from '../../store/paths.ts';
import type { Files } from '../../system/world.ts';
import { findRepository, type Git } from '../git.ts';

/** Instructions for claude and tool configuration that are searched in the folders above a project. */
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
/** Dot folders in which tools search upwards, and claude's. */
const linkedDotFolders: ReadonlySet<string> = new Set(['.cargo', '.config', '.yarn', '.claude']);

function isBelow(path: string, folder: string): boolean {
  return folder === '/' ? path !== '/' : path.startsWith(`${folder}/`);
}

/**
 * The highest folder above the checkout that its workspace shows: one below home that has configuration, or that the
 * checkout shares with one of `others`; otherwise the parent. All are real paths.
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

/** Empty for an unreadable folder. */
function entriesOf(files: Files, folder: string): string[] {
  try {
    return files.list(folder);
  } catch {
    return [];
  }
}

export interface NewWorkspaceFolder {
  readonly checkout: string;
  readonly home: string;
  /** Checkouts of the session's dependencies. */
  readonly others: readonly string[];
}

/** The path of a new worktree of the checkout below `top`, the session's own folder. */
export function placeBelow(files: Files, top: string, { checkout, home, others }: NewWorkspaceFolder): string {
  const highest = highestLevel(files, checkout, files.realPath(home) ?? home, others);
  return join(top, basename(highest), relative(highest, checkout));
}

/** The session's folder above its worktree; null for a worktree elsewhere. */
export function topOf(path: string, name: string): string | null {
  const at = path.lastIndexOf(`/${name}/`);
  return at < 0 ? null : path.slice(0, at + 1 + name.length);
}

/** A session's worktree with its levels, by the ids of group and session; null for one without levels. */
export function aroundOf(
  { world: { files }, env }: Git,
  [groupId, sessionId]: readonly [groupId: GroupId, sessionId: SessionId],
  { path, checkout }: Workspace,
): Levels | null {
  const top = topOf(path, workspaceName(groupId, sessionId));
  if (top === null || checkout === undefined) return null;
  return { top, path, checkout: files.realPath(checkout) ?? checkout, home: env.HOME ?? '/' };
}

/** The user's checkout that contains the session's project. */
export function checkoutOf(files: Files, { definition, workspace }: Pick<SessionRecord, 'definition' | 'workspace'>) {
  const { projectPath } = definition;
  return workspace?.checkout ?? findRepository(files, projectPath)?.top ?? projectPath;
}

export interface Levels {
  /** The session's folder; the worktree is below it. */
  readonly top: string;
  readonly path: string;
  /** The user's checkout, which the worktree replaces. */
  readonly checkout: string;
  readonly home: string;
}

export interface WorkspaceLinks extends Levels {
  /** Other checkouts of the user, and their replacement folders. */
  readonly places: ReadonlyMap<string, string>;
}

export interface LinkedEntry {
  readonly link: string;
  readonly target: string;
}

/** The highest level: the user's folder and its replacement. */
function highestOf({ top, path, checkout }: Levels) {
  const levels = relative(top, path).split('/').length - 1;
  let [original, copy] = [checkout, path];
  for (let level = 0; level < levels; level += 1) [original, copy] = [dirname(original), dirname(copy)];
  return levels === 0 ? null : { original, copy };
}

/** The position of another checkout of the user in the levels; null outside of them. */
export function placeInLevels(around: Levels, other: string): string | null {
  const highest = highestOf(around);
  if (highest === null || !isBelow(other, highest.original)) return null;
  return join(highest.copy, relative(highest.original, other));
}

/** Creates or renews the levels above the worktree. Other files there stay. Returns all links. */
export function layOutLevels(files: Files, around: WorkspaceLinks): LinkedEntry[] {
  const highest = highestOf(around);
  if (highest === null) return [];
  const home = files.realPath(around.home) ?? around.home;
  return fillLevel(files, { ...around, home }, highest.original, highest.copy);
}

function fillLevel(files: Files, around: WorkspaceLinks, original: string, copy: string): LinkedEntry[] {
  const { top, checkout, places } = around;
  unlink(files, copy);
  files.makeFolder(copy);
  const below: LinkedEntry[] = [];
  const wanted = new Map<string, string>();
  for (const name of entriesOf(files, original)) {
    const [from, to] = [join(original, name), join(copy, name)];
    const place = places.get(from);
    // A link to the folder that contains the workspace itself would be a cycle.
    if (from === checkout || place === to || from === top || isBelow(top, from)) continue;
    if (place !== undefined) wanted.set(name, place);
    else if ([checkout, ...places.keys()].some((one) => isBelow(one, from)) && files.entryKind(from) === 'folder') {
      below.push(...fillLevel(files, around, from, to));
    } else if (isShown(files, around, original, name)) {
      if (name === '.claude') below.push(...fillInstructions(files, from, to));
      else wanted.set(name, from);
    }
  }
  return [...below, ...link(files, copy, wanted)];
}

function isShown(files: Files, { home }: WorkspaceLinks, level: string, name: string): boolean {
  const path = join(level, name);
  if (home === level || isBelow(home, level)) return files.entryKind(join(path, '.git')) !== null;
  if (!name.startsWith('.')) return true;
  return files.info(path)?.kind === 'folder' ? linkedDotFolders.has(name) : name !== '.git';
}

/** claude does not follow a symlinked rules folder, so rules are copied. */
function fillInstructions(files: Files, original: string, copy: string): LinkedEntry[] {
  unlink(files, copy);
  files.makeFolder(copy);
  const names = entriesOf(files, original);
  if (names.includes('rules')) {
    files.remove(join(copy, 'rules'));
    copyFolder(files, join(original, 'rules'), join(copy, 'rules'), copyDepthMax);
  }
  return link(
    files,
    copy,
    new Map(names.filter((name) => name !== 'rules').map((name) => [name, join(original, name)])),
  );
}

/** Symlinks may form a cycle. */
const copyDepthMax = 8;

function copyFolder(files: Files, from: string, to: string, depth: number): void {
  files.makeFolder(to);
  for (const name of entriesOf(files, from)) {
    const [source, target] = [join(from, name), join(to, name)];
    const info = files.info(source);
    if (info?.kind === 'file') files.writeBytes(target, files.readBytes(source, 0, info.size));
    else if (info?.kind === 'folder' && depth > 0) copyFolder(files, source, target, depth - 1);
  }
}

/** Makes exactly these symlinks in the folder, except where another entry has the name. */
function link(files: Files, folder: string, targets: ReadonlyMap<string, string>): LinkedEntry[] {
  for (const name of files.list(folder)) unlink(files, join(folder, name));
  return [...targets].flatMap(([name, target]) => {
    const path = join(folder, name);
    // A level that was needed before has only symlinks.
    if (files.entryKind(path) === 'folder' && files.entryKind(join(path, '.git')) === null) removeLevels(files, path);
    if (files.entryKind(path) !== null) return [];
    files.link(target, path);
    return [{ link: path, target }];
  });
}

function unlink(files: Files, path: string): void {
  if (files.entryKind(path) === 'link') files.remove(path);
}

/** Folders below `top` that git has filled, without following symlinks. */
export function checkoutsBelow(files: Files, top: string): string[] {
  if (files.entryKind(top) !== 'folder') return [];
  if (files.entryKind(join(top, '.git')) !== null) return [top];
  return entriesOf(files, top).flatMap((name) => checkoutsBelow(files, join(top, name)));
}

/** Removes the levels once the worktree is gone. Returns other files found there, which stay. */
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
