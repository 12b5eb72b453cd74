/** cli/commands/host/: the hosts of a fleet. This file: how one joins, and `host serve`. */
import { type Command, Option } from '@commander-js/extra-typings';
import { addHost } from '../../../app/fleet/add-host.ts';
import type { Started } from '../../../app/fleet/agent-service.ts';
import { type FleetInitOptions, joinLineOf, type MadeFleet, makeFleet } from '../../../app/fleet/init.ts';
import { type Joined, joinAndServe, joinFleet } from '../../../app/fleet/join.ts';
import { serveFleet } from '../../../app/fleet/serve.ts';
import { whileBusy } from '../../../app/live-runner.ts';
import { groupSettings } from '../../../core/definitions.ts';
import { ok } from '../../../core/failure.ts';
import { formatDuration, plural } from '../../../view/format.ts';
import { safeJson, safeLine } from '../../../view/terminal-text.ts';
import { type CommandResult, type Context, exitCode, need, refuse } from '../../context.ts';
import { collect, parseLease, parseSlots, settingOption } from '../../options/options.ts';
import { readStandardInput, standardInput } from '../../options/prompt-source.ts';

const serveExample = `
Example:
  $ claude-code-agent host serve`;

export function defineServe(command: Command, context: Context): void {
  command
    .description(`Runs the agent of this host, which has joined a fleet, until it is interrupted. Its sessions go on
without it, and the next agent adopts them.`)
    .option('--json', 'what happens as one JSON document a line: {"at", "message"}')
    .addOption(new Option('--guard', 'what ends the sessions when the lease is over').hideHelp())
    .addHelpText('after', serveExample)
    .action((given) => context.run(() => serve(context, command, given)));
}

interface ServeOptions {
  readonly guard?: true | undefined;
  readonly json?: true | undefined;
}

