/**
 * app/: the use cases. Values in, values out; no command line, no output, no exit codes. This file: the context that
 * every use case needs.
 */

import { dirname } from 'node:path';
import { fail, type Result } from '../core/failure.ts';
import { dataRoot, groupsFolder } from '../store/paths.ts';
import { packageRoot } from '../system/own-program.ts';
import { createRealWorld } from '../system/real-world.ts';
import type { World } from '../system/world.ts';
import { folderProblem, lookAt, tryPath } from './path-argument.ts';

/** Receives progress messages, which are not part of a result. */
export interface ProgressNotes {
  line(text: string): void;
  /** A line that the next one replaces; null removes it. */
  passing(text: string | null): void;
}

export interface AppContext {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The current folder. Throws if it was removed. */
  readonly cwd: string;
  readonly packageRoot: string;
  readonly world: World;
  readonly notes: ProgressNotes;
  root(): Result<string>;
}

export interface AppContextOptions {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cwd: () => string;
  readonly note: (line: string) => void;
}

export function createAppContext({ env, cwd, note }: AppContextOptions): AppContext {
  let world: World | undefined;
  return {
    env,
    get cwd() {
      return cwd();
    },
    packageRoot,
    get world() {
      world ??= createRealWorld({ adoptsOrphans: false });
      return world;
    },
    notes: { line: note, passing: () => {} },
    root() {
      return findDataRoot(this.world, env);
    },
  };
}

/** Fails with `usage` if the data folder is not set or unusable. */
export function findDataRoot(world: World, env: Readonly<Record<string, string | undefined>>): Result<string> {
  const root = dataRoot(env);
  if (!root.ok) return root;
  // Refuse a wrong path, so that it does not look like a data folder without groups.
  for (const path of [root.value, groupsFolder(root.value)]) {
    const trouble = troubleAt(world, path);
    if (trouble === null) continue;
    const next = 'Set CLAUDE_CODE_AGENT_HOME to a folder that you own, or to a path where one can be created.';
    return fail('usage', `The data folder cannot be ${root.value}: ${trouble}.`, next);
  }
  const groups = groupsFolder(root.value);
  const opened = tryPath(() => world.files.openRead(groups)?.close());
  if (opened.ok) return root;
  const next = 'Check its owner and permissions, or set CLAUDE_CODE_AGENT_HOME to a folder that you own.';
  return fail('usage', `The data folder cannot be ${root.value}: ${groups} ${opened.trouble}.`, next);
}

/** Why the folder does not exist and cannot be created; null if it probably can. */
function troubleAt(world: World, path: string): string | null {
  const stray = folderProblem(world.files, path);
  if (stray !== null) return `${path} ${stray}`;
  return lookAt(world.files, path).ok || dirname(path) === path ? null : troubleAt(world, dirname(path));
}
