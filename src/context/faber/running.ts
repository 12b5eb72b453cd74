/** Whether a FABER run is in progress in a project: by its own state, because `.active-run-id` outlives the run. */
import { join } from 'node:path';
import { type ContextFiles, readProjectText } from '../hook-call.ts';

/** Run ids name folders. */
const runIdPattern = /^[A-Za-z0-9][A-Za-z0-9._-]{0,199}$/;

export function isFaberRunning(files: ContextFiles, projectFolder: string): boolean {
  const active = readProjectText(files, projectFolder, join(projectFolder, '.fractary', 'faber', '.active-run-id'), 1024);
  const runId = active.ok ? active.text.trim() : '';
  if (!runIdPattern.test(runId)) return false;
  const state = readProjectText(files, projectFolder, join(projectFolder, '.fractary', 'runs', runId, 'state.json'));
  if (!state.ok) return false;
  try {
    const value: unknown = JSON.parse(state.text);
    return typeof value === 'object' && value !== null && (value as { status?: unknown }).status === 'in_progress';
  } catch {
    return false;
  }
}
