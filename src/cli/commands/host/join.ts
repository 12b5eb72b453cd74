/**
 * cli/commands/host/: the machines of a fleet. This one: `host join`, on the machine itself: it works for the fleet of
 * a join line from now on.
 */
import type { Command } from '@commander-js/extra-typings';
import type { Started } from '../../../app/fleet/agent-service.ts';
import { type Joined, joinAndServe, joinFleet } from '../../../app/fleet/join.ts';
import { whileBusy } from '../../../app/live-runner.ts';
import { groupSettings } from '../../../core/definitions.ts';
import { ok, type Result } from '../../../core/failure.ts';
import { plural } from '../../../view/format.ts';
import { safeJson, safeLine } from '../../../view/terminal-text.ts';
import type { Context, Work } from '../../context.ts';
import { exitCode } from '../../exit-code.ts';
import { collect, parseSlots } from '../../options/option-values.ts';
import { readStandardInput, standardInput } from '../../options/prompt-source.ts';
import { settingOption } from '../../options/setting-options.ts';
import { serve } from './serve.ts';

const lineBytesMax = 100_000;

const example = `
Example:
  $ claude-code-agent host join cca-join:eyJ2... --slots 8 --label gpu --login team-a
  $ claude-code-agent host join - --foreground <join-line.txt`;

export function define(command: Command, context: Context): void {
  command
    .description(`Lets this machine work for a fleet: an agent and its guard are started that stay, by systemd --user
where there is one. Whoever may run groups with the fleet runs commands here. Done again, it changes what is given and
keeps the rest.`)
    .argument('<line>', 'the join line, "-" for standard input')
    .option('--name <name>', 'its name in the fleet (default: as the machine is called)')
    .option('--slots <n>', 'sessions that may work here at once (default: cores)', parseSlots)
    .option('--label <label>', 'what it has, for sessions that require it; may be repeated', collect)
    .option('--login <name>', 'the login of sessions here, fleet/logins/<name>.env in the data folder')
    .addOption(settingOption('acceptClaude', groupSettings.acceptClaude))
    .option('--foreground', 'run the agent here, until it is interrupted')
    .option('--json', 'one JSON document: {"host", "slots", "labels", "redis"}')
    .addHelpText('after', example)
    .action((line, given) => context.run(() => join(context, command, line, given)));
}

interface Given {
  readonly name?: string | undefined;
  readonly slots?: number | undefined;
  readonly label?: readonly string[] | undefined;
  readonly login?: string | undefined;
  readonly acceptClaude?: string | undefined;
  readonly foreground?: true | undefined;
  readonly json?: true | undefined;
}

async function join(context: Context, command: Command, argument: string, given: Given): Promise<Work> {
  const root = context.root();
  if (!root.ok) return root;
  const line = await joinLineFrom(context, argument);
  if (!line.ok) return line;
  const { name, slots, label: labels, login, acceptClaude, foreground, json } = given;
  const wanted = { line: line.value, name, slots, labels, login, acceptClaude };
  if (foreground) {
    const joined = await joinFleet(context, root.value, wanted);
    if (!joined.ok) return joined;
    say(context, joined.value, undefined, json === true);
    return serve(context, command, {});
  }
  const joined = await whileBusy(context, 'Joining', () => joinAndServe(context, root.value, wanted));
  if (!joined.ok) return joined;
  say(context, joined.value, joined.value.started, json === true);
  return ok(exitCode.done);
}

async function joinLineFrom(context: Context, argument: string): Promise<Result<string>> {
  if (argument !== standardInput) return ok(argument);
  const bytes = await readStandardInput(context, 'The join line', lineBytesMax);
  return bytes.ok ? ok(new TextDecoder().decode(bytes.value)) : bytes;
}

function say({ stdout, stderr }: Context, { host, redis }: Joined, started: Started | undefined, json: boolean): void {
  const { name, slots, labels } = host;
  if (json) stdout.line(safeJson({ host: name, slots, labels, redis }, 2));
  else {
    const has = labels.length > 0 ? `, ${labels.join(', ')}` : '';
    stdout.line(
      safeLine(`This machine works as ${name} for the fleet at ${redis}: ${plural(slots, 'slot')}${has}.`, 600),
    );
  }
  if (started?.as === 'process') {
    stderr.line(
      `There is no systemd --user here, so the agent will not come back after a restart. Its log: ${started.log}`,
    );
  } else if (started !== undefined && !started.lingers) {
    stderr.line('It ends when you log out, unless you type: loginctl enable-linger');
  }
}
