/** `host serve`: the agent of this machine in the foreground, and, as it starts it itself, its guard. */
import { type Command, Option } from '@commander-js/extra-typings';
import { serveFleet } from '../../../app/fleet/serve.ts';
import { groupSettings } from '../../../core/definitions.ts';
import { ok } from '../../../core/failure.ts';
import { safeJson } from '../../../view/terminal-text.ts';
import type { Context, Work } from '../../context.ts';
import { exitCode } from '../../exit-code.ts';
import { settingOption } from '../../options/setting-options.ts';

const example = `
Example:
  $ claude-code-agent host serve`;

export function define(command: Command, context: Context): void {
  command
    .description(`Runs the agent of this machine, which has joined a fleet, until it is interrupted. Sessions that it
started work on after its end, and the next agent takes them over.`)
    .addOption(settingOption('acceptClaude', groupSettings.acceptClaude))
    .option('--json', 'what happens as one JSON document a line: {"at", "message"}')
    .addOption(new Option('--guard', 'what ends the sessions when the lease is over').hideHelp())
    .addHelpText('after', example)
    .action((given) => context.run(() => serve(context, command, given)));
}

interface Given {
  readonly guard?: true | undefined;
  readonly json?: true | undefined;
  readonly acceptClaude?: string | undefined;
}

/** `command` is any of the program, which knows its version. */
export async function serve(
  context: Context,
  command: Pick<Command, 'parent'>,
  { guard, json, acceptClaude }: Given,
): Promise<Work> {
  const root = context.root();
  if (!root.ok) return root;
  const told = json ? Object.create(context, { notes: { value: linesOf(context) } }) : context;
  const wanted = { isGuard: guard === true, version: versionOf(command), acceptClaude };
  const served = await serveFleet(told, root.value, wanted);
  return served.ok ? ok(exitCode.done) : served;
}

function linesOf({ stdout, world }: Context): Context['notes'] {
  const line = (message: string) => stdout.line(safeJson({ at: new Date(world.clock.now()).toISOString(), message }));
  return { line, passing: () => {} };
}

function versionOf(command: Pick<Command, 'parent'>): string {
  let top = command.parent;
  while (top?.parent) top = top.parent;
  return top?.version() ?? '';
}
