/** Converts transcript lines to readable entries. */

import { defined } from '../core/defined.ts';
import type { DiffHunk, FileEdit, TranscriptEntry } from '../core/transcript.ts';
import { isObject, type JsonObject } from '../store/json.ts';
import { number, object, objects, text } from './lenient.ts';
import {
  type AssistantMessage,
  type ClaudeMessage,
  contentText,
  isAborted,
  parseObject,
  type ResultMessage,
} from './messages.ts';
import { targetOf } from './stream.ts';
import { clip } from './text.ts';

interface Call {
  readonly tool: string;
  readonly target: string;
  readonly depth: number;
  readonly input?: JsonObject;
}

const toolChars = 80;
const targetChars = 160;
const outcomeChars = 2_000;
/** A block of text; no model writes one that long. */
const textChars = 1_000_000;
const interruption = /^\[Request interrupted by user/;

export class TranscriptReader {
  #cwd: string | undefined;
  #calls = new Map<string, Call>();
  #lastText = '';
  #denied = new Set<string>();

  /** Call when another process starts: open tool calls are forgotten. */
  restart(): void {
    this.#calls.clear();
    this.#lastText = '';
  }

  /** The readable entries of this line (without its newline); often none. */
  read(line: string): TranscriptEntry[] {
    const { message, value } = parseObject(line);
    if (value === null) return message.kind === 'malformed' ? [{ kind: 'unreadable', text: message.text }] : [];
    return this.#entries(message, value);
  }

  #entries(message: ClaudeMessage, value: JsonObject): TranscriptEntry[] {
    switch (message.kind) {
      case 'init': {
        this.#cwd = message.cwd ?? this.#cwd;
        const { model, claudeVersion: version } = message;
        return [{ kind: 'claude', ...defined({ model }), ...(version ? { version } : {}) }];
      }
      case 'assistant':
        return this.#assistant(message);
      case 'user':
        return this.#user(value);
      case 'result':
        return [this.#result(message)];
      case 'api-retry': {
        const { error, errorStatus, attempt } = message;
        const why = errorStatus === null ? error : `${errorStatus} ${error}`;
        return [{ kind: 'problem', text: `API error (${why}), retry ${attempt}` }];
      }
      case 'rate-limit':
        return message.status === 'rejected' ? [{ kind: 'problem', text: 'a usage limit was reached' }] : [];
      case 'compact-boundary':
        return [compaction(value)];
      case 'denied':
        this.#denied.add(message.id);
        return systemNote(value);
      default:
        return systemNote(value);
    }
  }

  #assistant({ blocks, parentToolUseId }: AssistantMessage): TranscriptEntry[] {
    const depth = this.#depthBelow(parentToolUseId);
    return blocks.flatMap((block): TranscriptEntry[] => {
      if (block.kind === 'text') return this.#said(block.text, depth);
      if (block.kind === 'tool-use') return [this.#call(block, depth)];
      if (block.kind !== 'thinking' || block.text.trim() === '') return [];
      return [{ kind: 'thought', depth, text: clip(block.text, outcomeChars) }];
    });
  }

  #said(said: string, depth: number): TranscriptEntry[] {
    if (said.trim() === '') return [];
    if (depth === 0) this.#lastText = said;
    return [{ kind: 'said', depth, text: clip(said, textChars) }];
  }

  #call(
    { id, name, input }: { readonly id: string; readonly name: string; readonly input: JsonObject },
    depth: number,
  ): TranscriptEntry {
    const tool = clip(name, toolChars);
    const target = targetOf(input, this.#cwd, targetChars);
    const changesFiles = editOf(tool, input, undefined) !== undefined;
    if (id !== '') this.#calls.set(id, { tool, target, depth, ...(changesFiles ? { input } : {}) });
    return { kind: 'call', depth, id, tool, target };
  }

  #user(value: JsonObject): TranscriptEntry[] {
    const depth = this.#depthBelow(text(value.parent_tool_use_id));
    const { content } = object(value.message);
    const blocks = typeof content === 'string' ? [{ type: 'text', text: content }] : objects(content);
    const outcomes = blocks.filter(({ type }) => type === 'tool_result');
    return blocks.flatMap((block): TranscriptEntry[] => {
      if (block.type === 'tool_result') {
        // The details are beside the message and belong to its only answer.
        return [this.#outcome(block, depth, outcomes.length === 1 ? value.tool_use_result : undefined)];
      }
      const told = block.type === 'text' ? (text(block.text) ?? '') : '';
      if (interruption.test(told)) return [{ kind: 'problem', text: 'interrupted' }];
      // Messages that claude writes to itself in the user's name.
      if (told.trim() === '' || value.isSynthetic === true || value.isMeta === true) return [];
      return [{ kind: 'told', depth, text: clip(told, outcomeChars) }];
    });
  }

  #outcome(block: JsonObject, depth: number, details: unknown): TranscriptEntry {
    const id = text(block.tool_use_id) ?? '';
    const call = this.#calls.get(id);
    const isError = block.is_error === true;
    const answer = contentText(block.content).replace(/<\/?tool_use_error>/g, '');
    const edit = isError || call?.input === undefined ? undefined : this.#edit(call, call.input, details);
    return {
      kind: 'outcome',
      depth: call?.depth ?? depth,
      id,
      tool: call?.tool ?? '',
      target: call?.target ?? '',
      isError,
      text: clip(answer, outcomeChars),
      lines: countLines(answer),
      ...defined({ edit }),
    };
  }

  #edit({ tool, target }: Call, input: JsonObject, details: unknown): FileEdit | undefined {
    const edit = editOf(tool, input, isObject(details) ? details : undefined);
    return edit === undefined ? undefined : { path: target, ...edit };
  }

  #result(message: ResultMessage): TranscriptEntry {
    const said = message.result ?? '';
    // The result usually repeats claude's last text.
    const isNew = said.trim() !== '' && said.trim() !== this.#lastText.trim();
    return {
      kind: 'result',
      isError: message.isError,
      ...(isAborted(message) ? { interrupted: true as const } : {}),
      ...(isNew ? { text: clip(said, textChars) } : {}),
      // Omit claude's diagnostics about an abort that the user requested.
      errors: message.errors.filter((error) => !(isAborted(message) && error.startsWith('[ede_diagnostic]'))),
      denied: message.denials.filter(({ id }) => !this.#denied.has(id)).map(({ tool }) => tool),
      turns: message.numTurns,
      durationMs: message.durationMs,
      costUsd: message.costUsd,
      tokens: message.tokens,
    };
  }

  /** Nested sub-agents name the call that runs them; one with an unknown call is at least a sub-agent. */
  #depthBelow(id: string | undefined): number {
    return id === undefined ? 0 : (this.#calls.get(id)?.depth ?? 0) + 1;
  }
}

