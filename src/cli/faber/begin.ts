/** How a run becomes the active one of its work tree, with the warning when another run is in progress there. */

import { dirname, join } from 'node:path';
import { updateExclusively } from '../../context/exclusive-update.ts';
import { activeRunPath, type FaberProject, makeFolderInProject, readActiveRun } from '../../context/faber/project.ts';
import { inProgress } from '../../context/faber/state.ts';
import { loadState } from '../../context/faber/state-file.ts';
import { commandText } from '../../core/advice.ts';
import { fail, ok, type Result } from '../../core/failure.ts';
import { plainNamePattern } from '../../core/values.ts';
import { safeLine } from '../../report/terminal-text.ts';
import type { Context } from '../context.ts';

/** The run that is in the way of another one; null when the work tree is free. */
export interface Conflict {
  readonly runId: string;
  readonly workId: string | undefined;
  /** It cannot be told whether it is in progress. */
  readonly trouble?: string;
}

/** Fails with `corrupt-file` when `.active-run-id` cannot be used. */
export function conflictWith(context: Context, project: FaberProject, newRunId: string): Result<Conflict | null> {
  const active = readActiveRun(context.world.files, project);
  if (active.kind === 'unusable') {
    return fail('corrupt-file', `${activeRunPath} ${active.trouble}.`, 'Look at it, then remove it.');
  }
  if (active.kind === 'none' || active.runId === newRunId) return ok(null);
  const state = loadState(context.world.files, project, active.runId);
  const { runId } = active;
  if (state.ok) {
    if (state.value.status !== inProgress) return ok(null);
    return ok({ runId, workId: String(state.value.work_id ?? '') || undefined });
  }
  // Without a state there is no run that could go on.
  if (state.failure.reason === 'not-found') return ok(null);
  return ok({ runId, workId: undefined, trouble: state.failure.message });
}

export type Choice = 'take-over' | 'worktree' | 'cancel';

interface Asked {
  readonly runId: string;
  /** Empty when the run has none. */
  readonly workId: string;
  /** Name of the project's folder. */
  readonly project: string;
  /** A new run may go into a work tree of its own; one that exists has its place. */
  readonly offersWorktree: boolean;
}

/** Says the warning and asks what to do; without a terminal it is refused. Any other answer than one named cancels. */
export async function choose(
  context: Context,
  conflict: Conflict,
  { runId, workId, project, offersWorktree }: Asked,
): Promise<Result<Choice>> {
  const same = conflict.workId !== undefined && conflict.workId === workId;
  const indented = [
    `Active: ${conflict.runId}${conflict.workId === undefined ? '' : ` (work item ${conflict.workId})`}`,
    `New: ${runId}`,
    ...(conflict.trouble === undefined ? [] : [conflict.trouble]),
  ];
  const { stderr } = context;
  stderr.line('WARNING: Another workflow is active in this worktree');
  for (const line of indented) stderr.line(`   ${safeLine(line, 600)}`);
  if (same) stderr.line(`It is the same work item; go on with it: ${commandText(['faber', 'resume', conflict.runId])}`);
  // The work item of a run that exists stands in a file that anybody may have written.
  const hasCommand = plainNamePattern.test(workId);
  stderr.line(`Recommendation: use separate worktrees for concurrent workflows${hasCommand ? ':' : '.'}`);
  const folder = safeLine(`../${project}-issue-${workId}`, 300);
  if (hasCommand)
    stderr.line(`   ${commandText(['faber', 'start', '--work-id', workId, '--worktree'])}      in ${folder}`);
  const question =
    'Do you want to proceed anyway? This will take over context management for this worktree, potentially ' +
    'interfering with the other workflow.';
  if (!context.stdinIsTerminal || !context.stdout.isTerminal) {
    const message = `The run ${conflict.runId} is in progress in this worktree, so nothing was started.`;
    return fail('illegal-transition', message, 'Choose --worktree or --take-over, or leave it.');
  }
  // The question goes out through the system's own call, after what was said before.
  await context.stdout.flush();
  await context.stderr.flush();
  const tree = offersWorktree ? `, or w for a work tree of its own in ${folder}` : '';
  const answer = prompt(`${question} [y/N${tree}]`)?.trim().toLowerCase() ?? '';
  if (offersWorktree && /^w(?:orktree)?$/.test(answer)) return ok('worktree');
  return ok(/^y(?:es)?$/.test(answer) ? 'take-over' : 'cancel');
}

/**
 * Makes the run active, unless `.active-run-id` names another one by now than it did when the user decided. Fails with
 * `busy` then, and with `write-failed`.
 */
export function activate(
  context: Context,
  project: FaberProject,
  runId: string,
  decidedOn: string | null,
): Result<void> {
  const { files, clock } = context.world;
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
export function activeNow(context: Context, project: FaberProject): string | null {
  const active = readActiveRun(context.world.files, project);
  return active.kind === 'run' ? active.runId : null;
}
