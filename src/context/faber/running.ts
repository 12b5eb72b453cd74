/** Which run is in progress in a project: by the run's own state, because `.active-run-id` outlives the run. */
import type { ContextFiles } from '../hook-call.ts';
import type { JsonObject } from './json-text.ts';
import { type FaberProject, readActiveRun } from './project.ts';
import { inProgress } from './state.ts';
import { loadState } from './state-file.ts';

export type Running =
  | { readonly ok: true; readonly runId: string; readonly state: JsonObject }
  /** `why` is for people. `isBroken`: there is a run, but its state cannot be read. */
  | { readonly ok: false; readonly why: string; readonly isBroken?: true };

/** The run that `.active-run-id` names, whatever its status. */
export function activeRun(files: ContextFiles, project: FaberProject): Running {
  const active = readActiveRun(files, project);
  if (active.kind === 'none') return { ok: false, why: 'none is active' };
  if (active.kind === 'unusable') return { ok: false, why: `.active-run-id ${active.trouble}` };
  const state = loadState(files, project, active.runId);
  if (!state.ok) {
    const isBroken = state.failure.reason !== 'not-found';
    return { ok: false, why: state.failure.message, ...(isBroken ? { isBroken } : {}) };
  }
  return { ok: true, runId: active.runId, state: state.value };
}

export function runInProgress(files: ContextFiles, project: FaberProject): Running {
  const run = activeRun(files, project);
  if (!run.ok || run.state.status === inProgress) return run;
  return { ok: false, why: `${run.runId} is not in progress` };
}
