/** `host serve`: the agent of this machine in the foreground, and, as it starts it itself, its guard. */
import { type Command, Option } from '@commander-js/extra-typings';
import type { Context, Work } from '../../context.ts';

const example = `
Example:
  $ claude-code-agent host serve`;

export function define(command: Command, context: Context): void {
  command
    .description(`Runs the agent of this machine, which has joined a fleet, until it is interrupted. Sessions that it
started work on after its end, and the next agent takes them over.`)
    .option('--json', 'one JSON document a line for what happens')
    .addOption(new Option('--guard', 'what ends the sessions when the lease is over').hideHelp())
    .addHelpText('after', example)
    .action((given) => context.run(() => serve(context, given)));
}
