/**
 * app/: what one can know and ask of groups, values in and values out; no command line, no output, no exit codes.
 * This file: what every question is asked with.
 */

import { dirname } from 'node:path';
import { fail, type Result } from '../core/failure.ts';
import { dataRoot, groupsFolder } from '../store/paths.ts';
import { packageRoot } from '../system/own-program.ts';
import { createRealWorld } from '../system/real-world.ts';
import type { World } from '../system/world.ts';
import { folderProblem, lookAt, tryPath } from './path-argument.ts';

/** Where what is worth a word meanwhile goes; nothing of it is part of an answer. */
export interface ProgressNotes {
  line(text: string): void;
  /** A line that the next one replaces; null takes it away. */
  passing(text: string | null): void;
}

export interface AppContext {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The folder that relative paths are meant from. Throws when it was removed. */
  readonly cwd: string;
  readonly packageRoot: string;
  readonly world: World;
  readonly notes: ProgressNotes;
  root(): Result<string>;
}

// A place for callers that are no command line: the system's own world, and everything else as they say.

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

// The data root of a command: a folder, or a place where one can be made.

/** Fails with `usage` when the environment names none, or something that cannot hold groups. */
export function findDataRoot(world: World, env: Readonly<Record<string, string | undefined>>): Result<string> {
  const root = dataRoot(env);
  if (!root.ok) return root;
  // Otherwise a list of groups would be empty and hide that it was looked for in the wrong place.
  for (const path of [root.value, groupsFolder(root.value)]) {
    const trouble = troubleAt(world, path);
    if (trouble === null) continue;
    const next = 'Set CLAUDE_CODE_AGENT_HOME to a folder of yours, or to a path where one can be made.';
    return fail('usage', `The data folder cannot be ${root.value}: ${trouble}.`, next);
  }
  const groups = groupsFolder(root.value);
  const opened = tryPath(() => world.files.openRead(groups)?.close());
  if (opened.ok) return root;
  const next = 'Check who owns it and its permissions, or set CLAUDE_CODE_AGENT_HOME to a folder of yours.';
  return fail('usage', `The data folder cannot be ${root.value}: ${groups} ${opened.trouble}.`, next);
}

/** Why no folder is there or can be made; null when one can, as far as that is known before trying. */
function troubleAt(world: World, path: string): string | null {
  const stray = folderProblem(world.files, path);
  if (stray !== null) return `${path} ${stray}`;
  return lookAt(world.files, path).ok || dirname(path) === path ? null : troubleAt(world, dirname(path));
}
