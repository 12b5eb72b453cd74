/** `faber session-end`: records in the run's state that a session ends. */
import { type Command, InvalidArgumentError } from '@commander-js/extra-typings';
import { danglingRun, projectHere, runHere, whoAsks } from '../../../app/faber/here.ts';
import { endSession } from '../../../context/faber/state.ts';
import { updateState } from '../../../context/faber/state-file.ts';
import { ok } from '../../../core/failure.ts';
import { safeJson } from '../../../view/terminal-text.ts';
import type { Context, Work } from '../../context.ts';
import { exitCode } from '../../exit-code.ts';

const example = `
Example:
  $ claude-code-agent faber session-end
  $ claude-code-agent faber session-end --reason compaction`;

export function define(command: Command, context: Context): void {
  command
    .description('Records the end of the current session, with the finished phases and what it had loaded.')
    .option('--run-id <id>', 'the run (default: the active one)')
    .option('--reason <word>', 'why it ends, such as normal or compaction', parseReason, 'normal')
    .option('--project <dir>', 'the project (default: the current folder)')
    .option('--json', 'one JSON document: the run and the session')
    .addHelpText('after', example)
    .action((given) => context.run(() => end(context, given)));
}

interface Given {
  readonly runId?: string | undefined;
  readonly reason: string;
  readonly project?: string | undefined;
  readonly json?: true | undefined;
}

function parseReason(text: string): string {
  if (/^[a-z][a-z_-]{0,63}$/.test(text)) return text;
  throw new InvalidArgumentError('It must be a word of small letters such as normal or compaction.');
}

function end(context: Context, given: Given): Work {
  const project = projectHere(context, given.project);
  if (!project.ok) return project;
  const run = runHere(context, project.value, given.runId);
  if (!run.ok) return run;
  const say = (text: string, shown: object): Work => {
    context.stdout.line(given.json === true ? safeJson(shown, 2) : text);
    return ok(exitCode.done);
  };
  if (run.value === null) {
    const dangling = danglingRun(context, project.value);
    if (dangling !== null) context.stderr.line(dangling);
    return say('No active workflow found, skipping session-end', { run_id: null, session_id: null });
  }
  const { runId } = run.value;
  const who = whoAsks(context, project.value);
  let ended: string | null = null;
  const changed = updateState(context.world.files, project.value, runId, (state) => {
    const done = endSession(state, who, { atMs: who.nowMs, reason: given.reason });
    ended = done.ended;
    return ok(done.state);
  });
  if (!changed.ok) return changed;
  const shown = { run_id: runId, session_id: ended, reason: given.reason };
  if (ended === null) return say(`Run ${runId} has no record of this session, so nothing was changed`, shown);
  return say(`Recorded the end of session ${ended} in run ${runId}`, shown);
}
