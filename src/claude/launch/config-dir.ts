/**
 * Writes the files of a worker's config dir before every attempt: paths and dependencies may have changed, and the
 * worker can write there.
 */

import { dirname, join } from 'node:path';
import { defined } from '../../core/defined.ts';
import { ok, type Result } from '../../core/failure.ts';
import { type JsonObject, parseJson } from '../../store/json.ts';
import type { SessionPaths } from '../../store/paths.ts';
import { systemFailure } from '../../store/system-failure.ts';
import type { Files, World } from '../../system/world.ts';
import { list, object } from '../lenient.ts';
import { type InstructionsInput, instructions, standingInstructions, withoutOwnGitWords } from './instructions.ts';
import { checkoutRoots } from './project-settings.ts';
import {
  type ConfigSettingsInput,
  hookElsewhere,
  inCleanEnvironment,
  mergedSettings,
  workerSettings,
} from './settings.ts';
import type { Environment } from './variables.ts';

export interface ConfigDirInput {
  readonly paths: SessionPaths;
  /** The worker's environment. Its payment variables are also written to the settings. */
  readonly env: Environment;
  readonly helpers?: Readonly<Record<string, string>>;
  readonly instructions: InstructionsInput;
  readonly settings: ConfigSettingsInput;
  readonly files: readonly { readonly path: string; readonly bytes: Uint8Array }[];
  readonly mcp: JsonObject | null;
  /** The user's own config dir, if the session inherits it. */
  readonly inherited?: string;
}

/** Folders of the config dir that claude reads and that only we write. */
const ownedFolders = ['commands', 'skills', 'agents', 'rules', 'output-styles', 'plugin-dirs'];

/** The path of a config template's file. `plugins` is used by claude itself. */
function placeOf(configDir: string, path: string): string {
  return join(configDir, path.replace(/^plugins\//, 'plugin-dirs/'));
}

/** The plugin folders among these files, for `--plugin-dir`. */
export function pluginFolders(configDir: string, files: ConfigDirInput['files']): string[] {
  const found = files.flatMap(({ path }) => /^plugins\/[^/]+/.exec(path) ?? []);
  return [...new Set(found)].map((path) => placeOf(configDir, path));
}

/** Templates do not keep file modes, so scripts are recognized by content. */
function isScript(bytes: Uint8Array): boolean {
  return bytes[0] === 0x23 && bytes[1] === 0x21;
}

/** Fails with `write-failed` when a file cannot be written, or claude would ignore it. */
export function prepareConfigDir(world: World, input: ConfigDirInput): Result<void> {
  const { paths, env } = input;
  const { base, hooks = [], deny = [] } = input.settings;
  const { own, git, session } = input.instructions;
  const { projectPath } = session;
  const clean = hooks.map((hook) => {
    const isElsewhere = hook.program.program === hookElsewhere;
    return isElsewhere ? hook : { ...hook, program: inCleanEnvironment(hook.program, env, projectPath) };
  });
  const settled = own && git !== null ? { ...withoutOwnGitWords, ...base } : { ...base };
  const files: readonly (readonly [string, JsonObject])[] = [
    [join(paths.config, 'settings.json'), mergedSettings({ ...input.settings, base: settled, hooks: clean })],
    [paths.workerSettings, workerSettings(env, { deny, ...defined({ base, helpers: input.helpers }) })],
  ];
  let path = paths.config;
  try {
    for (const name of ownedFolders) world.files.remove(join(paths.config, name));
    for (const file of input.files) {
      path = placeOf(paths.config, file.path);
      world.files.makeFolder(dirname(path));
      world.files.writeBytes(path, file.bytes, isScript(file.bytes) ? { mode: 0o700 } : {});
    }
    if (input.inherited !== undefined) linkInherited(world, input.inherited, paths.config);
    path = paths.mcpConfig;
    if (input.mcp !== null) writeJson(world, path, input.mcp);
    else world.files.remove(path);
    path = join(paths.config, 'CLAUDE.md');
    const text = instructions(input.instructions);
    if (text !== null) world.files.writeAtomic(path, text);
    else world.files.remove(path);
    path = paths.systemPrompt;
    world.files.writeAtomic(path, standingInstructions(input.instructions));
    for (const [file, settings] of files) {
      path = file;
      writeJson(world, path, settings);
    }
  } catch (error) {
    return { ok: false, failure: systemFailure(path, error) };
  }
  return ok(undefined);
}

/** Symlinks, because copies would lose relative imports and miss later changes. */
function linkInherited({ files }: World, from: string, configDir: string): void {
  for (const entry of inheritedEntries(files, from)) {
    const path = join(configDir, entry);
    if (files.entryKind(path) !== null) continue;
    files.makeFolder(dirname(path));
    files.link(join(from, entry), path);
  }
}

/** The entries of the user's config dir for all sessions that inherit it, by path there. */
export function inheritedEntries(files: Pick<Files, 'list'>, from: string): string[] {
  return ownedFolders.flatMap((name) => files.list(join(from, name)).map((entry) => join(name, entry)));
}

/**
 * The user's decisions about the project of `folder`, stored where claude looks them up: at its main checkout, if it is
 * in a repository. Without trust claude ignores the project's allow rules; without the other approval, external imports
 * of its CLAUDE.md.
 */
export function noteDecisions(
  world: World,
  configDir: string,
  folder: string,
  decided: { readonly hasTrustDialogAccepted: boolean; readonly hasClaudeMdExternalIncludesApproved: boolean },
): void {
  const path = join(configDir, '.claude.json');
  if (!Object.values(decided).includes(true) && world.files.entryKind(path) === null) return;
  const known = read(world, path);
  const projects = object(known.projects);
  const noted = [folder, ...checkoutRoots(world, folder)].map((root) => {
    return [root, { ...object(projects[root]), ...decided }];
  });
  writeJson(world, path, { ...known, projects: { ...projects, ...Object.fromEntries(noted) } });
}

/** The session may have put a symlink there, which is replaced. */
function writeJson(world: World, path: string, value: JsonObject): void {
  world.files.writeAtomic(path, `${JSON.stringify(value, null, 2)}\n`);
}

/** claude identifies a key by this many of its last characters. */
const keyEnd = 20;

/** Answers claude's first-run questions in its own file; its other content stays. `folder`: where claude is opened. */
export function answerFirstRun(world: World, configDir: string, folder: string, env: Environment): void {
  const path = join(configDir, '.claude.json');
  const known = read(world, path);
  const projects = object(known.projects);
  const key = env.ANTHROPIC_API_KEY;
  const answered = object(known.customApiKeyResponses);
  const next: JsonObject = {
    ...known,
    hasCompletedOnboarding: true,
    bypassPermissionsModeAccepted: true,
    projects: { ...projects, [folder]: { ...object(projects[folder]), hasTrustDialogAccepted: true } },
    ...(key === undefined || key === '' ? {} : { customApiKeyResponses: withKey(answered, key.slice(-keyEnd)) }),
  };
  writeJson(world, path, next);
}

function withKey(answered: JsonObject, end: string): JsonObject {
  const others = (name: string): unknown[] => list(answered[name]).filter((one) => one !== end);
  return { ...answered, approved: [...others('approved'), end], rejected: others('rejected') };
}

function read({ files }: World, path: string): JsonObject {
  return object(files.entryKind(path) === 'file' ? parseJson(files.readText(path) ?? '') : {});
}
