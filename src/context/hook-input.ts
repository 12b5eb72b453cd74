/** What claude tells a hook on its standard input, read leniently: whatever cannot be used is left out. */
import { defined } from '../core/defined.ts';

export interface HookInput {
  readonly sessionId?: string;
  /** `source` of SessionStart, `trigger` of PreCompact, `reason` of SessionEnd. */
  readonly source?: string;
  readonly transcriptPath?: string;
  readonly cwd?: string;
}

/** Ids become parts of file names, so only what can be one counts. */
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
