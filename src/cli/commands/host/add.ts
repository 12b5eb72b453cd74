/** `host add`: another machine joins the fleet in one command, by ssh. */
import type { Command } from '@commander-js/extra-typings';
import { addHost } from '../../../app/fleet/add-host.ts';
import { groupSettings } from '../../../core/definitions.ts';
import { ok } from '../../../core/failure.ts';
import { safeJson, safeLine } from '../../../view/terminal-text.ts';
import type { Context, Work } from '../../context.ts';
import { exitCode } from '../../exit-code.ts';
import { collect, parseSlots } from '../../options/option-values.ts';
import { settingOption } from '../../options/setting-options.ts';

const example = `
Example:
  $ claude-code-agent host add gpu1 --ssh me@gpu1 --slots 8 --label gpu --login team-a`;

export function define(command: Command, context: Context): void {
  const described = command
    .description(`Lets another machine join the fleet. It must have git and Claude Code, and let you in by a key; this
program is put there, an agent and its guard are started, and with --login that login is sent once, into a file that is
nobody else's. Done again, it installs this version there and keeps what is not given; sessions at work there keep
their program. To forget the machine undoes all of it.`)
    .argument('<name>', 'its name in the fleet')
    .requiredOption('--ssh <destination>', 'as ssh takes it: [user@]host, or a name of its configuration')
    .option('--slots <n>', 'sessions that may work there at once (default: its cores)', parseSlots)
    .option('--label <label>', 'what it has, for sessions that require it; may be repeated', collect)
    .option('--login <name>', 'send fleet/logins/<name>.env of the data folder, else the login that is in use here');
  described.addOption(settingOption('acceptClaude', groupSettings.acceptClaude));
  described
    .option('--json', 'one JSON document: {"host", "ssh"}')
    .addHelpText('after', example)
    .action((name, given) => context.run(() => add(context, name, given)));
}

interface Given {
  readonly ssh: string;
  readonly slots?: number | undefined;
  readonly label?: readonly string[] | undefined;
  readonly login?: string | undefined;
  readonly acceptClaude?: string | undefined;
  readonly json?: true | undefined;
}

async function add(context: Context, name: string, { label: labels, json, ...given }: Given): Promise<Work> {
  const root = context.root();
  if (!root.ok) return root;
  const say = (step: string) => context.stderr.line(safeLine(step, 300));
  const added = await addHost(context, root.value, { ...given, name, labels }, say);
  if (!added.ok) return added;
  const out = json ? context.stderr : context.stdout;
  for (const line of added.value) out.line(safeLine(`${given.ssh}: ${line}`, 1_000));
  if (json) context.stdout.line(safeJson({ host: name, ssh: given.ssh }, 2));
  return ok(exitCode.done);
}
