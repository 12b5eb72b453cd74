/** `handover find`: the project that a session worked on; its id alone on stdout. */

import type { Command } from '@commander-js/extra-typings';
import { handoverRoot } from '../../../app/handover/init-project.ts';
import { findBySession } from '../../../context/handover/find.ts';
import { findProjects } from '../../../context/handover/projects.ts';
import { sessionIdPattern } from '../../../context/handover/resume-file.ts';
import { advise } from '../../../core/advice.ts';
import { fail, ok } from '../../../core/failure.ts';
import { safeJson, safeLine } from '../../../view/terminal-text.ts';
import type { Context, Work } from '../../context.ts';
import { exitCode } from '../../exit-code.ts';

const example = `
Example:
  $ claude-code-agent handover find 5f0c9a52-7a35-4a83-9d0b-0c1f5f9f2a11
  $ claude-code-agent handover find "$CLAUDE_CODE_SESSION_ID" --root .. --json | jq -r .file`;

export function define(command: Command, context: Context): void {
  command
    .description(
      'Prints the project whose resume-context.md lists the session, else the one it was the last session of.',
    )
    .argument('<session-id>', "claude's session id")
    .option('--root <dir>', 'folder that holds the projects (default: this folder)')
    .option('--json', 'one JSON document')
    .addHelpText('after', example)
    .action((id, { root, json }) => context.run(() => find(context, id, root, json === true)));
}

function find(context: Context, id: string, typedRoot: string | undefined, json: boolean): Work {
  if (!sessionIdPattern.test(id)) {
    return fail(
      'usage',
      'That is no session id.',
      'Session ids are letters, digits, "-" and "_", as claude prints them.',
    );
  }
  const root = handoverRoot(context, typedRoot);
  if (!root.ok) return root;
  const { projects, troubles } = findProjects(context.world.files, root.value);
  for (const trouble of troubles) context.stderr.line(safeLine(`Left out: ${trouble}`, 1000));
  const found = findBySession(projects, id);
  if (found === null) {
    const next = advise('See the projects with', ['handover', 'list']);
    return fail('not-found', `No project in ${root.value} knows the session ${id}.`, next);
  }
  const { project, by } = found;
  if (json) {
    const { id: projectId, folder, file } = project;
    context.stdout.line(safeJson({ project: projectId, foundBy: by, folder, file }, 2));
  } else context.stdout.line(safeLine(project.id, 1000));
  return ok(exitCode.done);
}
