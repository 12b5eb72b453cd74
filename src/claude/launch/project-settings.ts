/** Checks a project's claude settings for what our settings cannot override. */
import { dirname, join, resolve } from 'node:path';
import { defined } from '../../core/defined.ts';
import { fail, ok, type Result } from '../../core/failure.ts';
import { type JsonObject, parseJson } from '../../store/json.ts';
import type { World } from '../../system/world.ts';
import { list, object } from '../lenient.ts';
import { unprotectedTelemetry, unprotectedVariables } from './settings.ts';
import { type Environment, isOn } from './variables.ts';

export interface SettingsFile {
  readonly path: string;
  readonly settings: JsonObject;
}

/**
 * The settings that claude reads for a project: those of its own folder and, of its repository, the local file that
 * claude reads too. `names`: files in the project's `.claude` to read.
 */
export function findSettings(
  world: World,
  projectPath: string,
  names: readonly string[] = settingsFiles,
): readonly SettingsFile[] {
  const own = names.map((name) => join(projectPath, '.claude', name));
  const roots = checkoutRoots(world, projectPath).map((root) => join(root, '.claude', localSettings));
  return [...new Set([...own, ...roots])]
    .map((path) => ({ path, settings: settingsAt(world, path) }))
    .filter(({ settings }) => Object.keys(settings).length > 0);
}

/**
 * Refuses a project whose settings would change a worker's payer or the reader of its requests, stop its programs, or
 * hide its instructions. Invalid JSON is ignored, as by claude. Fails with `spawn-failed`, naming the file and the
 * variable or setting.
 */
export function checkFound(world: World, found: readonly SettingsFile[], env: Environment): Result<void> {
  const forbidden = () => [...unprotectedVariables(env), ...unprotectedTelemetry(env)];
  for (const { path, settings } of found) {
    const checked = checkAll(world, settings, path, env, forbidden);
    if (!checked.ok) return checked;
  }
  return ok(undefined);
}

export const sharedSettingsFile = 'settings.json';
/** Usually personal, but a repository may contain one. */
const localSettings = 'settings.local.json';
export const settingsFiles = [sharedSettingsFile, localSettings];

/**
 * The model set by `settings`, those of the session's config dir. It is passed on the command line, because claude
 * rewrites the model of a new config dir. None if the project or the environment names one, which wins over the config
 * dir but not over the command line.
 */
export function modelOfSettings(
  settings: JsonObject,
  ofProject: readonly SettingsFile[],
  env: Environment,
): string | undefined {
  const named = ({ model }: JsonObject) => (typeof model === 'string' && model !== '' ? model : undefined);
  const isOther = (env.ANTHROPIC_MODEL ?? '') !== '' || ofProject.some(({ settings: own }) => named(own) !== undefined);
  return isOther ? undefined : named(settings);
}

/** The merged settings for Git and attribution: the project's override `base`, as in claude. */
export function gitSettings(base: JsonObject, ofProject: readonly SettingsFile[]): JsonObject {
  const all = [base, ...ofProject.map(({ settings }) => settings)];
  const said = (key: string) => defined({ [key]: all.findLast((one) => one[key] !== undefined)?.[key] });
  const attribution = Object.assign({}, ...all.map((one) => object(one.attribution)));
  return { attribution, ...said('includeGitInstructions'), ...said('includeCoAuthoredBy') };
}

/** The same check for other settings, which may say where telemetry goes; `source` begins the sentence. */
export function checkSettings(world: World, settings: JsonObject, source: string, env: Environment): Result<void> {
  return checkAll(world, settings, source, env, () => unprotectedVariables(env));
}

function checkAll(
  world: World,
  settings: JsonObject,
  source: string,
  env: Environment,
  forbidden: () => readonly string[],
): Result<void> {
  const instructions = join(env.CLAUDE_CONFIG_DIR ?? '', 'CLAUDE.md');
  const stated = object(settings.env);
  const isForeign = (variable: string) => stated[variable] !== undefined && stated[variable] !== env[variable];
  // Most settings have no variables, and listing them takes longer than the rest.
  const found = Object.keys(stated).length === 0 ? undefined : forbidden().find(isForeign);
  if (found !== undefined) {
    const effect = 'change who pays for the session, who reads its requests, or which programs run';
    const message = `${source} sets ${found}, which could ${effect}, and cannot be overridden.`;
    return fail('spawn-failed', message, 'Remove it there. To use it, set it in your own environment.');
  }
  // Any settings file may disable compaction, and no other setting can enable it again.
  if (isOn(String(stated.DISABLE_COMPACT ?? '')) && !isOn(env.DISABLE_COMPACT)) {
    const message = `${source} sets DISABLE_COMPACT, which would end the session when its conversation is full.`;
    return fail('spawn-failed', message, 'Remove it there. To use it, set it in your own environment.');
  }
  const pattern = list(settings.claudeMdExcludes).find((item) => mayExclude(world, item, instructions));
  if (pattern === undefined) return ok(undefined);
  const what = `claudeMdExcludes ${JSON.stringify(pattern)}`;
  const message = `${source} says ${what}, which could hide the session’s own instructions.`;
  return fail('spawn-failed', message, `Make the pattern match only the project's files, not ${instructions}.`);
}

