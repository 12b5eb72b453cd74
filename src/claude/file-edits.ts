/** What a tool did to a file, as hunks: from what claude says it changed, else from what the model asked for. */
import { defined } from '../core/defined.ts';
import type { DiffHunk, FileEdit } from '../core/transcript.ts';
import { type JsonObject, number, objects, text } from './lenient.ts';

type Change = Omit<FileEdit, 'path'>;

/** Lines kept of one edit; the counts are those of the whole. */
const linesMax = 2_000;

/** Undefined for tools that change no file. `details` is claude's own account of what it did. */
export function editOf(tool: string, input: JsonObject, details: JsonObject | undefined): Change | undefined {
  switch (tool) {
    case 'Edit':
    case 'MultiEdit':
      return patched(details) ?? changeOf(askedFor(input));
    case 'Write':
      if (details?.type === 'update') return patched(details) ?? changeOf([]);
      return changeOf([created(text(input.content) ?? '')], true);
    case 'NotebookEdit':
      return changeOf([created(text(input.new_source) ?? '')]);
    default:
      return undefined;
  }
}

/** The patch in claude's account; undefined when there is none, as for a new file. */
function patched(details: JsonObject | undefined): Change | undefined {
  const hunks = objects(details?.structuredPatch).map((hunk): DiffHunk => {
    const [oldStart, newStart] = [number(hunk.oldStart), number(hunk.newStart)];
    return {
      ...defined({ oldStart, newStart }),
      lines: (Array.isArray(hunk.lines) ? hunk.lines : []).filter((line) => typeof line === 'string'),
    };
  });
  return hunks.length === 0 ? undefined : changeOf(hunks);
}

function askedFor(input: JsonObject): DiffHunk[] {
  const edits = Array.isArray(input.edits) ? objects(input.edits) : [input];
  return edits.map((edit) => replaced(text(edit.old_string) ?? '', text(edit.new_string) ?? ''));
}

/** Old lines, then new ones, between what both have in common. */
function replaced(before: string, after: string): DiffHunk {
  const [old, now] = [linesOf(before), linesOf(after)];
  const shorter = Math.min(old.length, now.length);
  let head = 0;
  while (head < shorter && old[head] === now[head]) head += 1;
  let tail = 0;
  while (tail < shorter - head && old.at(-1 - tail) === now.at(-1 - tail)) tail += 1;
  const context = 3;
  return {
    lines: [
      ...old.slice(Math.max(0, head - context), head).map((line) => ` ${line}`),
      ...old.slice(head, old.length - tail).map((line) => `-${line}`),
      ...now.slice(head, now.length - tail).map((line) => `+${line}`),
      ...old
        .slice(old.length - tail)
        .slice(0, context)
        .map((line) => ` ${line}`),
    ],
  };
}

function created(content: string): DiffHunk {
  return { lines: linesOf(content).map((line) => `+${line}`) };
}

function linesOf(content: string): string[] {
  return content === '' ? [] : content.replace(/\n$/, '').split('\n');
}

function changeOf(hunks: readonly DiffHunk[], isNew = false): Change {
  let [added, removed, left] = [0, 0, linesMax];
  for (const { lines } of hunks) {
    for (const line of lines) {
      if (line.startsWith('+')) added += 1;
      else if (line.startsWith('-')) removed += 1;
    }
  }
  const kept = hunks.flatMap((hunk): DiffHunk[] => {
    const lines = hunk.lines.slice(0, left);
    left -= lines.length;
    return lines.length === 0 ? [] : [{ ...hunk, lines }];
  });
  return { isNew, added, removed, hunks: kept };
}
