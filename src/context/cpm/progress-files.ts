/** The progress files of a project: which there are, how old they are, and what they say. */
import { join } from 'node:path';
import { type ContextFiles, codeOf, fileBytesMax, harmless, oneLine, readProjectText } from '../hook-call.ts';
import {
  ageOf,
  isOddName,
  isStale,
  legacyName,
  type ProgressHeader,
  parseHeader,
  progressFolder,
  progressName,
  sessionOfName,
} from './state.ts';

export interface ProgressFile {
  /** Null for the legacy file, which belongs to no session in particular. */
  readonly sessionId: string | null;
  readonly name: string;
  /** Absolute. */
  readonly path: string;
  /** Milliseconds since 1970. */
  readonly mtimeMs: number;
  readonly ageMs: number;
  /** Older than 48 hours. */
  readonly stale: boolean;
}

export interface Progress {
  /** The newest first. */
  readonly sessions: readonly ProgressFile[];
  readonly legacy: ProgressFile | null;
  /** Files that look like progress files but whose names hold no usable id. */
  readonly oddNames: number;
  /** Why the folder could not be looked through; null = it could, or there is none. */
  readonly trouble: string | null;
}

/** Looks only at names and times, so that ten thousand files cost little. Throws nothing. */
export function findProgress(files: ContextFiles, projectFolder: string, nowMs: number): Progress {
  const folder = join(projectFolder, progressFolder);
  const { names, trouble } = namesIn(files, folder);
  const sessions = names.flatMap((name) => {
    const sessionId = sessionOfName(name);
    return sessionId === null ? [] : fileOf(files, folder, name, sessionId, nowMs);
  });
  sessions.sort((one, other) => other.mtimeMs - one.mtimeMs || (one.name < other.name ? -1 : 1));
  const [legacy = null] = names.includes(legacyName) ? fileOf(files, folder, legacyName, null, nowMs) : [];
  return { sessions, legacy, oddNames: names.filter(isOddName).length, trouble };
}

function namesIn(files: ContextFiles, folder: string): { names: string[]; trouble: string | null } {
  try {
    return { names: files.list(folder), trouble: null };
  } catch (error) {
    return { names: [], trouble: `${progressFolder} cannot be read (${codeOf(error)})` };
  }
}

/** Empty when the file vanished meanwhile. What cannot be looked at counts as just written: it is not to be lost. */
function fileOf(files: ContextFiles, folder: string, name: string, sessionId: string | null, nowMs: number) {
  const path = join(folder, name);
  const mtimeMs = mtimeOf(files, path, nowMs);
  if (mtimeMs === null) return [];
  return [{ sessionId, name, path, mtimeMs, ageMs: ageOf(mtimeMs, nowMs), stale: isStale(mtimeMs, nowMs) }];
}

function mtimeOf(files: ContextFiles, path: string, nowMs: number): number | null {
  try {
    const kind = files.entryKind(path);
    // What a link leads to has a time of its own, which says nothing of the link.
    if (kind === null || kind === 'link') return kind === null ? null : nowMs;
    return files.info(path)?.mtimeMs ?? null;
  } catch {
    return nowMs;
  }
}

export type ProgressText =
  | { readonly ok: true; readonly text: string; readonly truncated: boolean; readonly header: ProgressHeader }
  /** `trouble` completes a sentence that begins with the path. */
  | { readonly ok: false; readonly trouble: string };

/** The text of a progress file, harmless, at most `bytesMax` bytes of it. Throws nothing. */
export function readProgress(
  files: ContextFiles,
  projectFolder: string,
  path: string,
  bytesMax = fileBytesMax,
): ProgressText {
  const read = readProjectText(files, projectFolder, path, bytesMax);
  if (!read.ok) return read;
  const text = harmless(read.text);
  return { ok: true, text, truncated: read.truncated, header: parseHeader(text) };
}

/** Where the progress file of a session is or would be. */
export function progressPath(projectFolder: string, sessionId: string): string {
  return join(projectFolder, progressFolder, progressName(sessionId));
}

/** A path for a sentence. */
export function shownPath(path: string): string {
  return oneLine(path, 500);
}
