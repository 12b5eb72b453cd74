/**
 * Writes what a worker finds in its own config dir. Done anew before every attempt: paths may have moved, dependencies
 * may have finished, and the worker itself could write there. The folder itself must be there.
 */
import { dirname, join } from 'node:path';
import { defined } from '../../core/defined.ts';
import { ok, type Result } from '../../core/failure.ts';
import type { SessionPaths } from '../../store/paths.ts';
import { systemFailure } from '../../store/system-failure.ts';
import type { World } from '../../system/world.ts';
import type { JsonObject } from '../lenient.ts';
import { withoutOwnGitWords } from './git-guidance.ts';
import { type InstructionsInput, instructions, standingInstructions } from './instructions.ts';
import {
  type ConfigSettingsInput,
  configSettings,
  hookElsewhere,
  inCleanEnvironment,
  readBackCheck,
  workerSettings,
} from './settings.ts';
import type { Environment } from './variables.ts';

export interface ConfigDirInput {
  readonly paths: SessionPaths;
  readonly isNew: boolean;
  /** The worker's whole environment; what it says about payers goes into the settings as well. */
  readonly env: Environment;
  readonly instructions: InstructionsInput;
  readonly settings: ConfigSettingsInput;
  readonly files: readonly { readonly path: string; readonly bytes: Uint8Array }[];
  readonly mcp: JsonObject | null;
}

/** Folders of the config dir that claude reads and that hold nothing but what we put there. */
const ownedFolders = ['commands', 'skills', 'agents', 'rules'];

/** Fails with `write-failed` when a file cannot be written, or claude would ignore it. */
export function prepareConfigDir(world: World, input: ConfigDirInput): Result<void> {
  const { paths, env, isNew } = input;
  const { base, hooks = [], deny = [] } = input.settings;
  const { own, git, session } = input.instructions;
  const { projectPath } = session;
  const clean = hooks.map((hook) => {
    const isElsewhere = hook.program.program === hookElsewhere;
    return isElsewhere ? hook : { ...hook, program: inCleanEnvironment(hook.program, env, projectPath) };
  });
  const settled = own && git !== null ? { ...withoutOwnGitWords, ...base } : { ...base };
  const files: readonly (readonly [string, JsonObject])[] = [
    [join(paths.config, 'settings.json'), configSettings({ ...input.settings, base: settled, hooks: clean })],
    [paths.workerSettings, workerSettings(env, { deny, ...defined({ base }) })],
  ];
  // In a folder that was just made there is nothing to be replaced; after a crash it is none any more.
  const write = (file: string, text: string): void => {
    const isInNewFolder = isNew && dirname(file) === paths.config;
    if (isInNewFolder) world.files.writeBytes(file, Buffer.from(text));
    else world.files.writeAtomic(file, text);
  };
  let path = paths.config;
  try {
    if (!isNew) for (const name of ownedFolders) world.files.remove(join(paths.config, name));
    for (const file of input.files) {
      path = join(paths.config, file.path);
      world.files.makeFolder(dirname(path));
      world.files.writeBytes(path, file.bytes);
    }
    path = paths.mcpConfig;
    if (input.mcp !== null) world.files.writeAtomic(path, `${JSON.stringify(input.mcp, null, 2)}\n`);
    else if (!isNew) world.files.remove(path);
    path = join(paths.config, 'CLAUDE.md');
    const text = instructions(input.instructions);
    if (text !== null) write(path, text);
    else if (!isNew) world.files.remove(path);
    path = paths.systemPrompt;
    write(path, standingInstructions(input.instructions));
    for (const [file, settings] of files) {
      path = file;
      const json = `${JSON.stringify(settings, null, 2)}\n`;
      const checked = readBackCheck(path, json);
      if (!checked.ok) return checked;
      write(path, json);
    }
  } catch (error) {
    return { ok: false, failure: systemFailure(path, error) };
  }
  return ok(undefined);
}
