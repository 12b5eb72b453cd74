/** The warning that another FABER run is in progress in this work tree, and the question what to do. */

import type { Conflict } from '../app/faber/start-run.ts';
import { commandText } from '../core/advice.ts';
import { fail, ok, type Result } from '../core/failure.ts';
import { plainNamePattern } from '../core/values.ts';
import { safeLine } from '../view/terminal-text.ts';
import type { Context } from './context.ts';

export type Choice = 'take-over' | 'worktree' | 'cancel';

interface Asked {
  readonly runId: string;
  /** Empty when the run has none. */
  readonly workId: string;
  /** Name of the project's folder. */
  readonly project: string;
  /** A new run may go into a work tree of its own; one that exists has its context. */
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
