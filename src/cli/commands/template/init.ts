/** `template init`: a folder of templates to begin with. */

import { resolve } from 'node:path';
import type { Command } from '@commander-js/extra-typings';
import { makeStarterFolder } from '../../../app/template/starter-folder.ts';
import { commandText } from '../../../core/advice.ts';
import { fail, ok } from '../../../core/failure.ts';
import { safeJson, safeLine } from '../../../view/terminal-text.ts';
import type { Context, Work } from '../../context.ts';
import { exitCode } from '../../exit-code.ts';

const example = `
Example:
  $ claude-code-agent template init .claude-code-agent/templates      for everybody who works on this project
  $ claude-code-agent template init ~/.config/claude-code-agent/templates`;

export function define(command: Command, context: Context): void {
  command
    .description('Makes a folder with prompts/, configs/ and workflows/ and an example in each.')
    .argument('<dir>', 'a folder that does not exist yet, or is empty')
    .option('--json', 'one JSON document: {"folder", "files"}')
    .addHelpText('after', example)
    .action((dir, { json }) => context.run(() => init(context, dir, json === true)));
}

function init(context: Context, typed: string, json: boolean): Work {
  const next = 'Give the path of a folder that does not exist yet, or is empty.';
  if (typed === '') return fail('usage', 'The path of the folder is empty.', next);
  const folder = resolve(context.cwd, typed);
  const made = makeStarterFolder(context.world, folder, next);
  if (!made.ok) return made;
  const { stdout } = context;
  if (json) {
    stdout.line(safeJson({ folder, files: made.value }, 2));
    return ok(exitCode.done);
  }
  stdout.line(safeLine(`Made in ${folder}:`, 1000));
  for (const path of made.value) stdout.line(`  ${path}`);
  stdout.line(`Check them after every change with: ${commandText(['template', 'validate', 'DIR'])}`);
  return ok(exitCode.done);
}
