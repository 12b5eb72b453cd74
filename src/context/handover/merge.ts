/**
 * Three-way merge of a session's copy of a resume file into the project's file. Conflicting text is appended at the
 * end, so nothing is lost. `git merge-file` is not used, because it treats changes of adjacent lines, such as the
 * fields of a front matter, as a conflict.
 */
import { diffArrays } from 'diff/lib/diff/array.js';
import { findFrontMatter, readResumeFile, recordSession, sessionIdPattern } from './resume-file.ts';

export interface Copies {
  readonly ours: string;
  readonly base: string;
  readonly theirs: string;
  /** Names the session where its text is appended; one line. */
  readonly who: string;
}

/** The new content of the project's file. Repeating it, as after a crash, removes nothing. */
export function mergeResume({ ours, base, theirs, who }: Copies): string {
  if (theirs === base || theirs === ours) return ours;
  const text = mergeLines(linesOf(aligned(base, ours)), linesOf(ours), linesOf(aligned(theirs, ours)), who);
  return withSessions(text, { ours, base, theirs });
}

/** The candidate nearest to `theirs`; the first of two equally near ones. */
export function nearestBase(theirs: string, candidates: readonly string[]): string {
  const lines = linesOf(theirs);
  const distances = candidates.map((text) =>
    changesOf(linesOf(text), lines).reduce((sum, { from, to, lines: news }) => sum + to - from + news.length, 0),
  );
  return candidates[distances.indexOf(Math.min(...distances))] ?? '';
}

/** Fields that hooks of every session write: these values are merged by meaning, not line by line. */
const tracked: ReadonlySet<string> = new Set(['session_id', 'session_ids', 'last_updated', 'resume_schema_version']);

function aligned(text: string, like: string): string {
  const values = new Map(trackedFields(like).map(({ key, start, end }) => [key, like.slice(start, end)]));
  return trackedFields(text).reduceRight(
    (result, { key, start, end }) => `${result.slice(0, start)}${values.get(key) ?? ''}${result.slice(end)}`,
    text,
  );
}

const trackedFields = (text: string) => findFrontMatter(text)?.fields.filter(({ key }) => tracked.has(key)) ?? [];

/** All sessions that either side lists, and the later of the two updates. */
function withSessions(text: string, { ours, base, theirs }: Omit<Copies, 'who'>): string {
  const [mine, before, its, now] = [
    readResumeFile(ours),
    readResumeFile(base),
    readResumeFile(theirs),
    readResumeFile(text),
  ];
  const isNews = its.lastUpdated !== before.lastUpdated && isLater(its.lastUpdated, mine.lastUpdated);
  const updated = isNews ? its.lastUpdated : mine.lastUpdated;
  const last = its.sessionId !== before.sessionId && its.sessionId !== '' ? its.sessionId : mine.sessionId;
  const known = [...mine.sessionIds, ...its.sessionIds].filter((id) => sessionIdPattern.test(id));
  const missing = [...new Set(known)].filter((id) => !now.sessionIds.includes(id));
  const isSame = missing.length === 0 && now.lastUpdated === updated && now.sessionId === last;
  if (isSame || known.length === 0) return text;
  const end = sessionIdPattern.test(last) ? last : (known.at(-1) as string);
  const ids = [...missing.filter((id) => id !== end), end];
  return ids.reduce((result, id) => recordSession(result, id, updated) ?? result, text);
}

function isLater(one: string, other: string): boolean {
  const [a, b] = [Date.parse(one), Date.parse(other)];
  return !Number.isNaN(a) && (Number.isNaN(b) || a > b);
}

type Lines = readonly string[];

interface Change {
  /** Indices of lines of the base; equal where lines are only added. */
  readonly from: number;
  readonly to: number;
  readonly lines: Lines;
}

function mergeLines(base: Lines, ours: Lines, theirs: Lines, who: string): string {
  const mine = changesOf(base, ours);
  const its = changesOf(base, theirs).filter((change) => !mine.some((own) => holds(own, change)));
  const clear = its.filter((change) => !mine.some((own) => collide(own, change)));
  const parts: string[] = [];
  let done = 0;
  for (const { from, to, lines } of [...mine, ...clear].sort((a, b) => a.from - b.from || a.to - b.to)) {
    parts.push(...base.slice(done, from), ...lines);
    done = to;
  }
  parts.push(...base.slice(done));
  const rest = its.filter((change) => !clear.includes(change));
  return withRest(parts.join(''), rest, who);
}

function collide(a: Change, b: Change): boolean {
  if (a.from < b.to && b.from < a.to) return true;
  const isAdded = a.from === a.to || b.from === b.to;
  return isAdded && a.from <= b.to && b.from <= a.to;
}

/** Whether the project already has exactly these lines there, for example from an earlier try. */
function holds(own: Change, change: Change): boolean {
  return collide(own, change) && framed(own.lines).includes(framed(change.lines));
}

/** Without surrounding blank lines, which may belong to either side. */
const framed = (lines: Lines): string =>
  `\n${lines
    .map(bare)
    .join('\n')
    .replace(/^(?:[ \t]*\n)+|\n[ \t\n]*$/g, '')}\n`;

const bare = (line: string): string => line.replace(/\r?\n$/, '');

/** The lines without a position, as a section at the end: indented, so that they are plain text. */
function withRest(text: string, rest: readonly Change[], who: string): string {
  const words = rest.map(({ lines }) => lines.map(bare).filter((line) => line.trim() !== ''));
  const filled = words.filter((lines) => lines.length > 0);
  if (filled.length === 0) return text;
  const eol = /^[^\n]*\r\n/.test(text) ? '\r\n' : '\n';
  const why = 'Something else was written in its place meanwhile; what of it holds belongs above.';
  const parts = filled.flatMap((lines) => ['', ...lines.map((line) => `    ${line}`)]);
  const section = [`## Also written by ${who}`, '', why, ...parts, ''].join(eol);
  if (text.includes(section)) return text;
  return `${text}${text === '' || text.endsWith('\n') ? '' : eol}${eol}${section}`;
}

function linesOf(text: string): Lines {
  return text.match(/[^\n]*\n|[^\n]+$/g) ?? [];
}

/** More takes too long with the file locked; then everything from the first to the last changed line is one change. */
const editsMax = 2_000;

/** The fewest changes from `before` to `after`, in order. */
function changesOf(before: Lines, after: Lines): readonly Change[] {
  const parts = diffArrays([...before], [...after], { maxEditLength: editsMax });
  if (parts === undefined) return [{ from: 0, to: before.length, lines: after }];
  const changes: Change[] = [];
  let [from, to] = [0, 0];
  let lines: Lines = [];
  for (const { added, removed, value } of [...parts, { added: false, removed: false, value: [] }]) {
    if (added) lines = [...lines, ...value];
    else if (removed) to += value.length;
    else {
      if (to > from || lines.length > 0) changes.push({ from, to, lines });
      from = to + value.length;
      to = from;
      lines = [];
    }
  }
  return changes;
}
