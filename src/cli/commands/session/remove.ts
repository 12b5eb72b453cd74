/** `session remove`: takes a session that is not running out of its group, with its files. */

import type { Command } from '@commander-js/extra-typings';
import { changeGroup } from '../../../control/change-group.ts';
import { liveRunner } from '../../../control/live-runner.ts';
import { askRunner, whileWaiting } from '../../../control/request.ts';
import { type LoadedSession, loadReferredSession } from '../../../control/resolve.ts';
import { advise } from '../../../core/advice.ts';
import { fail, ok, type Result } from '../../../core/failure.ts';
import { dependentsOf } from '../../../core/graph.ts';
import type { SessionId } from '../../../core/group.ts';
import { runCommand, sessionReference } from '../../../core/plan/advice.ts';
import { planOf } from '../../../core/plan/plan.ts';
import type { GroupState } from '../../../core/state.ts';
import { nextGroupStatus } from '../../../core/status.ts';
import { finishMerge } from '../../../delivery/finish.ts';
import {
  checkReleasable,
  type Leftover,
  leftoverOf,
  recordCleaned,
  releaseWorktrees,
} from '../../../delivery/worktree-cleanup.ts';
import { safeLine } from '../../../report/terminal-text.ts';
import { listTitles, titleOf } from '../../../report/wording.ts';
import type { GroupWriter } from '../../../store/group-writer.ts';
import { sessionPaths } from '../../../store/paths.ts';
import { confirmed } from '../../confirm.ts';
import type { Context, Work } from '../../context.ts';
import { exitCode } from '../../exit-code.ts';

const example = `
Example:
  $ claude-code-agent session remove auth-refactor/003`;

const noteColumns = 600;

export function define(command: Command, context: Context): void {
  command
    .description(
      'Removes a session that is not running, with its transcript and its worktree. What it cost stays counted. ' +
        'Refuses while the worktree holds work that is in no commit. A branch with unmerged commits stays.',
    )
    .argument('<session>', 'id, unique prefix, or <group>/<number-or-name>')
    .option('--force', 'do not ask; commit what is in no commit on its branch first')
    .addHelpText('after', example)
    .action((reference, { force }) => context.run(() => remove(context, reference, force === true)));
}

async function remove(context: Context, reference: string, force: boolean): Promise<Work> {
  const session = loadReferredSession(context, reference);
  if (!session.ok) return session;
  const { sessionId, state, record, paths } = session.value;
  const hasRunner = liveRunner(context.world, session.value) !== null;
  const possible = checkRemovable(state, sessionId, hasRunner);
  if (!possible.ok) return possible;
  const title = titleOf(state, sessionId);
  // A session that never ran has nothing to lose but its definition.
  const sure = await confirmed(context, `Delete session ${title} with its transcript?`, force || record.attempts === 0);
  if (!sure.ok) return sure;
  if (!sure.value) return ok(exitCode.done);
  const removal: Removal = { session: session.value, force };
  const removed = await changeGroup<void>(context, session.value, {
    direct: (writer) => removeNow(context, removal, writer),
    viaRunner: (runId) => removeByRunner(context, removal, runId),
  });
  if (!removed.ok) return removed;
  context.world.files.remove(sessionPaths(paths, sessionId).folder);
  context.stderr.line(`Removed ${title} from ${state.group.id}.`);
  return ok(exitCode.done);
}

interface Removal {
  readonly session: LoadedSession;
  readonly force: boolean;
}

/** The worktree first: while the session is there, the command can be given again. */
async function removeNow(context: Context, removal: Removal, writer: GroupWriter): Promise<Result<void>> {
  const { sessionId } = removal.session;
  const possible = checkRemovable(writer.state, sessionId, false);
  if (!possible.ok) return possible;
  const finished = await finishMerge(context, writer);
  if (!finished.ok) return finished;
  const record = writer.state.sessions.get(sessionId);
  const released = await release(context, removal, await leftoverOf(context, writer.paths, sessionId, record));
  if (!released.ok) return released;
  const cleaned = recordCleaned(writer, sessionId);
  if (!cleaned.ok) return cleaned;
  writer.record([{ type: 'session_removed', sessionId }]);
  return ok(undefined);
}

/** The runner may start it at any moment, so its worktree is looked at before, and goes afterwards. */
async function removeByRunner(
  context: Context,
  removal: Removal,
  runId: string,
): Promise<Result<void> | 'runner-gone'> {
  const { session, force } = removal;
  const { sessionId, record, paths } = session;
  const before = await leftoverOf(context, paths, sessionId, record);
  const possible = before === null ? ok(undefined) : checkReleasable(context, [before], commandOf(session, force));
  if (!possible.ok) return possible;
  const asked = askRunner(context.world, session, runId, { kind: 'remove-session', sessionId });
  const answer = await whileWaiting(context, session, asked);
  if (answer === 'runner-gone') return answer;
  if (!answer.ok) return answer;
  return release(context, removal, await leftoverOf(context, paths, sessionId, record));
}

async function release(
  context: Context,
  { session, force }: Removal,
  leftover: Leftover | null,
): Promise<Result<void>> {
  if (leftover === null) return ok(undefined);
  const tell = (note: string): void => context.stderr.line(safeLine(note, noteColumns));
  return releaseWorktrees(context, session.paths, [leftover], { ...commandOf(session, force), tell });
}

function commandOf({ sessionId, groupId }: LoadedSession, force: boolean) {
  return { force, command: ['session', 'remove', `${groupId}/${sessionId}`] };
}

/** `hasRunner`: somebody is running the group at this moment. */
function checkRemovable(state: GroupState, sessionId: SessionId, hasRunner: boolean): Result<void> {
  const record = state.sessions.get(sessionId);
  if (record === undefined)
    return fail('not-found', `Session ${sessionId} is gone already.`, 'There is nothing left to do.');
  const title = titleOf(state, sessionId);
  if (nextGroupStatus(state.status, 'session_removed') === null) {
    const next = advise('Delete it as a whole with', ['group', 'delete', state.group.id]);
    return fail('illegal-transition', `Group ${state.group.id} is ${state.status}; its sessions stay.`, next);
  }
  if (record.state.status === 'completed') {
    const next = advise('Delete the group as a whole with', ['group', 'delete', state.group.id]);
    return fail('illegal-transition', `Session ${title} is completed; its result stays in the group.`, next);
  }
  if (record.state.status === 'running') {
    const next = hasRunner
      ? advise('Wait until it has ended, or stop it with', ['session', 'pause', sessionReference(state, record)])
      : advise('Its runner is gone. Finish it with', runCommand(state));
    return fail('illegal-transition', `Session ${title} is running.`, next);
  }
  const dependents = dependentsOf(planOf(state).graph.graph, sessionId);
  if (dependents.length > 0) {
    return fail('usage', `Session ${title} is needed by ${listTitles(state, dependents)}.`, 'Remove those first.');
  }
  return ok(undefined);
}
