/**
 * context/: what a session must still know after a start, a resume or a compaction. This file is the part that every
 * worker gets: its own task, which a compaction would otherwise leave to the summary.
 */

/** What claude tells a SessionStart hook; fields are missing when its input could not be read. */
export interface HookInput {
  readonly sessionId?: string;
  readonly source?: string;
}

/** claude passes at most 10,000 characters of a hook to the model, and of a longer text only the first 2,000. */
const charactersMax = 9_500;

/** Reads claude's hook JSON leniently: whatever cannot be used is left out. */
export function parseHookInput(text: string): HookInput {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value !== 'object' || value === null) return {};
    const { session_id: sessionId, source } = value as Record<string, unknown>;
    return {
      ...(typeof sessionId === 'string' ? { sessionId } : {}),
      ...(typeof source === 'string' ? { source } : {}),
    };
  } catch {
    return {};
  }
}

/**
 * The text a worker's SessionStart hook prints. `prompt` is what was sent as the task, null when it cannot be read.
 * Text comes first in the output, because claude swallows output that is a bare JSON object.
 */
export function sessionStartText(input: HookInput, prompt: string | null, promptFile: string): string {
  const id = input.sessionId ?? 'unknown';
  const lines = [`Claude Code session ${id}, run unattended: nobody can answer questions, so decide and go on.`];
  // On a start or resume the task is the prompt itself; only a compaction takes it away.
  if (input.source === 'compact' && prompt !== null) {
    lines.push('The conversation was compacted. Your task, as it was given to you:', '', harmless(prompt));
  }
  const text = lines.join('\n');
  if (text.length <= charactersMax) return text;
  return `${text.slice(0, charactersMax)}\n... The rest of the task is in ${promptFile}; read it before you go on.`;
}

/** Keeps text of others from ending the reminder it is shown in. */
function harmless(text: string): string {
  return text.replaceAll('</system-reminder', '<\\/system-reminder');
}
