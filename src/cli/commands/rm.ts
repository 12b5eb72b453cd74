/** `rm`: `group delete` for several groups at once. */
import type { Command } from '@commander-js/extra-typings';
import type { Context } from '../context.ts';
import { deleteGroups } from './group/delete.ts';

const example = `
Example:
  $ claude-code-agent rm auth-refactor
  $ claude-code-agent rm @ @1 --yes        the group created last, and the one before it`;

export function define(command: Command, context: Context): void {
  command
    .description('Deletes groups as group delete does, one after the other; none while one of them is not known.')
    .argument('<group...>', 'id, unique prefix or slug; of several groups of one slug the id')
    .option('-y, --yes', 'answer every question with yes')
    .option('--force', 'do not ask; pause them and commit what is in no commit on its branch first')
    .option('--json', 'one JSON document: {"groups": ids of those that were deleted}')
    .addHelpText('after', example)
    .action((references, given) =>
      context.run(() => deleteGroups(context, references, given, (groups) => ({ groups }))),
    );
}
