/**
 * What a worktree is to be, and the file that says which one a session has or is about to get: by it what a crash left
 * is put right.
 */
import { defined } from '../../core/defined.ts';
import { ok, type Result } from '../../core/failure.ts';
import type { Remade, Workspace } from '../../core/group.ts';
import { fields, isText, listOf, oneOf, optional, parseJson } from '../../store/shape.ts';
import { systemFailure } from '../../store/system-failure.ts';
import type { Files } from '../../system/world.ts';
import type { Git } from '../git.ts';

export interface WorkspacePlan {
  /** Absolute real path of the project, a folder in a worktree of the repository. */
  readonly projectPath: string;
  /** As in SessionDefinition. */
  readonly repository: string;
  /** Where the worktree is to be; its parent folder exists. */
  readonly path: string;
  /** The wanted name, without `refs/heads/`. */
  readonly branch: string;
  /** JSON file that says what is being made, written before anything is. */
  readonly intentFile: string;
  /** Where a session without parents begins; absent = what is checked out in the project. */
  readonly base?: string;
  /** Commits to begin from: the first is checked out, the others are merged. */
  readonly parents: readonly string[];
  /** The session has worked in one before, so a new one is none that it knows. */
  readonly isKnown?: boolean;
}

export interface MadeWorkspace {
  readonly workspace: Workspace;
  /** Sentences for people. */
  readonly notes: readonly string[];
  /** True when this call made the folder: ignored files and what set-up makes are not in it yet. */
  readonly isNew: boolean;
}

const states = ['making', 'made', 'restoring'] as const;

export interface WorkspaceIntent {
  /**
   * `making`: nobody has worked in it yet, so what is there of it can go. `restoring`: the branch holds work, the
   * folder is being filled from it again.
   */
  readonly state: (typeof states)[number];
  readonly repository: string;
  readonly path: string;
  readonly folder: string;
  readonly branch: string;
  /** Full id of the commit the branch begins from. */
  readonly base: string;
  readonly target?: string;
  /** As in the plan. */
  readonly parents: readonly string[];
  /** As in Workspace: kept here as well, because a crash may come before anybody was told. */
  readonly remade?: Remade;
}

const isIntent = fields({
  state: oneOf(states),
  repository: isText,
  path: isText,
  folder: isText,
  branch: isText,
  base: isText,
  target: optional(isText),
  parents: listOf(isText),
  remade: optional(fields({ at: isText, from: oneOf(['branch', 'base'] as const) })),
});

const bytesMax = 1024 * 1024;

/** Null when there is none, or none that can be understood. */
export function readIntent(files: Files, path: string): WorkspaceIntent | null {
  if (files.info(path)?.kind !== 'file') return null;
  const value = parseJson(new TextDecoder().decode(files.readBytes(path, 0, bytesMax)));
  return isIntent(value) ? (value as WorkspaceIntent) : null;
}

/** Durable when it returns. Fails with `write-failed`. */
export function writeIntent(files: Files, path: string, intent: WorkspaceIntent): Result<void> {
  try {
    files.writeAtomic(path, `${JSON.stringify({ version: 1, ...intent }, null, 2)}\n`, { durable: true });
    return ok(undefined);
  } catch (error) {
    return { ok: false, failure: systemFailure(path, error) };
  }
}

export function workspaceOf(intent: WorkspaceIntent): Workspace {
  const { path, folder, repository, branch, base, target, remade } = intent;
  const optionalFields = defined({ target, remade });
  return { path, folder, repository, branch, base, ...optionalFields };
}

export function remadeNow({ world }: Git, from: Remade['from']): Remade {
  return { at: new Date(world.clock.now()).toISOString(), from };
}
