/** `session diff`: what a session changed in its worktree. */
import type { Command } from '@commander-js/extra-typings';
import { diffOf, type WorkDiff, workspacesOf } from '../../../app/delivery/work-diff.ts';
import { loadReferredSession } from '../../../app/resolve.ts';
import { ok } from '../../../core/failure.ts';
import { spelledLine } from '../../../view/diff-text.ts';
import { titleOf } from '../../../view/wording.ts';
import type { Context, Work } from '../../context.ts';
import { exitCode } from '../../exit-code.ts';
import { printJson, printText, warnOfPrograms } from '../../work-diff-text.ts';

const example = `
Compares what the session has done with the commit from which it began: its branch once it is completed, before that
the files of its worktree. Characters that a terminal would obey are spelled out.

Example:
  $ claude-code-agent session diff auth-refactor/api
  $ claude-code-agent session diff auth-refactor/api --stat
  $ claude-code-agent session diff auth-refactor/api --json | jq -r '"git diff \\(.base) \\(.branch)"'`;

export function define(command: Command, context: Context): void {
  command
    .description('Prints what a session with a worktree of its own has changed.')
    .argument('<session>', 'id, unique prefix, or <group>/<number-or-name>')
    .option('--stat', 'one line for each file')
    .option('--json', 'one JSON document: commits, numbers and the text')
    .addHelpText('after', example)
    .action((reference, { stat, json }) =>
      context.run(() => print(context, reference, { stat: stat === true, json: json === true })),
    );
}

interface Options {
  readonly stat: boolean;
  readonly json: boolean;
}

async function print(context: Context, reference: string, { stat, json }: Options): Promise<Work> {
  const session = loadReferredSession(context, reference);
  if (!session.ok) return session;
  const workspaces = workspacesOf(context, session.value);
  if (!workspaces.ok) return workspaces;
  const { sessionId, state } = session.value;
  const form = stat ? { stat: context.stdout.columns, numbers: json } : {};
  const diff = await diffOf(context, session.value, workspaces.value.get(sessionId), form);
  if (!diff.ok) return diff;
  if (json) printJson(context, diff.value);
  else show(context, diff.value, titleOf(state, sessionId));
  return ok(exitCode.done);
}

function show(context: Context, diff: WorkDiff, title: string): void {
  const { gone, text = '' } = diff;
  warnOfPrograms(context, diff);
  if (gone !== undefined) context.stderr.line(spelledLine(gone));
  if (text !== '') printText(context, text);
  else if (gone === undefined) context.stderr.line(`Session ${title} has changed no file.`);
  else context.stderr.line('Nothing was committed there.');
}
