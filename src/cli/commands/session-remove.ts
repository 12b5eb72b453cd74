/** `session remove`: takes a session that is not running out of its group, with its files. */
import type { Command } from '@commander-js/extra-typings';
import { fail, ok, type Result } from '../../core/failure.ts';
import { dependentsOf } from '../../core/graph.ts';
import type { SessionId } from '../../core/group.ts';
import { planOf } from '../../core/plan.ts';
import type { GroupState } from '../../core/state.ts';
import { nextGroupStatus } from '../../core/status.ts';
import { listTitles, titleOf } from '../../report/wording.ts';
import type { GroupWriter } from '../../store/group-writer.ts';
import { sessionPaths } from '../../store/paths.ts';
import { changeGroup, liveRunner } from '../change-group.ts';
import { confirmed } from '../confirm.ts';
import type { Context, Work } from '../context.ts';
import { exitCode } from '../exit-code.ts';
import { askRunner, whileWaiting } from '../request.ts';
import { loadReferredSession } from '../resolve.ts';

const example = `
Example:
  $ claude-code-agent session remove auth-refactor/003`;

export function define(command: Command, context: Context): void {
  command
    .description('Removes a session that is not running, with its transcript. What it cost stays counted.')
    .argument('<session>', 'id, unique prefix, or <group>/<number-or-name>')
    .option('--force', 'do not ask before a transcript is deleted')
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
  const removed = await changeGroup<void>(context.world, session.value, {
    direct: (writer) => removeNow(writer, sessionId),
    async viaRunner(runId) {
      const asked = askRunner(context.world, session.value, runId, { kind: 'remove-session', sessionId });
      const answer = await whileWaiting(context, session.value, asked);
      if (answer === 'runner-gone') return answer;
      return answer.ok ? ok(undefined) : answer;
    },
  });
  if (!removed.ok) return removed;
  context.world.files.remove(sessionPaths(paths, sessionId).folder);
  context.stderr.line(`Removed ${title} from ${state.group.id}.`);
  return ok(exitCode.done);
}

function removeNow(writer: GroupWriter, sessionId: SessionId): Result<void> {
  const possible = checkRemovable(writer.state, sessionId, false);
  if (!possible.ok) return possible;
  writer.record([{ type: 'session_removed', sessionId }]);
  return ok(undefined);
}

/** `hasRunner`: somebody is running the group at this moment. */
function checkRemovable(state: GroupState, sessionId: SessionId, hasRunner: boolean): Result<void> {
  const record = state.sessions.get(sessionId);
  if (record === undefined)
    return fail('not-found', `Session ${sessionId} is gone already.`, 'There is nothing left to do.');
  const title = titleOf(state, sessionId);
  if (nextGroupStatus(state.status, 'session_removed') === null) {
    const next = `Delete it as a whole with: claude-code-agent group delete ${state.group.id}`;
    return fail('illegal-transition', `Group ${state.group.id} is ${state.status}; its sessions stay.`, next);
  }
  if (record.state.status === 'completed') {
    const next = `Delete the group as a whole with: claude-code-agent group delete ${state.group.id}`;
    return fail('illegal-transition', `Session ${title} is completed; its result stays in the group.`, next);
  }
  if (record.state.status === 'running') {
    const next = hasRunner
      ? 'Wait until it has ended, or stop it with: session pause.'
      : `Its runner is gone; go on with: claude-code-agent group run ${state.group.id}`;
    return fail('illegal-transition', `Session ${title} is running.`, next);
  }
  const dependents = dependentsOf(planOf(state).graph.graph, sessionId);
  if (dependents.length > 0) {
    return fail('usage', `Session ${title} is needed by ${listTitles(state, dependents)}.`, 'Remove those first.');
  }
  return ok(undefined);
}
