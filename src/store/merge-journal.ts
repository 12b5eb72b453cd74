/**
 * The journal of a merge: written before the first branch moves and removed after the last. After an interruption the
 * next command reads here which branches were to move from where to where.
 */
import { join } from 'node:path';
import type { MergedRepository } from '../core/event.ts';
import { errorText, fail, ok, type Result } from '../core/failure.ts';
import type { World } from '../system/world.ts';
import { parseOwn } from './json.ts';
import type { GroupPaths } from './paths.ts';
import { systemFailure } from './system-failure.ts';

/** A temporary worktree for merging. */
export interface ScratchPlace {
  readonly repository: string;
  readonly path: string;
  /** The folder with its levels. */
  readonly top: string;
}

export interface Move extends MergedRepository {
  /** Roots of the worktrees that had the branch checked out. */
  readonly checkouts: readonly string[];
}

export interface MergeJournal {
  /** Value of the mark in the environment of all its processes. */
  readonly mark: string;
  readonly scratches: readonly ScratchPlace[];
  /** Empty = only scratch worktrees exist, and no branch has moved. */
  readonly moves: readonly Move[];
}

function journalPath(paths: GroupPaths): string {
  return join(paths.folder, 'merge.json');
}

export function hasMergeJournal(world: World, paths: GroupPaths): boolean {
  return world.files.entryKind(journalPath(paths)) !== null;
}

/** Null when no merge was interrupted. Fails with `corrupt-file`. */
export function readMergeJournal(world: World, paths: GroupPaths): Result<MergeJournal | null> {
  const path = journalPath(paths);
  let text: string | null;
  try {
    text = world.files.readText(path);
  } catch (error) {
    return fail('corrupt-file', `Cannot read ${path}: ${errorText(error)}.`, 'Check its permissions.');
  }
  if (text === null) return ok(null);
  const journal = parseOwn<MergeJournal>(text);
  if (journal !== null) return ok(journal);
  return fail(
    'corrupt-file',
    `${path} is not the journal of a merge.`,
    'Check its branches with git log, then remove the file.',
  );
}

export function writeMergeJournal(world: World, paths: GroupPaths, journal: MergeJournal): Result<void> {
  const path = journalPath(paths);
  try {
    world.files.writeAtomic(path, `${JSON.stringify({ version: 1, ...journal }, null, 2)}\n`, { durable: true });
    return ok(undefined);
  } catch (error) {
    return { ok: false, failure: systemFailure(path, error) };
  }
}

export function removeMergeJournal(world: World, paths: GroupPaths): void {
  world.files.remove(journalPath(paths));
}
