/**
 * Expands the sessions of a workflow file: a matrix of lists and project folders becomes one session for each
 * combination. Names and order depend only on the file, the variables and the folders.
 */
import { basename, isAbsolute, join, relative, resolve, sep } from 'node:path';
import { quoted, slugify } from '../../core/id.ts';
import { hasControl, sessionNameLengthMax } from '../../core/setting-values.ts';
import type { YamlPath } from '../../store/yaml-text.ts';
import { type PathResult, tryPath } from '../../system/system-error.ts';
import type { World } from '../../system/world.ts';
import { readTextFile } from '../text-file.ts';
import type { Problems } from './problems.ts';
import { fillYamlText, type NameLookup } from './problems.ts';
import type { MatrixSpec, ProjectsSpec, SessionSpec, WorkflowFile } from './schema.ts';

const sessionsMax = 10_000;
const listBytesMax = 1024 * 1024;
const valueLengthMax = 1_000;

export interface MatrixValue {
  /** The value of `{{matrix.KEY}}`; for a project its absolute path. */
  readonly text: string;
  /** The value of `{{matrix.name}}`; only for projects. */
  readonly name?: string;
  /** The values that select it in `key[VALUE]`. */
  readonly labels: readonly string[];
}

export interface Dimension {
  /** `project` for the key `projects`. */
  readonly key: string;
  readonly values: readonly MatrixValue[];
  /** The real values are unknown: one placeholder replaces all. */
  readonly isOpen: boolean;
}

export interface MatrixContext {
  readonly world: World;
  readonly baseFolder: string;
  readonly home: string | undefined;
  /** Whether to look at the disk. If not, folders need not exist, and patterns and list files are not read. */
  readonly looksUp: boolean;
  readonly problems: Problems;
}

/**
 * The absolute path that a text in the workflow file stands for. `trouble` completes a sentence that begins with the
 * path.
 */
export function resolvePath(
  { baseFolder, home }: Pick<MatrixContext, 'baseFolder' | 'home'>,
  text: string,
): PathResult<string> {
  if (text.trim() === '') return { ok: false, trouble: 'is empty' };
  if (text.includes('\0')) return { ok: false, trouble: 'is not a valid path: it contains a NUL character' };
  if (!text.startsWith('~')) return { ok: true, value: resolve(baseFolder, text) };
  if (!/^~(?:\/|$)/.test(text))
    return { ok: false, trouble: 'starts with "~" but not "~/"; only your own home folder is supported' };
  if (home === undefined || !isAbsolute(home)) return { ok: false, trouble: 'needs HOME, which is not set' };
  return { ok: true, value: resolve(home, `.${text.slice(1)}`) };
}

/** The real path of an existing folder that may be entered. */
export function realFolder({ files }: World, path: string): PathResult<string> {
  const real = tryPath((): PathResult<string> => {
    const info = files.info(path);
    if (info !== null && info.kind !== 'folder') return { ok: false, trouble: 'is not a folder' };
    // Looking through the folder needs the right to enter it, which claude needs as well.
    files.info(`${path}/.`);
    const value = files.realPath(path);
    return value === null ? { ok: false, trouble: 'does not exist' } : { ok: true, value };
  });
  return real.ok ? real.value : real;
}

/** The dimensions of a matrix in the order of the file; undefined when one of them has a problem. */
function readDimensions(
  spec: MatrixSpec,
  path: YamlPath,
  meanings: NameLookup,
  context: MatrixContext,
): readonly Dimension[] | undefined {
  const before = context.problems.size;
  const dimensions = Object.entries(spec).map(([key, given]): Dimension => {
    const at = [...path, key];
    if (key === 'projects') return projectDimension(given as ProjectsSpec, at, meanings, context);
    return valueDimension(key, given as readonly (string | number | boolean)[], at, meanings, context);
  });
  return context.problems.size === before ? dimensions : undefined;
}

function valueDimension(
  key: string,
  given: readonly (string | number | boolean)[],
  path: YamlPath,
  meanings: NameLookup,
  { problems, looksUp }: MatrixContext,
): Dimension {
  const values = new Map<string, MatrixValue>();
  let isOpen = false;
  for (const [index, raw] of given.entries()) {
    const at = [...path, index];
    const { text } = fillYamlText(at, String(raw), meanings, problems);
    // A placeholder of an unknown value may be anything.
    const isGuess = !looksUp && text !== String(raw);
    isOpen ||= isGuess;
    if (text.trim() === '') problems.at(at, 'the value is blank');
    else if (hasControl(text) || text.length > valueLengthMax) {
      problems.at(at, `expected one line of at most ${valueLengthMax} characters`);
    } else if (values.has(text) && !isGuess) problems.at(at, `${quoted(text)} appears twice`);
    values.set(text, { text, labels: [text] });
  }
  return { key, values: [...values.values()], isOpen };
}

