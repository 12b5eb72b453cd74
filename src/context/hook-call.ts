/**
 * context/: what a session must know after a start, a resume or a compaction. This file: input and output of a hook
 * call, limits and escaping for project text, and the task of a worker.
 */

import { basename, dirname, join } from 'node:path';
import { defined } from '../core/defined.ts';
import { unsafeCharacters } from '../core/text.ts';
import { isObject, parseJson } from '../store/json.ts';
import type { Files } from '../system/world.ts';

export type HookEvent = 'session-start' | 'pre-compact' | 'session-end';
export const hookEvents: readonly HookEvent[] = ['session-start', 'pre-compact', 'session-end'];

/**
 * The last argument of a hook in a user's own settings. Such a hook does nothing in a worker, which has its own hooks.
 */
export const installedMark = '--installed';

/** The last argument of a worker's hook when the user chose its system. */
export const chosenMark = '--chosen';
/** In a session whose questions wait for the user. */
export const asksMark = '--asks';

/** File access of a hook; tests pass another one. */
export type ContextFiles = Pick<
  Files,
  | 'readText'
  | 'readBytes'
  | 'writeAtomic'
  | 'writeBytes'
  | 'list'
  | 'info'
  | 'entryKind'
  | 'realPath'
  | 'rename'
  | 'remove'
  | 'makeFolder'
>;

/** Built by hook-main.ts from claude’s JSON, the environment and the clock; missing parts were unusable. */
export interface HookCall {
  readonly event: HookEvent;
  /** `startup`, `resume`, `clear` or `compact`; for session-end its reason, for pre-compact its trigger. */
  readonly source?: string;
  readonly sessionId?: string;
  readonly transcriptPath?: string;
  /** Absolute: CLAUDE_PROJECT_DIR if set, never the hook's own folder then. */
  readonly projectFolder: string;
  /** True in a worker of ours: no user can answer questions. */
  readonly isWorker: boolean;
  readonly asks?: boolean;
  /** The user chose this system for the session; by default it is on anyway. */
  readonly isChosen?: boolean;
  /** The runner's folder of a worker's session, absolute. */
  readonly sessionFolder?: string;
  readonly nowMs: number;
  readonly host: string;
  readonly platform?: string;
  readonly files: ContextFiles;
  /** Of the hook; without logins. */
  readonly env: Readonly<Record<string, string | undefined>>;
}

export interface HookAnswer {
  /** Printed; empty = no output. */
  readonly text: string;
  /** For hooks.log: what was read, written, left out. */
  readonly notes?: Readonly<Record<string, unknown>>;
}

/** One of cpm, faber, handover. `answer` throws nothing because of a project's files. */
export interface ContextSystem {
  readonly name: 'cpm' | 'faber' | 'handover';
  answer(call: HookCall): HookAnswer | Promise<HookAnswer>;
}

/** claude passes at most 10,000 characters of a hook entry to the model, and of a longer text only the first 2,000. */
export const charactersMax = 9_500;

/** Bytes read of one project file; a longer file is named by its path. */
export const fileBytesMax = 256 * 1024;

/**
 * The text of a regular project file, or why there is none. Symlinks are followed only within `root`; FIFOs and devices
 * are never opened.
 */
export type ProjectText =
  | { readonly ok: true; readonly text: string; readonly truncated: boolean; readonly mtimeMs: number }
  | { readonly ok: false; readonly trouble: string };

export function readProjectText(files: ContextFiles, root: string, path: string, bytesMax = fileBytesMax): ProjectText {
  try {
    if (files.entryKind(path) === null) return { ok: false, trouble: 'does not exist' };
    const realRoot = files.realPath(root);
    const real = files.realPath(path);
    if (realRoot === null || real === null) return { ok: false, trouble: 'does not exist' };
    if (!`${real}/`.startsWith(`${realRoot}/`)) return { ok: false, trouble: 'is a symlink out of the project' };
    const info = files.info(real);
    if (info === null) return { ok: false, trouble: 'does not exist' };
    if (info.kind !== 'file') return { ok: false, trouble: 'is not a regular file' };
    const bytes = files.readBytes(real, 0, bytesMax + 1);
    const truncated = bytes.length > bytesMax;
    // Partial characters and invalid bytes become replacement characters instead of an error.
    const text = new TextDecoder('utf-8').decode(truncated ? bytes.subarray(0, bytesMax) : bytes);
    return { ok: true, text, truncated, mtimeMs: info.mtimeMs };
  } catch (error) {
    return { ok: false, trouble: `cannot be read (${codeOf(error)})` };
  }
}

