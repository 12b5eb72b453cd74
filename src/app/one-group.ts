/** Work on several groups, one after the other: what the system refuses of one is told of it, and the others go on. */
import { dirname } from 'node:path';
import { fail, type Result } from '../core/failure.ts';
import { isGone } from '../store/group-store.ts';
import { LogLost } from '../store/log-lost.ts';
import { errorCode } from '../system/system-error.ts';
import type { Files } from '../system/world.ts';
import { leadsBack } from './path-argument.ts';
import type { Place } from './place.ts';
import type { GroupReference } from './resolve.ts';

/** An error of the system becomes the failure `write-failed`, with its path; a defect of ours is thrown again. */
export async function withinGroup<T>(
  { world }: Pick<Place, 'world'>,
  { paths }: Pick<GroupReference, 'paths'>,
  work: () => Promise<Result<T>>,
): Promise<Result<T>> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof LogLost) return { ok: false, failure: error.failure };
    const code = errorCode(error);
    if (!/^E[A-Z0-9]+$/.test(code)) throw error;
    const { path = paths.folder } = error as { path?: string };
    if (code === 'ELOOP') {
      const message = `${loopIn(world.files, path)} ${leadsBack}.`;
      return fail('write-failed', message, 'Remove it, then run the command again.');
    }
    const next = 'Check its permissions, those of its folder and the free disk space, then run the command again.';
    return fail('write-failed', `The path ${path} cannot be read or changed (${code}).`, next);
  }
}

/** Below a link that leads back to itself there is nothing. */
function loopIn(files: Files, path: string): string {
  return files.entryKind(path) === null && dirname(path) !== path ? loopIn(files, dirname(path)) : path;
}

/** How a group that could not be deleted stands, a sentence without its end: its folder goes before its files. */
export function whatStays({ world }: Pick<Place, 'world'>, { groupId, paths }: GroupReference): string {
  return isGone(world, paths) ? `${groupId} is deleted, but not all of its files` : `${groupId} stays`;
}