/** `command` is any of the program, which knows its version. */
export async function serve(
  context: Context,
  command: Pick<Command, 'parent'>,
  { guard, json }: ServeOptions,
): Promise<CommandResult> {
  const root = need(context.root());
  const told = json ? Object.create(context, { notes: { value: linesOf(context) } }) : context;
  const wanted = { isGuard: guard === true, version: versionOf(command) };
  const served = await serveFleet(told, root, wanted);
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

const lineBytesMax = 100_000;

const joinExample = `
Example:
  $ claude-code-agent host join cca-join:eyJ2... --slots 8 --label gpu --login team-a
  $ claude-code-agent host join - --foreground <join-line.txt`;

export function defineJoin(command: Command, context: Context): void {
  command
    .description(`Makes this machine a host of a fleet: an agent runs in the background, as a unit of systemd --user
where there is one. Everyone who runs groups with the fleet can run commands here. Run again, it keeps the options that
are not given.`)
    .argument('<line>', 'the join line, "-" for standard input')
    .option('--name <name>', 'its name in the fleet (default: its host name)')
    .option('--slots <n>', 'sessions that may work here at once (default: cores)', parseSlots)
    .option('--label <label>', 'what it has, for sessions that require it; may be repeated', collect)
    .option('--ssh <destination>', 'how hosts that run groups reach this one by ssh, such as me@gpu1')
    .option('--login <name>', 'the login of sessions here, fleet/logins/<name>.env in the data folder')
    .addOption(settingOption('acceptClaude', groupSettings.acceptClaude))
    .option('--foreground', 'run the agent here, until it is interrupted')
    .option('--json', 'one JSON document: {"host", "slots", "labels", "redis"}')
    .addHelpText('after', joinExample)
    .action((argument, given) =>
      context.run(async () => {
        const root = need(context.root());
        const line = await joinLineFrom(context, argument);
        const { name, slots, label: labels, ssh, login, acceptClaude, foreground, json } = given;
        const wanted = { line: line, name, slots, labels, ssh, login, acceptClaude };
        if (foreground) {
          const joined = need(await joinFleet(context, root, wanted));
          say(context, joined, undefined, json === true);
          return serve(context, command, {});
        }
        const joined = need(await whileBusy(context, 'Joining', () => joinAndServe(context, root, wanted)));
        say(context, joined, joined.started, json === true);
      }),
    );
}

async function joinLineFrom(context: Context, argument: string): Promise<string> {
  if (argument !== standardInput) return argument;
  return new TextDecoder().decode(need(await readStandardInput(context, 'The join line', lineBytesMax)));
}

function say({ stdout, stderr }: Context, { host, redis }: Joined, started: Started | undefined, json: boolean): void {
  const { name, slots, labels } = host;
  if (json) stdout.json({ host: name, slots, labels, redis });
  else {
    const has = labels.length > 0 ? `, ${labels.join(', ')}` : '';
    stdout.line(safeLine(`This host works as ${name} for the fleet at ${redis}: ${plural(slots, 'slot')}${has}.`, 600));
  }
  if (started?.as === 'process') {
    stderr.line(
      `There is no systemd --user here, so the agent will not come back after a restart. Its log: ${started.log}`,
    );
  } else if (started !== undefined && !started.lingers) {
    stderr.line('It ends when you log out, unless you type: loginctl enable-linger');
  }
}

const addExample = `
Example:
  $ claude-code-agent host add gpu1 --ssh me@gpu1 --slots 8 --label gpu --login team-a`;

export function defineHostAdd(command: Command, context: Context): void {
  const described = command
    .description(`Adds a host to the fleet by ssh, which must accept your key. The host needs the same platform as this
machine, git and Claude Code. This program is sent there and an agent starts; --login sends a login into a private
file. Run again, it installs this version and keeps the options that are not given; running sessions keep their
program. Forgetting the host undoes all of it.`)
    .argument('<name>', 'its name in the fleet')
    .requiredOption('--ssh <destination>', 'as ssh takes it: [user@]host, or a name of its configuration')
    .option('--slots <n>', 'sessions that may work there at once (default: its cores)', parseSlots)
    .option('--label <label>', 'what it has, for sessions that require it; may be repeated', collect)
    .option('--login <name>', 'send fleet/logins/<name>.env of the data folder, else the login that is in use here');
  described.addOption(settingOption('acceptClaude', groupSettings.acceptClaude));
  described
    .option('--json', 'one JSON document: {"host", "ssh"}')
    .addHelpText('after', addExample)
    .action((name, { label: labels, json, ...given }) =>
      context.run(async () => {
        const root = need(context.root());
        const say = (step: string) => context.stderr.line(safeLine(step, 300));
        const added = need(await addHost(context, root, { ...given, name, labels }, say));
        const out = json ? context.stderr : context.stdout;
        for (const line of added) out.line(safeLine(`${given.ssh}: ${line}`, 1_000));
        if (json) context.stdout.json({ host: name, ssh: given.ssh });
      }),
    );
}

const initExample = `
Example:
  $ claude-code-agent fleet init --redis redis://127.0.0.1:6379
  $ claude-code-agent fleet init --redis rediss://cca:PASSWORD@redis.example.org:6380
  $ ssh gpu1 claude-code-agent host join "$(claude-code-agent fleet join-line)" --label gpu`;

export function defineFleetInit(command: Command, context: Context): void {
  command
    .description(`Makes a fleet of hosts that meet at a Redis, and prints the line with which a host joins. The line
contains keys: give it only to hosts. Run again, it keeps the keys.`)
    .option('--redis <url>', 'its address, with user and password (default: CLAUDE_CODE_AGENT_FLEET)')
    .option('--lease <seconds>', 'how long a host may work without an answer of Redis (default: 60)', parseLease)
    .option('--ca <file>', 'PEM file of the authority that signed the certificate of Redis')
    .option('--insecure', 'connect to Redis without encryption, in a network that only you use')
    .option('--json', 'one JSON document: {"joinLine", "isNew", "redis", "leaseMs"}')
    .addHelpText('after', initExample)
    .action(({ redis: given, json, lease, ...more }) =>
      context.run(async () => {
        const root = need(context.root());
        const redis = given ?? context.env.CLAUDE_CODE_AGENT_FLEET ?? '';
        if (redis === '') {
          return refuse('usage', 'A fleet needs a Redis.', 'Give its address as --redis URL.');
        }
        const options: FleetInitOptions = { ...more, redis, leaseMs: lease };
        const made = need(await whileBusy(context, 'Asking Redis', () => makeFleet(context, root, options)));
        for (const line of notes(made)) context.stderr.line(safeLine(line, 1_000));
        const { joinLine, isNew, redis: shown, leaseMs } = made;
        context.stdout.line(json ? safeJson({ joinLine, isNew, redis: shown, leaseMs }, 2) : joinLine);
      }),
    );
}

function notes({ isNew, isChanged, redis, version, leaseMs, file }: MadeFleet): string[] {
  const what = isNew ? `Made a fleet; its keys are in ${file}.` : 'There is a fleet already; its keys stay.';
  return [
    `${what} It is at ${redis} (Redis ${version}, lease ${formatDuration(leaseMs)}).`,
    ...(isChanged ? ['Its join line has changed: hosts that have joined must join again.'] : []),
    'A host joins with this line. Keep it secret: it contains the key to everything that goes through Redis.',
  ];
}

const joinLineExample = `
Example:
  $ claude-code-agent fleet join-line
  $ claude-code-agent fleet join-line | ssh gpu1 claude-code-agent host join - --label gpu`;

export function defineJoinLine(command: Command, context: Context): void {
  command
    .description('Prints the line with which a host joins the fleet. It contains keys and a password.')
    .option('--json', 'one JSON document: {"joinLine"}')
    .addHelpText('after', joinLineExample)
    .action(({ json }) =>
      context.run(() => {
        const root = need(context.root());
        const line = need(joinLineOf(context, root));
        context.stdout.line(json ? safeJson({ joinLine: line }, 2) : line);
      }),
    );
}
