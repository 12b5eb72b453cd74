/**
 * context/: what a session must know after a start, a resume or a compaction. This file is the part for every worker:
 * its own task, which a compaction would otherwise leave to the summary.
 */
import { defined } from '../core/defined.ts';
import { charactersMax, type HookCall, harmless } from './hook-call.ts';

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
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return {};
  }
  if (typeof value !== 'object' || value === null) return {};
  const fields = value as Record<string, unknown>;
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
