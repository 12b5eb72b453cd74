/**
 * resume-context.md, schema 2.0: what a project must say so that a session finds it again. Reading takes what it
 * understands; recording a session changes the values it must and leaves every other byte alone.
 */
import { type Field, type FrontMatter, findFrontMatter, type List, listOf, scalarOf } from './front-matter.ts';

export const schemaVersion = '2.0';

/** Ids are written into files of others, so only what needs no quoting of any kind counts. */
export const sessionIdPattern = /^[A-Za-z0-9][A-Za-z0-9_-]{0,127}$/;

export interface ResumeFacts {
  readonly schemaVersion: string;
  /** Every session that worked on the project, oldest first. */
  readonly sessionIds: readonly string[];
  /** The last one, in the field that schema 1 has; empty when there is none. */
  readonly sessionId: string;
  readonly lastUpdated: string;
  readonly projectName: string;
  readonly currentPhase: string;
  readonly nextAction: string;
  /** Paths as they are written. */
  readonly filesToLoad: readonly string[];
}

/** What the text says; what it does not say is empty. */
export function readResumeFile(text: string): ResumeFacts {
  const found = findFrontMatter(text);
  const fields = found === null || found === 'unreadable' ? [] : found.fields;
  const scalar = (key: string) => {
    const field = fields.find((one) => one.key === key);
    return field === undefined ? '' : scalarOf(text, field).value;
  };
  const list = (key: string) =>
    fields.filter((one) => one.key === key).flatMap((field) => listOf(text, field).items.map(({ value }) => value));
  return {
    schemaVersion: scalar('resume_schema_version'),
    sessionIds: [...new Set(list('session_ids'))],
    sessionId: scalar('session_id'),
    lastUpdated: scalar('last_updated'),
    projectName: scalar('project_name'),
    currentPhase: scalar('current_phase'),
    nextAction: scalar('next_action'),
    filesToLoad: list('files_to_load'),
  };
}

interface Edit {
  readonly start: number;
  readonly end: number;
  readonly text: string;
}

/**
 * The text with the session in its list and as its last one, updated at `timestamp` (ISO 8601). Missing fields are
 * added, a text without front matter gets one. Null when its front matter is of a form that cannot be changed safely.
 * `sessionId` must match `sessionIdPattern`.
 */
export function recordSession(text: string, sessionId: string, timestamp: string): string | null {
  const found = findFrontMatter(text);
  if (found === 'unreadable') return null;
  const eol = /^[^\n]*\r\n/.test(text) ? '\r\n' : '\n';
  if (found === null) {
    const mark = /^(?:\ufeff|\u00ef\u00bb\u00bf)?/.exec(text)?.[0] ?? '';
    const rest = text.slice(mark.length);
    const lines = ['---', ...newFields(['', sessionId, timestamp], () => true), '---', ...(rest === '' ? [] : [''])];
    return `${mark}${lines.map((line) => `${line}${eol}`).join('')}${rest}`;
  }
  const lists = found.fields.filter(({ key }) => key === 'session_ids').map((field) => listOf(text, field));
  if (lists.some((list) => listEdit(text, list, { sessionId, eol }) === null)) return null;
  const has = (key: string) => found.fields.some((field) => field.key === key);
  const missing = newFields([previousSession(text, found), sessionId, timestamp], (key) => !has(key));
  const added = missing.map((line) => `${line}${eol}`).join('');
  const edits = [
    { start: found.start, end: found.start, text: added },
    ...found.fields.flatMap((field) => editOf(text, field, { sessionId, timestamp, eol })),
  ];
  return applied(text, edits);
}

/** The lines of the fields for which `isMissing`. The last session of schema 1 becomes the first of the list. */
function newFields([previous, sessionId, timestamp]: readonly [string, string, string], isMissing: Wanted): string[] {
  const ids = [...new Set([previous, sessionId])].filter((id) => id !== '').map((id) => `"${id}"`);
  const lines = {
    resume_schema_version: `"${schemaVersion}"`,
    last_updated: `"${timestamp}"`,
    session_id: `"${sessionId}"`,
    session_ids: `[${ids.join(', ')}]`,
  };
  return Object.entries(lines).flatMap(([key, value]) => (isMissing(key) ? [`${key}: ${value}`] : []));
}
type Wanted = (key: string) => boolean;