/** As claude matches: with symlinks in the fixed part of a pattern resolved. */
function mayExclude({ files }: World, pattern: unknown, path: string): boolean {
  if (typeof pattern !== 'string') return false;
  const plain = pattern
    .replaceAll('\\', '/')
    .replace(/^\.\/|\/+$/g, '')
    .replace(/\/+/g, '/');
  const fixed = plain.slice(0, plain.search(/[*?{[]|$/));
  const folder = fixed.slice(0, fixed.lastIndexOf('/')) || '/';
  const real = plain.startsWith('/') ? files.realPath(folder) : null;
  const candidates = real === null ? [plain] : [plain, join(real, plain.slice(folder.length))];
  // Bun does not support these, so they count as a match.
  const isUnsupported = /[!|()"]|\[\[|\{[^}]*\{/.test(plain);
  return isUnsupported || candidates.some((candidate) => new Bun.Glob(candidate).match(path));
}

export function settingsAt(world: Pick<World, 'files'>, path: string): JsonObject {
  const info = world.files.info(path);
  if (info?.kind !== 'file') return {};
  return parseSettings(world.files.readBytes(path, 0, info.size));
}

/** claude's view of a settings file: empty without a JSON object. */
export function parseSettings(bytes: Uint8Array): JsonObject {
  // claude accepts both byte order marks; the decoder removes them, because a JSON parser would fail.
  const encoding = bytes[0] === 0xff && bytes[1] === 0xfe ? 'utf-16le' : 'utf-8';
  return object(parseJson(new TextDecoder(encoding).decode(bytes)));
}

// claude also reads personal settings from the main checkout of the repository, even when it runs in another worktree.

/** Of a `.git` file and the file it names; a longer one is invalid. */
const pointerBytes = 8_192;

/**
 * The possible roots of the repository of `folder`: its checkout and, for a worktree, the main one. None outside a
 * repository. Read from files, because git itself would first obey the repository's configuration.
 */
export function checkoutRoots(world: World, folder: string): string[] {
  for (let at = world.files.realPath(folder) ?? folder; ; at = dirname(at)) {
    const kind = world.files.entryKind(join(at, '.git'));
    if (kind !== null) return kind === 'file' ? [at, ...mainRoots(world, at)] : [at];
    if (dirname(at) === at) return [];
  }
}

function mainRoots(world: World, root: string): string[] {
  const named = /^gitdir: *(.+?)\s*$/.exec(pointer(world, join(root, '.git')))?.[1];
  if (named === undefined) return [];
  const gitDir = resolve(root, named);
  const common = resolve(gitDir, pointer(world, join(gitDir, 'commondir')).trim());
  // A bare repository is its own root.
  return [dirname(common), common];
}

function pointer(world: World, path: string): string {
  if (world.files.info(path)?.kind !== 'file') return '';
  return new TextDecoder().decode(world.files.readBytes(path, 0, pointerBytes));
}

const ownNames = ['CLAUDE.md', join('.claude', 'CLAUDE.md'), 'CLAUDE.local.md'];
/** claude reads it if the project and the folders above have none of the others. */
export const sharedName = 'AGENTS.md';

/** Absolute paths, the outermost folder first: claude searches from the project up to the root. */
export function projectInstructions(world: World, projectPath: string, excluded: readonly string[] = []): string[] {
  const folders = [projectPath];
  for (let folder = projectPath; dirname(folder) !== folder; folder = dirname(folder)) folders.unshift(dirname(folder));
  const existing = (names: readonly string[]) =>
    folders
      .flatMap((folder) => names.map((name) => join(folder, name)))
      .filter((path) => !excluded.includes(path) && isFile(world, path));
  const own = existing(ownNames);
  return own.length > 0 ? own : existing([sharedName]);
}

/** Folders above a project may be unreadable for us, and then for claude as well. */
function isFile(world: World, path: string): boolean {
  try {
    return world.files.info(path)?.kind === 'file';
  } catch {
    return false;
  }
}