/**
 * `/clear` and forks give a worker a new id. No other worker has its config dir, so another conversation there belongs
 * to its session, under an earlier id.
 */
export function isEarlierId({ isWorker, source, sessionId, transcriptPath, files }: HookCall, id: string): boolean {
  if (!isWorker || (source !== 'clear' && source !== 'fork') || id === sessionId) return false;
  const path = join(dirname(transcriptPath ?? ''), `${basename(id)}.jsonl`);
  return quietly(() => files.entryKind(path)) === 'file';
}

/** Null for a system error. */
export function quietly<T>(action: () => T): T | null {
  try {
    return action();
  } catch {
    return null;
  }
}

export function codeOf(error: unknown): string {
  const { code } = error as { code?: unknown };
  return typeof code === 'string' ? code : 'unknown';
}

const controls = unsafeCharacters();

/** Complete escape sequences within one line; an unfinished one must not remove the text after it. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: finding control characters is what this is for.
const escapes = /\u001b(?:\[[0-9;?]*[ -/]*[@-~]|[\]P^_X][^\n\u0007\u001b]{0,2000}(?:\u0007|\u001b\\))/g;

/** Project text as data: it can neither end the reminder around it nor move a terminal's cursor. */
export function harmless(text: string): string {
  return text
    .replaceAll('\r\n', '\n')
    .replace(escapes, '')
    .replace(controls, '')
    .replace(/<(?=\/?system-reminder)/gi, '‹');
}

/** At most `max` characters; the path of a cut text is named. */
export function fitted(text: string, path: string, max: number): string {
  if (text.length <= max) return text;
  const note = `\n... (${text.length} characters in all; the rest is in ${path})`;
  return `${text.slice(0, Math.max(0, max - note.length))}${note}`;
}

/** Safe, spaces and newlines collapsed, at most `max` characters. */
export function harmlessLine(text: string, max = 300): string {
  const line = harmless(text).replace(/\s+/g, ' ').trim();
  return line.length <= max ? line : `${cut(line, max - 1)}…`;
}

/** Cuts without splitting a surrogate pair. */
export function cut(text: string, max: number): string {
  if (text.length <= max) return text;
  const end = Math.max(0, max);
  const last = text.charCodeAt(end - 1);
  return text.slice(0, last >= 0xd800 && last <= 0xdbff ? end - 1 : end);
}

// A worker's own task, which a compaction would otherwise leave to the summary.

/**
 * The output of a worker's SessionStart hook. `prompt` is the prompt that was sent, null when it cannot be read. Text
 * comes first, because claude swallows output that is a bare JSON object.
 */
export function sessionStartText(
  call: Pick<HookCall, 'sessionId' | 'source' | 'asks'>,
  prompt: string | null,
  promptFile: string,
): string {
  const id = call.sessionId ?? 'unknown';
  const how = call.asks
    ? 'a question may be answered hours later, so ask only what you cannot decide'
    : 'no one can answer questions, so decide and go on';
  const lines = [`Claude Code session ${id}, run unattended: ${how}.`];
  // On a start or resume the task is in the prompt itself; only a compaction removes it. A call without a source may be
  // one.
  const said = call.source === 'compact' ? 'The conversation was compacted.' : 'The conversation may be compacted.';
  if ((call.source === 'compact' || call.source === undefined) && prompt !== null) {
    lines.push(`${said} Your task, as it was given to you:`, '', harmless(prompt));
  }
  const text = lines.join('\n');
  if (text.length <= charactersMax) return text;
  return `${text.slice(0, charactersMax)}\n... The rest of the task is in ${promptFile}; read it before you go on.`;
}

// A hook's standard input from claude, read leniently: unusable parts are left out.

export interface HookInput {
  readonly sessionId?: string;
  /** `source` of SessionStart, `trigger` of PreCompact, `reason` of SessionEnd. */
  readonly source?: string;
  readonly transcriptPath?: string;
  readonly cwd?: string;
}

/** Ids become parts of file names, so others are ignored. */
const idPattern = /^[A-Za-z0-9][A-Za-z0-9_-]{0,127}$/;

export function parseHookInput(text: string): HookInput {
  const fields = parseJson(text);
  if (!isObject(fields)) return {};
  const textOf = (name: string) => (typeof fields[name] === 'string' && fields[name] !== '' ? fields[name] : undefined);
  const sessionId = textOf('session_id');
  const source = textOf('source') ?? textOf('trigger') ?? textOf('reason');
  const transcriptPath = textOf('transcript_path');
  const cwd = textOf('cwd');
  return {
    ...(sessionId !== undefined && idPattern.test(sessionId) ? { sessionId } : {}),
    ...defined({ source, transcriptPath, cwd }),
  };
}