function previousSession(text: string, { fields }: FrontMatter): string {
  const field = fields.find(({ key }) => key === 'session_id');
  const id = field === undefined ? '' : scalarOf(text, field).value;
  return sessionIdPattern.test(id) ? id : '';
}

interface News {
  readonly sessionId: string;
  readonly timestamp: string;
  readonly eol: string;
}

function editOf(text: string, field: Field, { sessionId, timestamp, eol }: News): Edit[] {
  switch (field.key) {
    case 'session_id':
      return [scalarEdit(text, field, sessionId)];
    case 'last_updated':
      return [scalarEdit(text, field, timestamp)];
    case 'resume_schema_version':
      return Number.parseFloat(scalarOf(text, field).value) >= 2 ? [] : [scalarEdit(text, field, schemaVersion)];
    case 'session_ids':
      return listEdit(text, listOf(text, field), { sessionId, eol }) ?? [];
    default:
      return [];
  }
}

function scalarEdit(text: string, field: Field, value: string): Edit {
  const { start, end } = scalarOf(text, field);
  // Behind the colon there may be nothing, not even a blank.
  return { start, end, text: start === end ? ` "${value}"` : `"${value}"` };
}

/** Null when the list would have to be written anew, and says something that is known only elsewhere. */
function listEdit(text: string, list: List, { sessionId, eol }: Pick<News, 'sessionId' | 'eol'>): Edit[] | null {
  if (list.form === 'scalar' || (list.form === 'flow' && !list.isWellFormed)) {
    if (/(?:^|[\s,[])[*&!]/.test(text.slice(list.span.start, list.span.end))) return null;
    // A lone value was meant as the only item, and a slip of the hand is mended; no id is lost by either.
    const { start, end } = list.span;
    const ids = [...new Set([...list.items.map(({ value }) => value), sessionId])].filter((id) => id !== '');
    const blank = start === end ? ' ' : '';
    return [{ start, end, text: `${blank}[${ids.map((id) => JSON.stringify(id)).join(', ')}]` }];
  }
  if (list.items.some(({ value }) => value === sessionId)) return [];
  const at = { start: list.insertAt, end: list.insertAt };
  if (list.form === 'block') return [{ ...at, text: `${eol}${list.indent}- "${sessionId}"` }];
  return [{ ...at, text: `${list.items.length === 0 ? '' : ', '}"${sessionId}"` }];
}

function applied(text: string, edits: readonly Edit[]): string {
  let result = text;
  for (const edit of edits.toSorted((a, b) => b.start - a.start)) {
    result = result.slice(0, edit.start) + edit.text + result.slice(edit.end);
  }
  return result;
}

export interface NewResumeFile {
  readonly projectId: string;
  readonly projectName: string;
  readonly timestamp: string;
}

/** What a new project begins with. */
export function newResumeFile({ projectId, projectName, timestamp }: NewResumeFile): string {
  return `---
resume_schema_version: "${schemaVersion}"
last_updated: "${timestamp}"

# PROJECT
project_id: ${JSON.stringify(projectId)}
project_name: ${JSON.stringify(projectName)}
current_phase: "planning"

# SESSION TRACKING (filled in by the PreCompact hook)
session_id: ""
session_ids: []

# LOADING
next_action: "plan-project"
files_to_load:
  - "01-planning/01-overview.md"
  - "01-planning/02-discovery.md"
  - "01-planning/03-plan.md"
  - "01-planning/04-steps.md"
  - "01-planning/resume-context.md"

# STATE
current_section: 1
current_task: 1
total_tasks: 0
tasks_completed: 0
---

*Auto-updated by PreCompact hook*
`;
}
