/**
 * Fills references in a session's prompt with the results of its dependencies when it becomes ready. Long results go
 * into files, because a prompt with everything would leave no space for the work.
 */
import type { Changes, PromptReference, SessionDefinition, SessionId } from '../core/group.ts';
import { sessionLabel } from '../core/id.ts';
import type { SessionRecord } from '../core/session-state.ts';
import type { GroupState } from '../core/state.ts';
import { asData } from '../core/text.ts';
import { fillLater } from './render.ts';

const placeBytesMax = 8 * 1024;
/** The least shown of a result, however many there are. */
const leastBytes = 200;

export interface InputFile {
  readonly name: string;
  readonly text: string;
}

/** The session's prompt with every reference filled in. `folder`: where the caller will put the files. */
export function fillPrompt(definition: SessionDefinition, state: GroupState, folder: string) {
  const references = definition.promptReferences ?? [];
  const files: InputFile[] = [];
  const later = references.map(({ at, length }) => ({ name: '', at, length }));
  const texts = references.map((reference) => {
    const parts = reference.sessionIds.map((id) => resultOf(id, reference, state));
    const whole = joined(
      reference,
      parts.map(({ text }) => text),
      state,
    );
    if (Buffer.byteLength(whole) <= placeBytesMax) return joined(reference, parts.map(framed), state);
    const name = `${files.length + 1}-${fileName(reference, state)}`;
    files.push({ name, text: whole });
    // Each of many results has its share, so that a long one does not displace another.
    const share = Math.max(leastBytes, Math.floor(placeBytesMax / parts.length));
    const cutOff = parts.map(({ text, from }) => framed({ text: cut(text, share), from }));
    const shown = joined(reference, cutOff, state);
    const what = parts.length > 1 ? 'Long results are cut' : 'Only the first part is shown';
    return `${shown}\n[${what}. All of it is in the file ${folder}/${name}]`;
  });
  return { prompt: fillLater(definition.prompt, later, texts), files };
}

function joined({ every, sessionIds }: PromptReference, parts: readonly string[], state: GroupState): string {
  if (!every) return parts[0] as string;
  return parts.map((part, index) => `### ${labelOf(sessionIds[index] as SessionId, state)}\n\n${part}`).join('\n\n');
}

interface Part {
  readonly text: string;
  /** The session that produced the text; absent = the text is ours. */
  readonly from?: string | undefined;
}

const ours = (text: string): Part => ({ text });

function resultOf(id: SessionId, { field, path = [] }: PromptReference, state: GroupState): Part {
  const record = state.sessions.get(id);
  const session = record?.state;
  const label = labelOf(id, state);
  // Only when dependencies are not respected, or the session was removed.
  if (session?.status !== 'completed')
    return ours(`(${label} has no ${nouns[field]}: it is ${session?.status ?? 'gone'})`);
  if (field === 'result') return { text: asData(session.result), from: label };
  if (field === 'diffStat') return ours(session.work ? diffStatText(session.work) : noWorktree(label, field));
  if (field === 'branch') return ours(branchOf(record as SessionRecord, label));
  const value = documentValue(session.structured, path);
  if (value === undefined) return ours(`(the result of ${label} has no ${path.join('.')})`);
  const text = asData(typeof value === 'string' ? value : JSON.stringify(value, null, 2));
  // A word or a number may be needed in the middle of a command.
  return text.includes('\n') ? { text, from: label } : ours(text);
}

function framed({ text, from }: Part): string {
  if (from === undefined) return text;
  const space = text.includes('\n') ? '\n' : '';
  return `<session-result from="${from.replace(/["<>]/g, '')}">${space}${text}${space}</session-result>`;
}

const nouns: Readonly<Record<PromptReference['field'], string>> = {
  result: 'result',
  structured: 'result',
  diffStat: 'diff',
  branch: 'branch',
};

function branchOf({ workspace, mergedInto }: SessionRecord, label: string): string {
  if (workspace !== undefined) return workspace.branch;
  if (mergedInto !== undefined) return `(${label} no longer has a branch: its work was merged into ${mergedInto})`;
  return noWorktree(label, 'branch');
}

function noWorktree(label: string, field: 'diffStat' | 'branch'): string {
  return `(${label} has no ${nouns[field]} of its own: it worked in the project folder without a worktree)`;
}

/** In the format of `git diff --shortstat`: `3 files changed, 10 insertions(+), 2 deletions(-)`. */
export function diffStatText({ files, insertions, deletions }: Omit<Changes, 'commit'>): string {
  if (files === 0) return 'no files changed';
  const counted = (count: number, noun: string, mark: string) =>
    count === 0 ? [] : [`${count} ${noun}${count === 1 ? '' : 's'}(${mark})`];
  const lines = [...counted(insertions, 'insertion', '+'), ...counted(deletions, 'deletion', '-')];
  return [`${files} file${files === 1 ? '' : 's'} changed`, ...lines].join(', ');
}

/** The value at a path; only the document's own fields count. */
export function documentValue(document: unknown, path: readonly string[]): unknown {
  let value = document;
  for (const part of path) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, part)) return undefined;
    value = (value as Readonly<Record<string, unknown>>)[part];
  }
  return value;
}

function labelOf(id: SessionId, state: GroupState): string {
  return sessionLabel(id, state.sessions.get(id)?.definition.name);
}

function fileName(reference: PromptReference, state: GroupState): string {
  const label = reference.every ? 'all' : labelOf(reference.sessionIds[0] as SessionId, state);
  const extensions = { result: 'md', structured: 'json', diffStat: 'txt', branch: 'txt' };
  return `${label}-${reference.field}.${extensions[reference.field]}`;
}

/** The first bytes, without a partial character at the end. */
function cut(text: string, bytesMax: number): string {
  const bytes = Buffer.from(text);
  if (bytes.length <= bytesMax) return text;
  return `${new TextDecoder('utf-8').decode(bytes.subarray(0, bytesMax), { stream: true })} …`;
}
