/**
 * resume-context.md, schema 2.0: the project's record for its sessions. Its front matter is read by lines, because a
 * hook has no time to load a YAML parser (70 ms). Recording a session changes only the necessary values; only ASCII
 * counts as syntax, so any one-byte encoding works.
 */

export const schemaVersion = '2.0';

/** Ids are written into users' files, so only those that never need quoting are accepted. */
export const sessionIdPattern = /^[A-Za-z0-9][A-Za-z0-9_-]{0,127}$/;

export interface ResumeFacts {
  readonly schemaVersion: string;
  /** Every session that worked on the project, oldest first. */
  readonly sessionIds: readonly string[];
  /** The last one, in the field of schema 1; empty without one. */
  readonly sessionId: string;
  readonly lastUpdated: string;
  readonly projectName: string;
  readonly currentPhase: string;
  readonly nextAction: string;
  readonly filesToLoad: readonly string[];
}

export interface Field {
  readonly key: string;
  readonly start: number;
  /** Offset after the value: later comments and blank lines belong to the next key. */
  readonly end: number;
}

export interface FrontMatter {
  /** Offset after the opening line. */
  readonly start: number;
  readonly fields: readonly Field[];
}

/** A byte order mark as one character, or as its three bytes. */
const opening = /^(?:\ufeff|\u00ef\u00bb\u00bf)?(?=---[ \t]*\r?\n)/;
const keyLine = /^(?:"([^"\\\n]+)"|'([^'\n]+)'|([A-Za-z_][\w.-]*))[ \t]*:(?=\s|$)/gm;
const isBlankOrComment = (line: string): boolean => /^\s*(?:#|$)/.test(line);

/** Null when the text does not begin with lines of `key: value` between two lines `---`. */
export function findFrontMatter(text: string): FrontMatter | null {
  const mark = opening.exec(text)?.[0];
  if (mark === undefined) return null;
  const start = text.indexOf('\n', mark.length) + 1;
  const length = text.slice(start).search(/^(?:---|\.\.\.)[ \t]*\r?$/m);
  if (length < 0) return null;
  const inner = text.slice(start, start + length);
  const keys = [...inner.matchAll(keyLine)];
  const head = inner.slice(0, keys[0]?.index ?? length);
  if (!head.split('\n').every(isBlankOrComment)) return null;
  const fields = keys.map((match, index): Field => {
    const from = match.index + match[0].length;
    const lines = inner.slice(from, keys[index + 1]?.index ?? length).split('\n');
    while (lines.length > 1 && isBlankOrComment(lines.at(-1) ?? '')) lines.pop();
    const end = start + from + lines.join('\n').trimEnd().length;
    return { key: match[1] ?? match[2] ?? match[3] ?? '', start: start + from, end: Math.max(end, start + from) };
  });
  return { start, fields };
}

interface Value {
  readonly value: string;
  readonly start: number;
  readonly end: number;
}

const quoted = String.raw`"(?:[^"\\\r\n]|\\.)*"|'(?:[^'\r\n]|'')*'`;
const quotedPattern = new RegExp(`^(?:${quoted})`);
/** A comment, a quoted item, a plain one, or the end of the list. */
const flowToken = new RegExp(`(?<=[\\s,[])#[^\\n]*|${quoted}|[^\\s,\\]"'#](?:[^,\\]\\r\\n#]|(?<!\\s)#)*|\\]`, 'g');

function unquoted(text: string): string {
  if (text.startsWith("'")) return text.slice(1, -1).replaceAll("''", "'");
  if (!text.startsWith('"')) return /^(?:~|null)$/.test(text) ? '' : text;
  try {
    // YAML supports all escapes of JSON.
    return String(JSON.parse(text));
  } catch {
    return text.slice(1, -1);
  }
}

/** A quoted value, or a plain one up to a comment, in `line`, which begins at `at`. */
function valueIn(line: string, at: number): Value {
  const start = at + line.search(/\S|$/);
  const rest = line.trimStart();
  const raw = quotedPattern.exec(rest)?.[0] ?? rest.replace(/(?:^|\s)#.*$/s, '').trimEnd();
  return raw === '' ? { value: '', start: at, end: at } : { value: unquoted(raw), start, end: start + raw.length };
}

/** The value as one line: indented lines continue it. */
function scalarOf(text: string, { start, end }: Field): Value {
  const [first = '', ...more] = text.slice(start, end).split('\n');
  const value = valueIn(first, start);
  if (more.length === 0) return value;
  const parts = [/^[|>][-+\d]*$/.test(value.value) ? '' : value.value, ...more.map((line) => line.trim())];
  return { value: parts.filter((part) => part !== '').join(' '), start: value.start, end };
}

interface List {
  readonly items: readonly string[];
  /** Appends an item to a list; null for a single value, or for none. */
  readonly append: ((item: string, eol: string) => Edit) | null;
}

/** Null for a list that cannot be changed safely: without its end, or with an alias. */
function listOf(text: string, field: Field): List | null {
  const value = text.slice(field.start, field.end);
  const content = value.replace(/^(?:[ \t]*(?:#[^\n]*)?\n)*[ \t]*/, '');
  const at = field.end - content.length;
  if (content.startsWith('[')) return flowList(content, at);
  if (/^-(?:\s|$)/.test(content)) return blockList(value, field);
  if (/^[&*!{|>]/.test(content)) return null;
  const { value: lone } = scalarOf(text, field);
  return { items: lone === '' ? [] : [lone], append: null };
}

function flowList(content: string, at: number): List | null {
  const items: string[] = [];
  let end = 1;
  flowToken.lastIndex = 1;
  for (let match = flowToken.exec(content); match !== null; match = flowToken.exec(content)) {
    const [raw] = match;
    if (raw === ']') {
      const place = at + end;
      const comma = items.length === 0 ? '' : ', ';
      return { items, append: (item) => ({ start: place, end: place, text: `${comma}${item}` }) };
    }
    if (raw.startsWith('#')) continue;
    if (/^[&*!]/.test(raw)) return null;
    items.push(unquoted(raw.trimEnd()));
    end = match.index + raw.trimEnd().length;
  }
  return null;
}

function blockList(value: string, { end }: Field): List | null {
  const items = [...value.matchAll(/^([ \t]*)-(?:[ \t]+(.*))?$/gm)];
  const indent = items[0]?.[1] ?? '';
  const values = items.map(([, , item = '']) => (/^[&*!]/.test(item) ? null : valueIn(item, 0).value));
  if (values.includes(null)) return null;
  return {
    items: values.filter((one): one is string => one !== null && one !== ''),
    append: (item, eol) => ({ start: end, end, text: `${eol}${indent}- ${item}` }),
  };
}

/** The fields of the text; missing ones are empty. */
export function readResumeFile(text: string): ResumeFacts {
  const fields = findFrontMatter(text)?.fields ?? [];
  const scalar = (key: string) => {
    const field = fields.find((one) => one.key === key);
    return field === undefined ? '' : scalarOf(text, field).value;
  };
  const list = (key: string) => {
    const field = fields.find((one) => one.key === key);
    return field === undefined ? [] : (listOf(text, field)?.items ?? []).filter((item) => item !== '');
  };
  return {
    schemaVersion: scalar('resume_schema_version'),
    sessionIds: [...new Set(list('session_ids'))],
    sessionId: scalar('session_id'),
    lastUpdated: scalar('last_updated'),
    projectName: scalar('project_name') || scalar('build_name'),
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
 * added, a text without front matter gets one. Null when its list cannot be changed safely. `sessionId` must match
 * `sessionIdPattern`.
 */
export function recordSession(text: string, sessionId: string, timestamp: string): string | null {
  const found = findFrontMatter(text);
  const eol = /^[^\n]*\r\n/.test(text) ? '\r\n' : '\n';
  const { sessionId: last, schemaVersion: version } = readResumeFile(text);
  // The last session of schema 1 becomes the first of the list.
  const ids = [...new Set([last, sessionId])].filter((id) => sessionIdPattern.test(id));
  const wanted = {
    resume_schema_version: Number.parseFloat(version) >= 2 ? null : `"${schemaVersion}"`,
    last_updated: `"${timestamp}"`,
    session_id: `"${sessionId}"`,
    session_ids: `[${ids.map((id) => `"${id}"`).join(', ')}]`,
  };
  const edits: Edit[] = [];
  const added: string[] = [];
  for (const [key, value] of Object.entries(wanted)) {
    const field = found?.fields.find((one) => one.key === key);
    if (field === undefined) added.push(`${key}: ${value}${eol}`);
    else if (key === 'session_ids') {
      const edit = listEdit(text, field, { sessionId, eol });
      if (edit === null) return null;
      edits.push(...edit);
    } else if (value !== null) edits.push(valueEdit(scalarOf(text, field), value));
  }
  if (found === null) {
    const mark = /^(?:\ufeff|\u00ef\u00bb\u00bf)?/.exec(text)?.[0] ?? '';
    const rest = text.slice(mark.length);
    return `${mark}---${eol}${added.join('')}---${eol}${rest === '' ? '' : eol}${rest}`;
  }
  edits.push({ start: found.start, end: found.start, text: added.join('') });
  return edits
    .toSorted((a, b) => b.start - a.start)
    .reduce((result, edit) => result.slice(0, edit.start) + edit.text + result.slice(edit.end), text);
}

/** After the colon there may be nothing, not even a space. */
function valueEdit({ start, end }: Value, value: string): Edit {
  return { start, end, text: start === end ? ` ${value}` : value };
}

function listEdit(
  text: string,
  field: Field,
  { sessionId, eol }: { readonly sessionId: string; readonly eol: string },
): Edit[] | null {
  const list = listOf(text, field);
  if (list === null) return null;
  if (list.append !== null) return list.items.includes(sessionId) ? [] : [list.append(`"${sessionId}"`, eol)];
  // A single value was meant as the only item.
  const ids = [...new Set([...list.items, sessionId])].map((id) => JSON.stringify(id));
  return [valueEdit(scalarOf(text, field), `[${ids.join(', ')}]`)];
}

export interface NewResumeFile {
  readonly projectId: string;
  readonly projectName: string;
  readonly timestamp: string;
}

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
