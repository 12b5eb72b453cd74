/** Records in a project's resume file that a session works on it. */
import { fail, ok, type Result } from '../../core/failure.ts';
import { updateExclusively } from '../exclusive-update.ts';
import type { ContextFiles } from '../hook-call.ts';
import type { HandoverProject } from './projects.ts';
import { recordSession } from './resume-file.ts';

/** A resume file has names and numbers; a larger file is something else. */
const bytesMax = 1024 * 1024;

/**
 * Adds the session to the project's list and makes it the last one, updated at `nowMs` (milliseconds since 1970). All
 * other bytes of the file stay. `sessionId` must match `sessionIdPattern`. Fails with `not-found` (the file is gone),
 * `corrupt-file`, `busy` or `write-failed`; then the file is unchanged.
 */
export function noteInProject(
  files: ContextFiles,
  { file }: Pick<HandoverProject, 'file'>,
  sessionId: string,
  nowMs: number,
): Result<unknown> {
  const timestamp = new Date(nowMs).toISOString();
  return updateExclusively(files, {
    // The target of a symlink is changed; the symlink stays.
    path: files.realPath(file) ?? file,
    bytesMax,
    change: (before) => {
      if (before !== null) return changed(file, before, sessionId, timestamp);
      return fail('not-found', `${file} is missing.`, 'Restore it.');
    },
  });
}

function changed(file: string, before: Uint8Array, sessionId: string, timestamp: string): Result<Uint8Array> {
  // One character per byte: other bytes stay unchanged, even if they are no valid text.
  const after = recordSession(Buffer.from(before).toString('latin1'), sessionId, timestamp);
  if (after !== null) return ok(Buffer.from(after, 'latin1'));
  const next = 'Write session_ids as a list, such as session_ids: [].';
  return fail('corrupt-file', `The list session_ids in ${file} has a format that cannot be changed safely.`, next);
}