function compaction(value: JsonObject): TranscriptEntry {
  const { trigger, pre_tokens, post_tokens } = object(value.compact_metadata);
  const [how, before, after] = [text(trigger), number(pre_tokens), number(post_tokens)];
  return {
    kind: 'compaction',
    ...defined({ trigger: how, tokensBefore: before, tokensAfter: after }),
  };
}

/** Other reports of claude that concern users. */
function systemNote(value: JsonObject): TranscriptEntry[] {
  if (value.type !== 'system') return [];
  const said = (what: unknown): TranscriptEntry[] => {
    const note = clip(text(what) ?? '', outcomeChars);
    return note.trim() === '' ? [] : [{ kind: 'problem', text: note }];
  };
  switch (value.subtype) {
    case 'model_fallback':
      return said(value.content);
    case 'informational':
      return value.level === 'warning' || value.level === 'error' ? said(value.content) : [];
    case 'permission_denied':
      return said(`denied: ${text(value.tool_name) ?? 'a tool'} (${text(value.message) ?? 'not allowed'})`);
    case 'notification':
      return value.priority === 'immediate' ? said(value.text) : [];
    default:
      return [];
  }
}

function countLines(answer: string): number {
  let lines = answer === '' ? 0 : 1;
  const end = answer.endsWith('\n') ? answer.length - 1 : answer.length;
  for (let at = answer.indexOf('\n'); at !== -1 && at < end; at = answer.indexOf('\n', at + 1)) lines += 1;
  return lines;
}

type Change = Omit<FileEdit, 'path'>;

/** Kept lines of one edit; the counts are of the whole. */
const linesMax = 2_000;

/** Undefined for tools that change no file. `details` is claude's own account. */
function editOf(tool: string, input: JsonObject, details: JsonObject | undefined): Change | undefined {
  switch (tool) {
    case 'Edit':
      return patched(details) ?? changeOf([]);
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

function created(content: string): DiffHunk {
  const lines = content === '' ? [] : content.replace(/\n$/, '').split('\n');
  return { lines: lines.map((line) => `+${line}`) };
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
