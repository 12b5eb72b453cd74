/**
 * The progress files of CPM sessions: their names, headers, ages and excerpts. The format is Markdown of people's own
 * skills, so everything here is lenient: missing parts are simply unknown.
 */
import { join } from 'node:path';
import { defined } from '../../core/defined.ts';
import { assert } from '../../core/failure.ts';
import {
  type ContextFiles,
  codeOf,
  cut,
  fileBytesMax,
  harmless,
  harmlessLine,
  quietly,
  readProjectText,
} from '../hook-call.ts';

export const progressFolder = 'docs/plans';

/** One file for all sessions, from before ids were part of the names. */
export const legacyName = '.cpm-progress.md';

/** An older progress file belongs to a session that was most likely abandoned. */
const staleAfterMs = 48 * 60 * 60 * 1000;

/**
 * Ids are part of a file name that a model is told to write or to delete, so spaces and shell characters are not
 * allowed.
 */
const idPattern = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/;
const namePattern = /^\.cpm-progress-(.+)\.md$/s;
/** CPM's own plugin keeps the summary of a compaction next to the progress file. */
const summaryPattern = /^\.cpm-compact-summary-(.+)\.md$/s;

export function isClaudeSessionId(id: string): boolean {
  return idPattern.test(id);
}

function progressName(sessionId: string): string {
  return `.cpm-progress-${sessionId}.md`;
}

/** The session of a file with that name; null for any other name. */
export function sessionOfName(name: string, pattern = namePattern): string | null {
  const id = pattern.exec(name)?.[1];
  return id !== undefined && isClaudeSessionId(id) ? id : null;
}

export interface ProgressHeader {
  readonly skill?: string;
  /** Number and name of the skill's phase, step, section or task. */
  readonly phase?: string;
  /** The skill's subject or output. */
  readonly artifact?: string;
}

/** A header is short; searching further would be useless. */
const headerCharacters = 4_000;
const valueCharacters = 90;

const phaseKeys = ['phase', 'current phase', 'step', 'current step', 'section', 'current section', 'current task'];
/** The most informative first. */
const artifactKeys = ['artifact', 'output target', 'output', 'epic doc', 'target document', 'input source', 'input'];

/** Reads `**Key**: value` lines up to the first section; `**Key:** value` and plain `Key: value` count as well. */
export function parseHeader(text: string): ProgressHeader {
  const values = new Map<string, string>();
  for (const line of text.slice(0, headerCharacters).split('\n')) {
    if (line.startsWith('## ')) break;
    const colon = line.indexOf(':');
    if (colon < 0) continue;
    const key = keyOf(line.slice(0, colon));
    const value = harmlessLine(line.slice(colon + 1).replace(/^\*\*/, ''), valueCharacters);
    if (value !== '' && !values.has(key)) values.set(key, value);
  }
  const skill = values.get('skill');
  // The header's own order decides: it begins with what its skill counts.
  const phase = [...values].find(([key]) => phaseKeys.includes(key))?.[1];
  const artifact = artifactKeys.map((key) => values.get(key)).find((value) => value !== undefined);
  return defined({ skill, phase, artifact });
}

function keyOf(text: string): string {
  return text
    .replace(/[*_]/g, '')
    .replace(/^\s*-\s/, '')
    .trim()
    .toLowerCase();
}

/** `cpm:spec — Section 3 of 6 — docs/07-spec.md`, as far as known; an unknown skill is called so. */
export function labelOf({ skill = 'unknown', phase, artifact }: ProgressHeader): string {
  return [skill, phase, artifact].filter((part) => part !== undefined).join(' — ');
}

export function hoursOf(ageMs: number): number {
  return Math.floor(ageMs / (60 * 60 * 1000));
}

/** The lines that structure a hook's output; project text must not imitate them. */
const structure = /^(?=[ \t]*(?:--- (?:END|CPM SESSION STATE)|CPM_SESSION_ID:))/gm;

/** The text with imitations of our delimiters marked as text. */
export function withoutStructure(text: string): string {
  return text.replace(structure, '| ');
}

/** The share of the space for the next action when a file must be cut. */
const nextActionShare = 0.4;

/**
 * At most `max` characters of a progress file. The middle is removed, between the beginning and the next action, which
 * a session needs most; the path of the rest is named.
 */
export function fittedState(text: string, path: string, max: number, truncated = false): string {
  if (text.length <= max && !truncated) return text;
  const size = truncated ? `more than ${text.length}` : `${text.length}`;
  const note = `\n... (${size} characters in all; the rest is in ${path}: read it before you go on)`;
  const room = Math.max(0, max - note.length);
  const next = nextAction(text);
  if (next === null || next.text.length + 1 > room * nextActionShare) return `${cut(text, room)}${note}`;
  const head = cut(text, room - next.text.length - 1);
  // A next action near the beginning is included already.
  if (next.end <= head.length) return `${cut(text, room)}${note}`;
  return `${head.slice(0, Math.min(head.length, next.begin))}${note}\n${next.text}`;
}

interface Section {
  readonly begin: number;
  readonly end: number;
  readonly text: string;
}

