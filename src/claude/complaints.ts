/** Warnings for the user about what claude, a hook or a server ignored or could not do. */
import type { Warning } from '../core/event.ts';
import { cleanLine, clip } from './text.ts';

/** Sentences without a full stop, with the number of reports. */
export type Complaints = Map<string, { readonly code: Warning['code']; times: number }>;

export interface HookFailure {
  /** claude's name of the hook, such as `PreToolUse:Bash`. */
  readonly hookName: string;
  readonly exitCode: number;
  readonly stderr: string;
}

const reasonChars = 200;
const complaintsMax = 20;
const linesMax = 5;
/** A hook exits with this code to refuse, which is not a failure. */
const refusalCode = 2;
const notFoundCodes: ReadonlySet<number> = new Set([126, 127]);

function note(complaints: Complaints, code: Warning['code'], sentence: string): void {
  const known = complaints.get(sentence);
  // claude lists its servers again in each turn.
  if (known !== undefined) known.times += code === 'mcp-server' ? 0 : 1;
  else if (complaints.size < complaintsMax) complaints.set(sentence, { code, times: 1 });
}

export function noteHookFailure(complaints: Complaints, { hookName, exitCode, stderr }: HookFailure): void {
  if (exitCode === refusalCode) return;
  const reason = cleanLine(stderr, reasonChars) || `exit code ${exitCode}`;
  const isMissing = notFoundCodes.has(exitCode);
  const fix = isMissing ? '. Install its program where the session works, for example with a set-up command' : '';
  note(complaints, 'hook-failed', `The ${hookName} hook failed and had no effect: ${reason}${fix}`);
}

/** `status`: claude's word. A `pending` server may still connect. */
export function noteServer(complaints: Complaints, name: string, status: string): void {
  if (!['failed', 'needs-auth'].includes(status)) return;
  const why = status === 'failed' ? 'could not be started' : 'needs a login';
  note(complaints, 'mcp-server', `The MCP server ${cleanLine(name, reasonChars)} ${why}, so its tools were missing`);
}

export function noteWords(complaints: Complaints, words: string): void {
  note(complaints, 'claude-reports', `claude reports: ${cleanLine(words, reasonChars).replace(/\.$/, '')}`);
}

export function complaintsOf(complaints: Complaints, stderr = ''): Warning[] {
  const all: Complaints = new Map(complaints);
  const lines = stderr.split('\n').filter((line) => line.trim() !== '' && !isAlreadyReported.test(line));
  for (const line of lines.slice(-linesMax)) noteWords(all, `${clip(line, reasonChars)} (stderr.log)`);
  return [...all].map(([sentence, { code, times }]) => {
    return { code, message: times === 1 ? `${sentence}.` : `${sentence} (${times} times).` };
  });
}

/** The run named these rules before it started. */
const isAlreadyReported = /^Ignoring \d+ permissions\./;
