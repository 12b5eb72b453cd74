/** Finds git repositories in and below a folder for `init`, with a likely check command for each. */
import { join, resolve } from 'node:path';
import { findRepository } from '../../git/git.ts';
import type { EntryKind, World } from '../../system/world.ts';
import { projectFileFor } from '../../template/workflow/project-file.ts';
import { tryPath } from '../path-argument.ts';

export { installerOf } from '../../worker/prepare/lacking-setup.ts';

/** Limits of the search: depth and number of folders. */
const depthMax = 3;
const foldersMax = 2_000;
/** A change rarely spans more projects; users can name more with --project. */
export const projectsMax = 12;

const elsewhere: ReadonlySet<string> = new Set(['node_modules', 'vendor', 'target', 'dist', 'build']);

/** Absolute paths, sorted: the folder itself when it lies in a repository, else the repositories below it. */
export function nearbyProjects({ files }: World, folder: string): readonly string[] {
  if (findRepository(files, folder) !== null) return [folder];
  const found: string[] = [];
  let looked = 0;
  let level = [folder];
  for (let depth = 0; depth < depthMax && level.length > 0; depth += 1) {
    const next: string[] = [];
    for (const path of level.flatMap((parent) => foldersIn({ files }, parent))) {
      looked += 1;
      if (looked > foldersMax) break;
      (kindOf(files, join(path, '.git')) === null ? next : found).push(path);
    }
    level = next;
  }
  return found.sort().slice(0, projectsMax);
}

/** Symlinks are not followed: they may leave the folder or form a loop. */
function foldersIn({ files }: Pick<World, 'files'>, parent: string): string[] {
  const names = tryPath(() => files.list(parent));
  if (!names.ok) return [];
  return names.value
    .filter((name) => !name.startsWith('.') && !elsewhere.has(name))
    .map((name) => join(parent, name))
    .filter((path) => kindOf(files, path) === 'folder');
}

function kindOf(files: World['files'], path: string): EntryKind | null {
  const kind = tryPath(() => files.entryKind(path));
  return kind.ok ? kind.value : null;
}

const beside = /(?:"(?:file|link|portal):|\bpath\s*=\s*"|=>\s*)(\.\.\/[^"\s]*)/g;

/** Sibling folders that the manifests of the project name. */
export function usedBeside(files: World['files'], project: string): string[] {
  const manifests = ['package.json', 'Cargo.toml', 'go.mod', 'pyproject.toml'];
  const text = manifests.map((name) => readIn(files, project, name)).join('\n');
  return [...text.matchAll(beside)].map(([, path = '']) => resolve(project, path));
}

export function readIn(files: World['files'], folder: string, name: string): string {
  const text = tryPath(() => files.readText(join(folder, name)));
  return text.ok ? (text.value ?? '') : '';
}

/** For each project, the other projects that it uses, without cycles. */
export function orderOf(files: World['files'], projects: readonly string[]): ReadonlyMap<string, readonly string[]> {
  const order = new Map<string, readonly string[]>();
  const needs = (from: string, wanted: string): boolean =>
    from === wanted || (order.get(from) ?? []).some((next) => needs(next, wanted));
  for (const project of projects) {
    const used = usedBeside(files, project);
    const isUsed = (other: string) => used.some((path) => path === other || path.startsWith(`${other}/`));
    order.set(
      project,
      projects.filter((other) => isUsed(other) && !needs(other, project)),
    );
  }
  return order;
}

/** The likely check command; null if none is found, or the project file already sets one. */
export function checkCommandFor(world: World, project: string): string | null {
  const own = projectFileFor(world, project);
  if (own.ok && own.value?.work.accept !== undefined) return null;
  const textOf = (name: string): string => readIn(world.files, project, name);
  const has = (name: string): boolean => kindOf(world.files, join(project, name)) !== null;
  const [, target] = /^(test|check)\s*:(?!=)/m.exec(textOf('Makefile')) ?? [];
  if (has('package.json') && hasTestScript(textOf('package.json'))) return `${packageManager(has)} test`;
  if (target !== undefined) return `make ${target}`;
  const [, command] = others.find(([file]) => has(file)) ?? [];
  return command ?? null;
}

/** The default test script of `npm init` is not a test. */
function hasTestScript(text: string): boolean {
  try {
    const { scripts } = JSON.parse(text) as { scripts?: { test?: unknown } };
    return typeof scripts?.test === 'string' && !scripts.test.includes('no test specified');
  } catch {
    return false;
  }
}

function packageManager(has: (name: string) => boolean): string {
  if (has('pnpm-lock.yaml')) return 'pnpm';
  if (has('yarn.lock')) return 'yarn';
  return has('bun.lock') || has('bun.lockb') ? 'bun run' : 'npm';
}

const others: readonly (readonly [file: string, command: string])[] = [
  ['Cargo.toml', 'cargo test'],
  ['go.mod', 'go test ./...'],
  ['mix.exs', 'mix test'],
  ['deno.json', 'deno test'],
  ['pom.xml', 'mvn -q test'],
  ['gradlew', './gradlew test'],
  ['tox.ini', 'tox'],
  ['pytest.ini', 'python3 -m pytest'],
  ['pyproject.toml', 'python3 -m pytest'],
];
