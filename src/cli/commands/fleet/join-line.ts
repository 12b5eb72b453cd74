/** `fleet join-line`: the line with which a machine joins, alone on stdout. */
import type { Command } from '@commander-js/extra-typings';
import { joinLineOf } from '../../../app/fleet/init.ts';
import { ok } from '../../../core/failure.ts';
import { safeJson } from '../../../view/terminal-text.ts';
import type { Context, Work } from '../../context.ts';
import { exitCode } from '../../exit-code.ts';

const example = `
Example:
  $ claude-code-agent fleet join-line
  $ claude-code-agent fleet join-line | ssh gpu1 claude-code-agent host join - --label gpu`;

export function define(command: Command, context: Context): void {
  command
    .description('Prints the line with which a machine joins the fleet. It holds keys and a password.')
    .option('--json', 'one JSON document: {"joinLine"}')
    .addHelpText('after', example)
    .action(({ json }) => context.run(() => print(context, json === true)));
}

function print(context: Context, json: boolean): Work {
  const root = context.root();
  if (!root.ok) return root;
  const line = joinLineOf(context, root.value);
  if (!line.ok) return line;
  context.stdout.line(json ? safeJson({ joinLine: line.value }, 2) : line.value);
  return ok(exitCode.done);
}
