/** `session add`: a new session in a group; its id alone on stdout. */
import type { Command } from '@commander-js/extra-typings';
import { addSession } from '../../../app/create/new-session.ts';
import { whileWaiting } from '../../../app/request.ts';
import { loadReferredGroup } from '../../../app/resolve.ts';
import { ok } from '../../../core/failure.ts';
import { safeJson, safeLine } from '../../../view/terminal-text.ts';
import type { Context, Work } from '../../context.ts';
import { exitCode } from '../../exit-code.ts';
import { addSessionOptions, sessionFrom } from '../../options/session-options.ts';

const noteColumnsMax = 1000;

const example = `
Example:
  $ claude-code-agent session add auth-refactor --project ./api --prompt "Add a login endpoint" --name api
  $ claude-code-agent session add auth-refactor --project ./web --prompt-file login-page.md --depends-on api
  $ claude-code-agent session add auth-refactor --project ./api --template code-review --var file_path=src/login.ts
  $ git diff | claude-code-agent session add review --project . --prompt -
  $ claude-code-agent session add auth-refactor --project ./api --prompt "Speed it up" --accept "npm test"`;

export function define(command: Command, context: Context): void {
  const described = command
    .description('Adds a session to a group and prints its id. Works while the group is running, too.')
    .argument('<group>', 'id, unique prefix or slug')
    .requiredOption('--project <dir>', 'folder of the project in which the session works');
  addSessionOptions(described, false);
  described
    .option('--json', 'one JSON document: {"group", "session"}')
    .addHelpText('after', example)
    .action((reference, given) => context.run(() => add(context, reference, given)));
}

interface Given {
  readonly project: string;
  readonly json?: true | undefined;
}

async function add(context: Context, reference: string, given: Given): Promise<Work> {
  const group = loadReferredGroup(context, reference);
  if (!group.ok) return group;
  const asked = await sessionFrom(context, given);
  if (!asked.ok) return asked;
  const adding = addSession(context, group.value, { ...asked.value, project: given.project });
  const added = await whileWaiting(context, group.value, adding);
  if (!added.ok) return added;
  for (const note of added.value.notes) context.stderr.line(safeLine(note, noteColumnsMax));
  const { groupId } = group.value;
  const { sessionId } = added.value;
  context.stdout.line(given.json ? safeJson({ group: groupId, session: sessionId }, 2) : sessionId);
  return ok(exitCode.done);
}