function nextAction(text: string): Section | null {
  const begin = /^## Next (?:Action|Step)s?\b/im.exec(text)?.index;
  if (begin === undefined) return null;
  const after = text.indexOf('\n## ', begin);
  const end = after < 0 ? text.length : after;
  return { begin, end, text: text.slice(begin, end).trimEnd() };
}

// The progress files of a project with their ages and contents.

export interface ProgressFile {
  readonly sessionId: string | null;
  readonly name: string;
  readonly path: string;
  readonly mtimeMs: number;
  readonly ageMs: number;
  readonly stale: boolean;
}

export interface Progress {
  readonly sessions: readonly ProgressFile[];
  readonly legacy: ProgressFile | null;
  /** Of compactions; the newest first. */
  readonly summaries: readonly ProgressFile[];
  /** Files that look like progress files but whose names have no usable id. */
  readonly oddNames: number;
  /** Why the folder is unreadable; null = it is readable, or missing. */
  readonly trouble: string | null;
}

/** Reads only names and times, so that ten thousand files cost little. Throws nothing. */
export function findProgress(files: ContextFiles, projectFolder: string, nowMs: number): Progress {
  const folder = join(projectFolder, progressFolder);
  const { names, trouble } = namesIn(files, folder);
  const filesOf = (pattern: RegExp) =>
    names
      .flatMap((name) => {
        const sessionId = sessionOfName(name, pattern);
        return sessionId === null ? [] : [fileOf(files, folder, name, sessionId, nowMs)];
      })
      .sort((one, other) => other.mtimeMs - one.mtimeMs || (one.name < other.name ? -1 : 1));
  const legacy = names.includes(legacyName) ? fileOf(files, folder, legacyName, null, nowMs) : null;
  return {
    sessions: filesOf(namePattern),
    legacy,
    summaries: filesOf(summaryPattern),
    oddNames: names.filter((name) => namePattern.test(name) && sessionOfName(name) === null).length,
    trouble,
  };
}

function namesIn(files: ContextFiles, folder: string): { names: string[]; trouble: string | null } {
  try {
    return { names: files.list(folder), trouble: null };
  } catch (error) {
    return { names: [], trouble: `${progressFolder} cannot be read (${codeOf(error)})` };
  }
}

function fileOf(
  files: ContextFiles,
  folder: string,
  name: string,
  sessionId: string | null,
  nowMs: number,
): ProgressFile {
  const path = join(folder, name);
  // An unreadable file counts as just written, so that it is not lost.
  const mtimeMs = quietly(() => files.info(path)?.mtimeMs) ?? nowMs;
  const ageMs = Math.max(0, nowMs - mtimeMs);
  return { sessionId, name, path, mtimeMs, ageMs, stale: ageMs > staleAfterMs };
}

export type ProgressText =
  | { readonly ok: true; readonly text: string; readonly truncated: boolean; readonly header: ProgressHeader }
  /** `trouble` completes a sentence that begins with the path. */
  | { readonly ok: false; readonly trouble: string };

/** The safe text of a progress file, at most `bytesMax` bytes of it. Throws nothing. */
export function readProgressText(
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

/** The path of a session's progress file, whether it exists or not. */
export function progressPath(projectFolder: string, sessionId: string): string {
  return join(projectFolder, progressFolder, progressName(sessionId));
}

/** A path for a sentence. */
export function shownPath(path: string): string {
  return harmlessLine(path, 500);
}

// A session's instructions about its progress file: the part of CPM that only the model can do.

/** For CLAUDE.md, or without one for the end of the system prompt. `sessionId` is claude's id, chosen by us. */
export function cpmInstructions(sessionId: string): string {
  assert(isClaudeSessionId(sessionId), 'a session id is part of a file name');
  const path = `${progressFolder}/${progressName(sessionId)}`;
  return `Your session id is \`${sessionId}\` (\`CPM_SESSION_ID\`), your progress file \`${path}\`.`;
}

/** Markdown for the system prompt, identical for every session. */
export const cpmRules = `## State Management

For work of several phases, keep your state in your own progress file, so that a compaction, a pause or a crash costs
nothing. It is \`${progressFolder}/.cpm-progress-<session id>.md\` of the project.

- **When**: before the first phase (make \`${progressFolder}\` if it is missing), before and after each phase, and
  before anything that takes long (a build, a test run, sub-agents). Replace the whole file with the Write tool.
- **What**: \`# CPM Session State\`; the lines \`**Skill**: name\`, \`**Phase**: N of M — name\` and
  \`**Output target**: path\`; \`## Completed Phases\` with a \`###\` part each, what was decided and done, enough
  to go on without asking; \`## Next Action\`, the very next step.
- **Reading it**: after a start, a resume or a compaction a hook shows it after \`--- CPM SESSION STATE\`. Continue with
  its next action. When it says that the rest is in the file, read the file first.
- **Adoption**: \`/clear\`, a fork or a resume may change the id; \`$CLAUDE_CODE_SESSION_ID\` in Bash is always right.
  When your own state is in a file with an earlier id, write it to the file with the new id (when that exists, add what
  it lacks), read it back, and only then delete the old one. Files of other sessions are not yours: leave them alone.
- **At the end**: delete it, after every output was written and checked, never before. No commit holds it.`;
