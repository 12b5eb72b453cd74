/** How a run becomes the active one of its work tree, with the warning when another run is in progress there. */
import { dirname, join } from 'node:path';
import { updateExclusively } from '../../context/exclusive-update.ts';
import { activeRunPath, type FaberProject, makeFolderInProject, readActiveRun } from '../../context/faber/project.ts';
import { inProgress } from '../../context/faber/state.ts';
import { loadState } from '../../context/faber/state-file.ts';
import { fail, ok, type Result } from '../../core/failure.ts';
import { foreignText } from '../../core/text/foreign-value.ts';
import type { Place } from '../place.ts';

/** The run that is in the way of another one; null when the work tree is free. */
export interface Conflict {
  readonly runId: string;
  readonly workId: string | undefined;
  /** It cannot be told whether it is in progress. */
  readonly trouble?: string;
}

/** Fails with `corrupt-file` when `.active-run-id` cannot be used. */
export function conflictWith(place: Place, project: FaberProject, newRunId: string): Result<Conflict | null> {
  const active = readActiveRun(place.world.files, project);
  if (active.kind === 'unusable') {
    return fail('corrupt-file', `${activeRunPath} ${active.trouble}.`, 'Look at it, then remove it.');
  }
  if (active.kind === 'none' || active.runId === newRunId) return ok(null);
  const state = loadState(place.world.files, project, active.runId);
  const { runId } = active;
  if (state.ok) {
    if (state.value.status !== inProgress) return ok(null);
    return ok({ runId, workId: foreignText(state.value.work_id ?? '') || undefined });
  }
  // Without a state there is no run that could go on.
  if (state.failure.reason === 'not-found') return ok(null);
  return ok({ runId, workId: undefined, trouble: state.failure.message });
}

/**
 * Makes the run active, unless `.active-run-id` names another one by now than it did when the user decided. Fails with
 * `busy` then, and with `write-failed`.
 */
export function activate(place: Place, project: FaberProject, runId: string, decidedOn: string | null): Result<void> {
  const { files, clock } = place.world;
  const made = makeFolderInProject(files, project, dirname(activeRunPath));
  if (!made.ok) return made;
  const path = join(project.root, activeRunPath);
  const written = updateExclusively(files, {
    path: files.realPath(path) ?? path,
    nowMs: clock.now(),
    bytesMax: 4096,
    change: (before) => {
      const now = new TextDecoder().decode(before ?? new Uint8Array(0)).trim();
      if (now !== (decidedOn ?? '') && now !== runId) {
        return fail('busy', `The run ${now} was made active meanwhile.`, 'Run the command again.');
      }
      return ok(new TextEncoder().encode(`${runId}\n`));
    },
  });
  return written.ok ? ok(undefined) : written;
}

/** What `.active-run-id` says now; null when nothing usable. */
export function activeNow(place: Place, project: FaberProject): string | null {
  const active = readActiveRun(place.world.files, project);
  return active.kind === 'run' ? active.runId : null;
}
