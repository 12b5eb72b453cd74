/** `handover init`: a project that later sessions find again. */

import { resolve } from 'node:path';
import type { Command } from '@commander-js/extra-typings';
import { handoverRoot, initProject } from '../../../app/handover/init-project.ts';
import { handoverConfig, planningFolder, resumeFileName } from '../../../context/handover/projects.ts';
import { fail, ok } from '../../../core/failure.ts';
import { safeJson, safeLine } from '../../../view/terminal-text.ts';
import type { Context, Work } from '../../context.ts';
import { exitCode } from '../../exit-code.ts';
import { parseText } from '../../options/option-values.ts';

const example = `
Example:
  $ claude-code-agent handover init 02-projects/28-parser
  $ claude-code-agent handover init clients/acme --name "Acme's shop"`;

export function define(command: Command, context: Context): void {
  command
    .description(
      `Makes ${planningFolder}/${resumeFileName} in a project's folder. A folder that is not in 02-projects is also ` +
        `named in ${handoverConfig} of the root, so that the hooks look there.`,
    )
    .argument('<dir>', 'folder of the project; made when it is missing')
    .option('--name <name>', "the project's name (default: the folder's)", parseText)
    .option('--root <dir>', 'folder in which claude is started (default: this folder)')
    .option('--json', 'one JSON document: {"project", "made", "named"}, the last two with the files that were written')
    .addHelpText('after', example)
    .action((dir, given) => context.run(() => init(context, dir, given)));
}

interface Given {
  readonly name?: string | undefined;
  readonly root?: string | undefined;
  readonly json?: true | undefined;
}

function init(context: Context, typed: string, { name, root: typedRoot, json }: Given): Work {
  if (typed === '') return fail('usage', 'The path of the folder is empty.', 'Give the path of the project.');
  const root = handoverRoot(context, typedRoot);
  if (!root.ok) return root;
  const say = (text: string): void => (json ? context.stderr : context.stdout).line(safeLine(text, 1000));
  const wanted = { folder: resolve(context.cwd, typed), name };
  const made = initProject(context, root.value, wanted, { line: say });
  if (!made.ok) return made;
  if (json) context.stdout.line(safeJson(made.value, 2));
  return ok(exitCode.done);
}
