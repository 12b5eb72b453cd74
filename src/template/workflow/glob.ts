/**
 * Patterns for folders: `*`, `?`, `**` and `{a,b}`. Hidden folders are left out unless the pattern names the dot, and
 * links are only taken when they stay below the folder in which the pattern begins.
 */
import { join, sep } from 'node:path';
import type { World } from '../../system/world.ts';
import { systemCode } from '../text-file.ts';

/** A pattern that looks at more is a mistake, such as the root of the disk. */
const foldersMax = 10_000;
const entriesMax = 100_000;
const patternLengthMax = 4_096;

/** True for texts that are a pattern rather than one path. */
export function isPattern(text: string): boolean {
  return /[*?]|\{.*,.*\}/s.test(text);
}

/** Brackets, a leading `!` and the backslash have no meaning in our patterns. */
export function globOf(pattern: string): Bun.Glob {
  return new Bun.Glob(pattern.replace(/[[\]!\\]/g, '\\$&'));
}

/** How much was looked at; shared by all patterns of a workflow. */
export interface GlobCount {
  folders: number;
  entries: number;
}

export type Matched =
  | { readonly ok: true; readonly folders: readonly string[] }
  /** `trouble` completes a sentence that begins with the pattern; no full stop. */
  | { readonly ok: false; readonly trouble: string };

/** Where a path or the fixed beginning of a pattern leads; what is wrong with it as a sentence's end. */
export type Resolve = (
  path: string,
) => { readonly ok: true; readonly path: string } | { readonly ok: false; readonly trouble: string };

/** The folders that fit, sorted. Fails when the pattern makes no sense or looks at too much. */
export function matchFolders(world: World, pattern: string, resolvePath: Resolve, count: GlobCount): Matched {
  if (pattern.length > patternLengthMax) {
    return { ok: false, trouble: `is longer than ${patternLengthMax} characters` };
  }
  if (pattern.includes('\0')) return { ok: false, trouble: 'cannot be a path: it holds a NUL character' };
  const { start, parts } = splitPattern(pattern);
  if (parts.includes('..')) return { ok: false, trouble: 'has ".." after a part with "*" or "?"' };
  const root = resolvePath(start);
  if (!root.ok) return root;
  const realRoot = world.files.realPath(root.path);
  if (realRoot === null) return { ok: true, folders: [] };
  const found: string[] = [];
  try {
    walk(world, { root: root.path, realRoot, parts, count, found });
  } catch (error) {
    if (error instanceof TooMuch) return { ok: false, trouble: error.message };
    return { ok: false, trouble: `cannot be looked through (${systemCode(error)})` };
  }
  return { ok: true, folders: found.sort() };
}

/** Leaves a walk from within; never leaves this file. */
class TooMuch extends Error {}

/** The path before the first part with a wildcard, and the parts from there on. */
function splitPattern(pattern: string): { readonly start: string; readonly parts: readonly string[] } {
  const slash = pattern.lastIndexOf('/', pattern.search(/[*?{]/));
  const start = slash < 0 ? '.' : pattern.slice(0, slash) || '/';
  const parts = pattern.slice(slash + 1).split('/');
  return { start, parts: parts.filter((part) => part !== '' && part !== '.') };
}

interface Search {
  readonly root: string;
  readonly realRoot: string;
  readonly parts: readonly string[];
  readonly count: GlobCount;
  readonly found: string[];
}

function walk(world: World, { root, realRoot, parts, count, found }: Search): void {
  const whole = parts.join('/');
  const matcher = globOf(whole);
  // Up to the first `**`, or the first choice between whole paths, one folder level is one part of the pattern.
  const firstDeep = parts.findIndex((part) => part === '**' || part.split('{').length !== part.split('}').length);
  const plain = (firstDeep < 0 ? parts : parts.slice(0, firstDeep)).map(globOf);
  const deepest = parts.includes('**') ? Number.POSITIVE_INFINITY : parts.length;
  const hiddenMax = whole.match(/(?<=^|[/{,])\./g)?.length ?? 0;
  const visit = (path: string, depth: number): void => {
    for (const name of namesIn(world, join(root, path), count)) {
      if (plain[depth]?.match(name) === false || (name.startsWith('.') && !hasRoomForHidden(path, hiddenMax))) continue;
      const inner = path === '' ? name : `${path}/${name}`;
      const kind = kindOf(world, join(root, inner), realRoot, count);
      if (kind === 'other') continue;
      if (matcher.match(inner)) found.push(join(root, inner));
      // Links could lead back to where the walk is.
      if (depth + 1 < deepest && (kind === 'folder' || depth < plain.length)) visit(inner, depth + 1);
    }
  };
  visit('', 0);
}

/** Each hidden folder on the way takes a dot that the pattern writes. */
function hasRoomForHidden(path: string, hiddenMax: number): boolean {
  return path.split('/').filter((name) => name.startsWith('.')).length < hiddenMax;
}

function kindOf(world: World, path: string, realRoot: string, count: GlobCount): 'folder' | 'link' | 'other' {
  count.entries += 1;
  if (count.entries > entriesMax) throw new TooMuch(`looks at more than ${entriesMax} files`);
  const kind = world.files.entryKind(path);
  if (kind === 'folder') return 'folder';
  return kind === 'link' && leadsBelow(world, path, realRoot) ? 'link' : 'other';
}

function namesIn(world: World, folder: string, count: GlobCount): readonly string[] {
  count.folders += 1;
  if (count.folders > foldersMax) throw new TooMuch(`looks through more than ${foldersMax} folders`);
  return world.files.info(folder)?.kind === 'folder' ? world.files.list(folder) : [];
}

/** A link to a folder below the root; one that leads nowhere or to itself does not. */
function leadsBelow({ files }: World, path: string, realRoot: string): boolean {
  try {
    const real = files.realPath(path);
    return real?.startsWith(withSlash(realRoot)) === true && files.info(real)?.kind === 'folder';
  } catch (error) {
    systemCode(error);
    return false;
  }
}

function withSlash(path: string): string {
  return path.endsWith(sep) ? path : path + sep;
}