interface Entry {
  readonly text: string;
  readonly report: (message: string) => void;
  readonly isGuess: boolean;
}

function projectDimension(spec: ProjectsSpec, path: YamlPath, meanings: NameLookup, context: MatrixContext): Dimension {
  const { problems, looksUp, baseFolder } = context;
  const written = (text: string, at: YamlPath): Entry => {
    const filled = fillYamlText(at, text, meanings, problems).text;
    return { text: filled, report: (message) => problems.at(at, message), isGuess: filled !== text };
  };
  const standIn = join(baseFolder, 'project');
  const values = new Map<string, MatrixValue>();
  const add = (folder: string, real: string) => {
    if (!values.has(real)) values.set(real, projectValue(folder, real, baseFolder));
  };
  if (typeof spec === 'object' && 'file' in spec && !looksUp) {
    written(spec.file, [...path, 'file']);
    add(standIn, standIn);
    return { key: 'project', values: [...values.values()], isOpen: true };
  }
  let isOpen = false;
  for (const entry of entriesOf(spec, path, written, context)) {
    if (!looksUp && (entry.isGuess || isPattern(entry.text))) {
      isOpen = true;
      add(standIn, standIn);
      continue;
    }
    for (const folder of foldersOf(entry, context)) {
      const real = looksUp ? realFolder(context.world, folder) : { ok: true as const, value: folder };
      if (real.ok) add(folder, real.value);
      else entry.report(`the project ${folder} ${real.trouble}`);
    }
    if (values.size > sessionsMax) {
      problems.at(path, `matches more than ${sessionsMax} projects`);
      break;
    }
  }
  return { key: 'project', values: [...values.values()], isOpen };
}

function projectValue(folder: string, real: string, baseFolder: string): MatrixValue {
  const name = basename(folder) || '/';
  const labels = new Set([name, relative(baseFolder, folder), folder, real].filter((label) => label !== ''));
  return { text: real, name, labels: [...labels] };
}

function entriesOf(
  spec: ProjectsSpec,
  path: YamlPath,
  written: (text: string, at: YamlPath) => Entry,
  context: MatrixContext,
): readonly Entry[] {
  if (typeof spec === 'string') return [written(spec, path)];
  if (Array.isArray(spec)) return spec.map((text, index) => written(text, [...path, index]));
  if ('glob' in spec) {
    const at = [...path, 'glob'];
    return typeof spec.glob === 'string'
      ? [written(spec.glob, at)]
      : spec.glob.map((text, index) => written(text, [...at, index]));
  }
  return 'file' in spec ? entriesOfFile(written(spec.file, [...path, 'file']), context) : [];
}

/** The lines of a list file; "#" begins a comment. */
function entriesOfFile(file: Entry, context: MatrixContext): Entry[] {
  const path = resolvePath(context, file.text);
  const refuse = (trouble: string) => {
    file.report(`the list ${quoted(file.text)} ${trouble}`);
    return [];
  };
  if (!path.ok) return refuse(path.trouble);
  const read = readTextFile(context.world, path.value, listBytesMax);
  if (!read.ok) return refuse(read.trouble);
  const entries = read.text.split('\n').flatMap((line, index): Entry[] => {
    const text = line.trim();
    const report = (message: string) => context.problems.add({ file: path.value, line: index + 1, column: 1, message });
    return text === '' || text.startsWith('#') ? [] : [{ text, report, isGuess: false }];
  });
  return entries.length > 0 ? entries : refuse('names no project');
}

/** The folders of a path or pattern; a folder whose name looks like a pattern is found by its name. */
function foldersOf({ text, report }: Entry, context: MatrixContext): readonly string[] {
  const plain = resolvePath(context, text);
  if (!isPattern(text) || (plain.ok && isFolder(context.world, plain.value))) {
    if (plain.ok) return [plain.value];
    report(`the project ${quoted(text)} ${plain.trouble}`);
    return [];
  }
  const folders = matchFolders(context, text);
  if (typeof folders === 'string') report(`the pattern ${quoted(text)} ${folders}`);
  else if (folders.length > 0) return folders;
  else report(`the pattern ${quoted(text)} matches no folder, searched from ${context.baseFolder}`);
  return [];
}

