/** Records in a project's resume file that a session works on it. */
import { advise } from '../../core/advice.ts';
import { fail, ok, type Result } from '../../core/failure.ts';
import { systemFailure } from '../../store/system-failure.ts';
import { updateExclusively } from '../exclusive-update.ts';
import type { ContextFiles } from '../hook-call.ts';
import type { HandoverProject } from './projects.ts';
import { recordSession, sessionIdPattern } from './resume-file.ts';

/** A resume file has names and numbers; a larger file is something else. */
const bytesMax = 1024 * 1024;

/**
 * Adds the session to the project's list and makes it the last one, updated at `nowMs` (milliseconds since 1970). All
 * other bytes of the file stay. Fails with `not-found` (the file is gone), `usage` (an invalid id), `corrupt-file`,
 * `busy` or `write-failed`; then the file is unchanged.
 */
export function noteInProject(
  files: ContextFiles,
  { file }: Pick<HandoverProject, 'file'>,
  sessionId: string,
  nowMs: number,
): Result<void> {
  if (!sessionIdPattern.test(sessionId) || sessionId === 'unknown') {
    return fail('usage', 'The session id is not valid.', 'Session ids are letters, digits, "-" and "_".');
  }
  const timestamp = new Date(nowMs).toISOString();
  try {
    const updated = updateExclusively(files, {
      // The target of a symlink is changed; the symlink stays.
      path: files.realPath(file) ?? file,
      bytesMax,
      change: (before) => (before === null ? gone(file) : changed(file, before, sessionId, timestamp)),
    });
    return updated.ok ? ok(undefined) : updated;
  } catch (error) {
    return { ok: false, failure: systemFailure(file, error) };
  }
}

function gone(file: string): Result<never> {
  const next = advise('Restore it, or create a new one with', ['handover', 'init', 'DIR']);
  return fail('not-found', `${file} is missing.`, next);
}

function changed(file: string, before: Uint8Array, sessionId: string, timestamp: string): Result<Uint8Array> {
  // One character per byte: other bytes stay unchanged, even if they are no valid text.
  const after = recordSession(Buffer.from(before).toString('latin1'), sessionId, timestamp);
  if (after !== null) return ok(Buffer.from(after, 'latin1'));
  const next = 'Write session_ids as a list, such as session_ids: [].';
  return fail('corrupt-file', `The list session_ids in ${file} has a format that cannot be changed safely.`, next);
}
