/** `group archive`: puts a finished group away; it stays readable and can no longer run. */
import type { Command } from '@commander-js/extra-typings';
import { fail, ok, type Result } from '../../core/failure.ts';
import { nextGroupStatus } from '../../core/status.ts';
import { plural } from '../../report/format.ts';
import { safeLine } from '../../report/terminal-text.ts';
import { titleOf } from '../../report/wording.ts';
import type { GroupWriter } from '../../store/group-writer.ts';
import { changeGroup } from '../change-group.ts';
import type { Context, Work } from '../context.ts';
import { type ExitCode, exitCode } from '../exit-code.ts';
import { finishMerge } from '../merge/finish.ts';
import { resolveGroup } from '../resolve.ts';
import { cleanUpSessions } from '../worktree-cleanup.ts';

const example = `
Example:
  $ claude-code-agent group archive auth-refactor
  $ claude-code-agent group archive auth-refactor --force        with worktrees that hold unmerged work
  $ claude-code-agent group list --status archived`;

export function define(command: Command, context: Context): void {
  command
    .description(
      'Archives a completed, failed or paused group. It stays readable, but cannot run any more. Worktrees and ' +
        'branches whose work is merged go; others stay, and are named.',
    )
    .argument('<group>', 'id, unique prefix or slug')
    .option('--force', 'remove worktrees and branches with unmerged work as well')
    .addHelpText('after', example)
    .action((reference, { force }) => context.run(() => archive(context, reference, force === true)));
}

async function archive(context: Context, reference: string, force: boolean): Promise<Work> {
  const group = resolveGroup(context, reference);
  if (!group.ok) return group;
  return changeGroup(context.world, group.value, { direct: (writer) => archiveNow(context, writer, force) });
}

async function archiveNow(context: Context, writer: GroupWriter, force: boolean): Promise<Result<ExitCode>> {
  const { status, group } = writer.state;
  const isArchived = status === 'archived';
  if (!isArchived && nextGroupStatus(status, 'group_archived') === null) {
    return fail(
      'illegal-transition',
      `Group ${group.id} is ${status}; only completed, failed and paused groups can be archived.`,
      status === 'running'
        ? `Its runner is gone. Finish it with: claude-code-agent group run ${group.id}`
        : `Run it first, or remove it with: claude-code-agent group delete ${group.id}`,
    );
  }
  const finished = await finishMerge(context, writer);
  if (!finished.ok) return finished;
  // Archived first: worktrees are looked at again by the same command, should this end in between.
  if (!isArchived) writer.record([{ type: 'group_archived' }]);
  const tidied = await cleanUpSessions(context, writer, [...writer.state.sessions.keys()], { force });
  if (!tidied.ok) return tidied;
  const { cleaned, kept, notes } = tidied.value;
  const { stderr } = context;
  stderr.line(isArchived ? `Group ${group.id} is archived already.` : `Archived ${group.id}.`);
  if (cleaned.length > 0) stderr.line(`Removed ${plural(cleaned.length, 'worktree')} with what belonged to it.`);
  for (const note of notes) stderr.line(safeLine(note, 600));
  for (const { sessionId, why } of kept) {
    stderr.line(safeLine(`The worktree of ${titleOf(writer.state, sessionId)} stays. ${why}`, 600));
  }
  if (kept.length > 0) stderr.line(advice(group.id, force));
  return ok(exitCode.done);
}

function advice(groupId: string, force: boolean): string {
  const again = `claude-code-agent group archive ${groupId}`;
  if (force) return `When that is settled, remove it with: ${again}`;
  return `Merge what you need and archive again; what shall be thrown away goes with: ${again} --force`;
}
