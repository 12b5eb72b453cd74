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
const alternativesMax = 1_000;
const patternLengthMax = 4_096;

/** True for texts that are a pattern rather than one path. */
export function isPattern(text: string): boolean {
  return /[*?]/.test(text) || (expandBraces(text)?.length ?? 2) > 1;
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
  const alternatives = expandBraces(pattern);
  if (alternatives === null) return { ok: false, trouble: `stands for more than ${alternativesMax} patterns` };
  const found = new Set<string>();
  for (const alternative of alternatives) {
    const { start, segments } = splitPattern(alternative);
    if (segments.includes('..')) return { ok: false, trouble: 'has ".." after a part with "*" or "?"' };
    const root = resolvePath(start);
    if (!root.ok) return root;
    try {
      walk(world, root.path, segments, count, found);
    } catch (error) {
      if (error instanceof TooMuch) return { ok: false, trouble: error.message };
      return { ok: false, trouble: `cannot be looked through (${systemCode(error)})` };
    }
  }
  return { ok: true, folders: [...found].sort() };
}

/** Leaves a walk from within; never leaves this file. */
class TooMuch extends Error {}

/** The path before the first part with a wildcard, and the parts from there on. */
function splitPattern(pattern: string): { readonly start: string; readonly segments: readonly string[] } {
  const parts = pattern.split('/');
  const first = parts.findIndex((part) => /[*?]/.test(part));
  if (first < 0) return { start: pattern, segments: [] };
  const before = parts.slice(0, first).join('/');
  const start = before !== '' ? before : pattern.startsWith('/') ? '/' : '.';
  const segments = parts.slice(first).filter((part) => part !== '' && part !== '.');
  // Two of them in a row mean the same as one.
  return { start, segments: segments.filter((part, index) => part !== '**' || segments[index - 1] !== '**') };
}

interface Step {
  readonly folder: string;
  readonly index: number;
}

function walk(world: World, root: string, segments: readonly string[], count: GlobCount, found: Set<string>): void {
  const { files } = world;
  const realRoot = files.realPath(root);
  if (realRoot === null) return;
  const kindOf = (path: string): 'folder' | 'link' | 'other' => {
    count.entries += 1;
    if (count.entries > entriesMax) throw new TooMuch(`looks at more than ${entriesMax} files`);
    const kind = files.entryKind(path);
    if (kind === 'folder') return 'folder';
    return kind === 'link' && leadsBelow(world, path, realRoot) ? 'link' : 'other';
  };
  const seen = new Set<string>();
  const open: Step[] = [{ folder: root, index: 0 }];
  const go = (folder: string, index: number) => {
    const key = `${index} ${folder}`;
    if (!seen.has(key)) open.push({ folder, index });
    seen.add(key);
  };
  for (let step = open.pop(); step !== undefined; step = open.pop()) {
    const { folder, index } = step;
    const segment = segments[index];
    if (segment === undefined) {
      if (files.info(folder)?.kind === 'folder') found.add(folder);
      continue;
    }
    if (!/[*?]/.test(segment)) {
      const path = join(folder, segment);
      if (kindOf(path) !== 'other') go(path, index + 1);
      continue;
    }
    const isDeep = segment === '**';
    // At the end `**` means what lies below, not the folder itself.
    if (isDeep && index < segments.length - 1) go(folder, index + 1);
    for (const name of namesIn(world, folder, count)) {
      const isHidden = name.startsWith('.') && !segment.startsWith('.');
      if (isHidden || !(isDeep || matchesSegment(segment, name))) continue;
      const path = join(folder, name);
      const kind = kindOf(path);
      if (kind === 'other') continue;
      if (!isDeep) go(path, index + 1);
      // Links could lead back to where the walk is.
      else if (kind === 'folder') go(path, index);
      if (isDeep && index === segments.length - 1) found.add(path);
    }
  }
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

/** Whether a name fits one part of a pattern. Takes at most the product of both lengths, whatever they are. */
export function matchesSegment(segment: string, name: string): boolean {
  const pattern = [...segment];
  const letters = [...name];
  let p = 0;
  let star = -1;
  let resume = 0;
  for (let n = 0; n < letters.length; ) {
    if (p < pattern.length && pattern[p] === '*') {
      star = p;
      resume = n;
      p += 1;
    } else if (p < pattern.length && (pattern[p] === '?' || pattern[p] === letters[n])) {
      p += 1;
      n += 1;
    } else if (star >= 0) {
      // The last star takes one letter more.
      p = star + 1;
      resume += 1;
      n = resume;
    } else return false;
  }
  while (pattern[p] === '*') p += 1;
  return p === pattern.length;
}

/** `a{b,c}` as `ab` and `ac`; braces without a comma or a partner stay. Null when there would be too many. */
export function expandBraces(pattern: string): string[] | null {
  const done: string[] = [];
  const open = [pattern];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const choice = firstChoice(next);
    if (choice === null) done.push(next);
    else {
      const { start, end, alternatives } = choice;
      const [before, after] = [next.slice(0, start), next.slice(end)];
      open.push(...alternatives.map((alternative) => before + alternative + after).reverse());
    }
    if (done.length + open.length > alternativesMax) return null;
  }
  return done;
}

interface Choice {
  readonly start: number;
  readonly end: number;
  readonly alternatives: readonly string[];
}

/** The first pair of braces with a comma of its own. */
function firstChoice(pattern: string): Choice | null {
  const opened: { readonly start: number; readonly commas: number[] }[] = [];
  let best: Choice | null = null;
  for (let index = 0; index < pattern.length; index += 1) {
    const letter = pattern[index];
    if (letter === '{') opened.push({ start: index, commas: [] });
    else if (letter === ',') opened.at(-1)?.commas.push(index);
    else if (letter === '}') {
      const pair = opened.pop();
      if (pair === undefined || pair.commas.length === 0 || (best !== null && pair.start > best.start)) continue;
      const cuts = [pair.start, ...pair.commas, index];
      const alternatives = cuts.slice(1).map((cut, at) => pattern.slice((cuts[at] as number) + 1, cut));
      best = { start: pair.start, end: index + 1, alternatives };
      if (opened.length === 0) return best;
    }
  }
  return best;
}
