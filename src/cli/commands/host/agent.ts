/** `fleet init`, `fleet join-line`, `host join`, `host add` and `host serve`. */
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
    .description(`Run the agent of this host until it is interrupted. The host must have joined a fleet. Sessions
continue without the agent, and the next one adopts them.`)
    .option('--json', 'one JSON document per message, each on one line: {"at", "message"}')
    .addOption(new Option('--guard', 'run the guard, which ends sessions when the lease expires').hideHelp())
    .addHelpText('after', serveExample)
    .action((given) => context.run(() => serve(context, command, given)));
}

interface ServeOptions {
  readonly guard?: true | undefined;
  readonly json?: true | undefined;
}

/** `command` may be any command; its topmost parent has the version. */
export async function serve(
  context: Context,
  command: Pick<Command, 'parent'>,
  { guard, json }: ServeOptions,
): Promise<CommandResult> {
  const root = need(context.root());
  const output = json ? Object.create(context, { notes: { value: linesOf(context) } }) : context;
  const wanted = { isGuard: guard === true, version: versionOf(command) };
  const served = await serveFleet(output, root, wanted);
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
    .description(`Make this machine a host of a fleet. The agent runs in the background, as a unit of
systemd --user if available. Everyone who runs groups in the fleet can run commands here. Run this command again
to change options; those not given keep their values.`)
    .argument('<line>', 'the join line, "-" for standard input')
    .option('--name <name>', 'name in the fleet (default: the host name)')
    .option('--slots <n>', 'maximum number of sessions to run here at once (default: the number of cores)', parseSlots)
    .option('--label <label>', 'label that sessions can require; may be repeated', collect)
    .option('--ssh <destination>', 'ssh destination at which hosts that run groups reach this host, such as me@gpu1')
    .option('--login <name>', 'login for sessions: fleet/logins/<name>.env in the data folder')
    .addOption(settingOption('acceptClaude', groupSettings.acceptClaude))
    .option('--foreground', 'run the agent in this terminal until it is interrupted')
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
    const room = [plural(slots, 'slot'), ...labels].join(', ');
    stdout.line(safeLine(`This host joined the fleet at ${redis} as ${name}: ${room}.`, 600));
  }
  if (started?.as === 'process') {
    stderr.line(`Without systemd --user, the agent does not restart after a reboot. Its log: ${started.log}`);
  } else if (started !== undefined && !started.lingers) {
    stderr.line('The agent ends when you log out. To keep it running: loginctl enable-linger');
  }
}

const addExample = `
Example:
  $ claude-code-agent host add gpu1 --ssh me@gpu1 --slots 8 --label gpu --login team-a`;

export function defineHostAdd(command: Command, context: Context): void {
  const described = command
    .description(`Add a host to the fleet over ssh, which must accept your key. The host needs git, Claude Code and
the same platform as this machine. Copies this program and a login to the host and starts the agent. Run this command
again to install this version or to change options. Options not given keep their values, and running sessions keep
their version. To undo all of this, forget the host.`)
    .argument('<name>', 'name in the fleet')
    .requiredOption('--ssh <destination>', '[user@]host, or a name from your ssh configuration')
    .option('--slots <n>', 'maximum number of sessions to run there at once (default: the number of cores)', parseSlots)
    .option('--label <label>', 'label that sessions can require; may be repeated', collect)
    .option('--login <name>', 'login to copy: fleet/logins/<name>.env in the data folder (default: your login)');
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
    .description(`Create a fleet of hosts that communicate through a Redis server, and print the line that
hosts join with. The line contains keys: give it only to hosts. Run the command again to change options, not keys.`)
    .option('--redis <url>', 'URL with user and password (default: CLAUDE_CODE_AGENT_FLEET)')
    .option('--lease <seconds>', 'how long a host may run without reaching Redis (default: 60)', parseLease)
    .option('--ca <file>', 'PEM file of the CA that signed the certificate of Redis')
    .option('--insecure', 'connect to Redis without encryption, for a network that only you use')
    .option('--json', 'one JSON document: {"joinLine", "isNew", "redis", "leaseMs"}')
    .addHelpText('after', initExample)
    .action(({ redis: given, json, lease, ...more }) =>
      context.run(async () => {
        const root = need(context.root());
        const redis = given ?? context.env.CLAUDE_CODE_AGENT_FLEET ?? '';
        if (redis === '') {
          return refuse('usage', 'A fleet needs a Redis server.', 'Give its URL with --redis.');
        }
        const options: FleetInitOptions = { ...more, redis, leaseMs: lease };
        const made = need(await whileBusy(context, 'Connecting to Redis', () => makeFleet(context, root, options)));
        for (const line of notes(made)) context.stderr.line(safeLine(line, 1_000));
        const { joinLine, isNew, redis: shown, leaseMs } = made;
        context.stdout.line(json ? safeJson({ joinLine, isNew, redis: shown, leaseMs }, 2) : joinLine);
      }),
    );
}

function notes({ isNew, isChanged, redis, version, leaseMs, file }: MadeFleet): string[] {
  const what = isNew ? `Created a fleet; its keys are in ${file}.` : 'The fleet exists; its keys did not change.';
  return [
    `${what} It is at ${redis} (Redis ${version}, lease ${formatDuration(leaseMs)}).`,
    ...(isChanged ? ['The join line has changed: hosts that have joined must join again.'] : []),
    'Hosts join with this line. Keep it secret: it contains the key to all data in Redis.',
  ];
}

const joinLineExample = `
Example:
  $ claude-code-agent fleet join-line
  $ claude-code-agent fleet join-line | ssh gpu1 claude-code-agent host join - --label gpu`;

export function defineJoinLine(command: Command, context: Context): void {
  command
    .description('Print the line that hosts join the fleet with. It contains keys and a password.')
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
