/** `host drain`: a machine finishes what it has and takes nothing new. */
import type { Command } from '@commander-js/extra-typings';
import { setDraining } from '../../../app/fleet/hosts.ts';
import { commandText } from '../../../core/advice.ts';
import { ok } from '../../../core/failure.ts';
import { plural } from '../../../view/format.ts';
import { safeJson } from '../../../view/terminal-text.ts';
import type { Context, Work } from '../../context.ts';
import { exitCode } from '../../exit-code.ts';

const example = `
Example:
  $ claude-code-agent host drain gpu1`;

export function define(command: Command, context: Context): void {
  command
    .description('Lets a machine finish what it has, and take nothing new until it is resumed.')
    .argument('<name>', 'of the machine')
    .option('--json', 'one JSON document: {"host", "draining"}')
    .addHelpText('after', example)
    .action((name, { json }) => context.run(() => drain(context, name, true, json === true)));
}

/** The same work for `host drain` and `host resume`. */
export async function drain(context: Context, name: string, isDrained: boolean, json: boolean): Promise<Work> {
  const root = context.root();
  if (!root.ok) return root;
  const host = await setDraining(context, root.value, name, isDrained);
  if (!host.ok) return host;
  const { used } = host.value;
  const rest = used > 0 ? `, and finishes the ${plural(used, 'session')} that it has` : '';
  const said = isDrained
    ? `${name} takes nothing new${rest}. It takes sessions again with: ${commandText(['host', 'resume', name])}`
    : `${name} takes sessions again.`;
  context.stdout.line(json ? safeJson({ host: name, draining: isDrained }, 2) : said);
  return ok(exitCode.done);
}

// `host resume`: a machine that was drained, or whose login was refused, takes sessions again.

const resumeExample = `
Example:
  $ claude-code-agent host resume gpu1`;

export function defineResume(command: Command, context: Context): void {
  command
    .description('Lets a machine that was drained, or whose login was refused, take sessions again.')
    .argument('<name>', 'of the machine')
    .option('--json', 'one JSON document: {"host", "draining"}')
    .addHelpText('after', resumeExample)
    .action((name, { json }) => context.run(() => drain(context, name, false, json === true)));
}
