/** `host resume`: a machine that was drained, or whose login was refused, takes sessions again. */
import type { Command } from '@commander-js/extra-typings';
import type { Context } from '../../context.ts';
import { drain } from './drain.ts';

const example = `
Example:
  $ claude-code-agent host resume gpu1`;

export function define(command: Command, context: Context): void {
  command
    .description('Lets a machine that was drained, or whose login was refused, take sessions again.')
    .argument('<name>', 'of the machine')
    .option('--json', 'one JSON document: {"host", "draining"}')
    .addHelpText('after', example)
    .action((name, { json }) => context.run(() => drain(context, name, false, json === true)));
}
