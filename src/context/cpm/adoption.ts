/**
 * Taking over the progress file of an earlier session id: `/clear` and forks give a session a new one. The new file is
 * written and read back before the old one goes, so that whatever happens in between nothing is lost.
 */
import { join } from 'node:path';
import { fail, ok, type Result } from '../../core/failure.ts';
import type { ContextFiles } from '../hook-call.ts';
import { progressPath } from './progress-files.ts';
import { isSessionId, progressFolder } from './state.ts';

/** `moved`: there was no new file; `merged`: what it lacked was appended; `contained`: it lacked nothing. */
export type Adopted = 'moved' | 'merged' | 'contained';

/** More is no progress file. */
const adoptedBytesMax = 4 * 1024 * 1024;
/** A file that is written again and again while it is adopted is left alone. */
const triesMax = 5;

/**
 * Moves the state of `oldId` into the progress file of `newId`. Calling it again after a crash completes what was
 * begun. Fails with `not-found` when there is no old file, with `usage` for ids that are none, `corrupt-file` for files
 * that cannot be merged and `write-failed` when the system refuses; then nothing is lost, and the old file still there.
 */
export function adopt(files: ContextFiles, projectFolder: string, oldId: string, newId: string): Result<Adopted> {
  if (!isSessionId(oldId) || !isSessionId(newId) || oldId === newId) {
    return fail('usage', 'A progress file moves from one session id to another.', 'Name two different session ids.');
  }
  try {
    return adoptOnce(
      files,
      projectFolder,
      progressPath(projectFolder, oldId),
      progressPath(projectFolder, newId),
      oldId,
    );
  } catch (error) {
    const { code } = error as { code?: unknown };
    if (typeof code !== 'string') throw error;
    const message = `The progress file of session ${oldId} could not be moved to ${newId}: ${code}.`;
    return fail('write-failed', message, 'Its state is still there; check the folder docs/plans, then try again.');
  }
}

function adoptOnce(files: ContextFiles, project: string, from: string, to: string, oldId: string): Result<Adopted> {
  let outcome: Adopted = 'contained';
  for (let tries = 1; tries <= triesMax; tries += 1) {
    const old = readWhole(files, project, from);
    if (!old.ok) return old;
    if (old.value === null) {
      // A try before this one has completed it, or somebody else has.
      if (tries > 1) return ok(outcome);
      return fail('not-found', `Session ${oldId} has no progress file.`, 'There is nothing to take over.');
    }
    const current = readWhole(files, project, to);
    if (!current.ok) return current;
    const wanted = current.value === null ? ok(old.value) : merged(current.value, old.value, oldId);
    if (!wanted.ok) return wanted;
    if (!write(files, { project, from, to }, current.value, wanted.value)) continue;
    if (current.value === null) outcome = 'moved';
    else if (!isSame(wanted.value, current.value) && outcome === 'contained') outcome = 'merged';
    // The old session may have written once more meanwhile; that is then adopted as well.
    const last = readWhole(files, project, from);
    if (!last.ok) return last;
    if (last.value !== null && !isSame(last.value, old.value)) continue;
    files.remove(from);
    return ok(outcome);
  }
  const message = `The progress file of session ${oldId} is being written by somebody else.`;
  return fail('write-failed', message, 'End that session, then try again.');
}

/** True when the file now holds what was wanted; false when somebody else was faster. */
function write(
  files: ContextFiles,
  { project, from, to }: { readonly project: string; readonly from: string; readonly to: string },
  current: Uint8Array | null,
  wanted: Uint8Array,
): boolean {
  if (current === null) {
    try {
      files.writeBytes(to, wanted, { durable: true, access: 'project', like: from });
    } catch (error) {
      if ((error as { code?: unknown }).code === 'EEXIST') return false;
      throw error;
    }
  } else if (!isSame(current, wanted)) {
    const text = new TextDecoder('utf-8', { ignoreBOM: true }).decode(wanted);
    files.writeAtomic(to, text, { durable: true, access: 'project' });
  }
  const written = readWhole(files, project, to);
  return written.ok && written.value !== null && isSame(written.value, wanted);
}

/** Null when nothing is there. Links are not followed: the file behind one is not ours to remove. */
function readWhole(files: ContextFiles, project: string, path: string): Result<Uint8Array | null> {
  const kind = files.entryKind(path);
  if (kind === null) return ok(null);
  const root = files.realPath(project);
  const isInside = root !== null && files.realPath(path)?.startsWith(`${root}/`) === true;
  if (kind !== 'file' || !isInside) return refused(path, 'is not a regular file of the project');
  const bytes = files.readBytes(path, 0, adoptedBytesMax + 1);
  if (bytes.length > adoptedBytesMax) return refused(path, 'is larger than a progress file can be');
  return ok(bytes);
}

function refused(path: string, trouble: string): Result<never> {
  const name = path.slice(path.lastIndexOf('/') + 1);
  return fail('corrupt-file', `${join(progressFolder, name)} ${trouble}.`, 'Look at it and move its text by hand.');
}

/** The current text with the sections of the old one that it lacks; the very same bytes when it lacks none. */
function merged(current: Uint8Array, old: Uint8Array, oldId: string): Result<Uint8Array> {
  const [currentText, oldText] = [current, old].map(textOf);
  if (typeof currentText !== 'string' || typeof oldText !== 'string') {
    const message = `The progress file of session ${oldId} cannot be merged: one of the two is no UTF-8 text.`;
    return fail('corrupt-file', message, 'Merge the two files in docs/plans by hand.');
  }
  const lines = `\n${withUnixEnds(currentText)}\n`;
  const missing = sections(oldText).filter((section) => !lines.includes(`\n${withUnixEnds(section)}\n`));
  if (missing.length === 0) return ok(current);
  const parts = [currentText.trimEnd(), `## Adopted from session ${oldId}`, ...missing].filter((part) => part !== '');
  return ok(new TextEncoder().encode(`${parts.join('\n\n')}\n`));
}

/** The byte order mark is kept: a file is taken over as it is. */
function textOf(bytes: Uint8Array): string | null {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return null;
  }
}

/** What stands before the first heading of the second level, then each of them with its text. */
function sections(text: string): string[] {
  return text
    .split(/^(?=## )/m)
    .map((section) => section.trim())
    .filter((section) => section !== '');
}

function withUnixEnds(text: string): string {
  return text.replaceAll('\r\n', '\n');
}

function isSame(one: Uint8Array, other: Uint8Array): boolean {
  return one.length === other.length && one.every((byte, index) => byte === other[index]);
}