function isPattern(text: string): boolean {
  return /[*?]|\{.*,.*\}/s.test(text);
}

/**
 * The matching folders, sorted, or why there can be none. A symlink counts only if it leads to a folder below the
 * pattern's start folder.
 */
function matchFolders(context: MatrixContext, pattern: string): string[] | string {
  const { files } = context.world;
  const slash = pattern.lastIndexOf('/', pattern.search(/[*?{]/));
  const start = resolvePath(context, slash < 0 ? '.' : pattern.slice(0, slash) || '/');
  if (!start.ok) return start.trouble;
  const found = tryPath(() => {
    const root = files.realPath(start.value);
    if (root === null) return [];
    return files
      .match(start.value, pattern.slice(slash + 1))
      .filter((path) => files.realPath(path)?.startsWith(root.endsWith(sep) ? root : root + sep))
      .filter((path) => files.info(path)?.kind === 'folder');
  });
  return found.ok ? found.value : found.trouble;
}

function isFolder({ files }: World, path: string): boolean {
  const info = tryPath(() => files.info(path));
  return info.ok && info.value?.kind === 'folder';
}

export interface Instance {
  readonly key: string;
  readonly family: Family;
  readonly values: readonly MatrixValue[];
}

export interface Family {
  readonly key: string;
  readonly spec: SessionSpec;
  readonly dimensions: readonly Dimension[];
  /** Empty when the matrix has a problem; then its dependents are not checked. */
  readonly instances: readonly Instance[];
}

export type Families = ReadonlyMap<string, Family>;

/** Expands every matrix; names are unique and depend only on the values and their order. */
export function expandSessions(
  sessions: WorkflowFile['sessions'],
  meanings: NameLookup,
  context: MatrixContext,
): Families {
  const families = new Map<string, Family>();
  const taken = new Set(Object.keys(sessions));
  let total = 0;
  for (const [key, spec] of Object.entries(sessions)) {
    const path = ['sessions', key, 'matrix'];
    const dimensions = spec.matrix === undefined ? [] : readDimensions(spec.matrix, path, meanings, context);
    const size = dimensions?.reduce((product, { values }) => product * values.length, 1) ?? 0;
    const fits = total + size <= sessionsMax;
    if (!fits) context.problems.at(path, `the workflow would have more than ${sessionsMax} sessions`);
    const instances: Instance[] = [];
    const family: Family = { key, spec, dimensions: dimensions ?? [], instances };
    families.set(key, family);
    if (dimensions === undefined || !fits) continue;
    total += size;
    for (const values of combinations(dimensions)) {
      instances.push({ key: spec.matrix === undefined ? key : nameOf(key, values, taken), family, values });
    }
  }
  return families;
}

/** Every combination; the last dimension changes fastest. */
function combinations(dimensions: readonly Dimension[]): readonly (readonly MatrixValue[])[] {
  return dimensions.reduce<readonly (readonly MatrixValue[])[]>(
    (rows, { values }) => rows.flatMap((row) => values.map((value) => [...row, value])),
    [[]],
  );
}

/** `key-slug-slug`, cut to the maximum length, with a number when the name is taken. */
function nameOf(key: string, values: readonly MatrixValue[], taken: Set<string>): string {
  const slugs = values.map(({ name, text }) => slugify(name ?? text)).filter((slug) => slug !== '');
  const whole = [key, ...slugs].join('-');
  for (let number = 1; ; number += 1) {
    // A family's own key would name all of its sessions.
    const suffix = number === 1 ? '' : `-${number}`;
    const name = whole.slice(0, sessionNameLengthMax - suffix.length).replace(/[-._]+$/, '') + suffix;
    if (taken.has(name)) continue;
    taken.add(name);
    return name;
  }
}

/** The values of `{{matrix.KEY}}` in one session, by KEY. */
export function matrixTexts({ family, values }: Instance): ReadonlyMap<string, string> {
  const texts = new Map<string, string>();
  for (const [index, { key }] of family.dimensions.entries()) {
    const value = values[index] as MatrixValue;
    texts.set(key, value.text);
    if (value.name !== undefined) texts.set('name', value.name);
  }
  return texts;
}
