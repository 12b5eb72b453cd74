/** `group archive`: puts a finished group away; it stays readable and can no longer run. */
import type { Command } from '@commander-js/extra-typings';
import { fail, ok, type Result } from '../../core/failure.ts';
import { nextGroupStatus } from '../../core/status.ts';
import type { GroupWriter } from '../../store/group-writer.ts';
import { changeGroup } from '../change-group.ts';
import type { Context, Work } from '../context.ts';
import { type ExitCode, exitCode } from '../exit-code.ts';
import { resolveGroup } from '../resolve.ts';

const example = `
Example:
  $ claude-code-agent group archive auth-refactor
  $ claude-code-agent group list --status archived`;

export function define(command: Command, context: Context): void {
  command
    .description('Archives a completed, failed or paused group. It stays readable, but cannot run any more.')
    .argument('<group>', 'id, unique prefix or slug')
    .addHelpText('after', example)
    .action((reference) => context.run(() => archive(context, reference)));
}

async function archive(context: Context, reference: string): Promise<Work> {
  const group = resolveGroup(context, reference);
  if (!group.ok) return group;
  return changeGroup(context.world, group.value, { direct: (writer) => archiveNow(context, writer) });
}

function archiveNow(context: Context, writer: GroupWriter): Result<ExitCode> {
  const { status, group } = writer.state;
  if (status === 'archived') {
    context.stderr.line(`Group ${group.id} is archived already.`);
    return ok(exitCode.done);
  }
  if (nextGroupStatus(status, 'group_archived') === null) {
    return fail(
      'illegal-transition',
      `Group ${group.id} is ${status}; only completed, failed and paused groups can be archived.`,
      status === 'running'
        ? `Its runner is gone. Finish it with: claude-code-agent group run ${group.id}`
        : `Run it first, or remove it with: claude-code-agent group delete ${group.id}`,
    );
  }
  writer.record([{ type: 'group_archived' }]);
  context.stderr.line(`Archived ${group.id}.`);
  return ok(exitCode.done);
}
