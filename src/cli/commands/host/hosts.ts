/** The `host` and `fleet` commands. */
import { type Command, Option } from '@commander-js/extra-typings';
import { addHost } from '../../../app/fleet/add-host.ts';
import type { Started } from '../../../app/fleet/agent-service.ts';
import {
  bookHeld,
  finishWork,
  type HeldGroup,
  heldBy,
  leaveFleet,
  lookAtHost,
  type OpenWork,
  removeHost,
  type ToForget,
} from '../../../app/fleet/forget-host.ts';
import {
  addedHosts,
  type FleetHost,
  type FleetInitOptions,
  fleetHosts,
  isCompatible,
  isLost,
  isSilent,
  joinLineOf,
  type MadeFleet,
  makeFleet,
  setDraining,
} from '../../../app/fleet/init.ts';
import { type Joined, joinAndServe, joinFleet } from '../../../app/fleet/join.ts';
import { serveFleet } from '../../../app/fleet/serve.ts';
import { whileBusy } from '../../../app/live-runner.ts';
import { commandText } from '../../../core/advice.ts';
import { groupSettings } from '../../../core/definitions.ts';
import { ok } from '../../../core/failure.ts';
import { slotsMax } from '../../../core/setting-values.ts';
import {
  formatAge,
  formatDuration,
  formatMoney,
  formatTable,
  plural,
  type TableCell,
  titled,
} from '../../../view/format.ts';
import { safeJson, safeLine } from '../../../view/terminal-text.ts';
import { type CommandResult, type Context, confirmed, exitCode, need, refuse } from '../../context.ts';
import { collect, parseWhole, settingOption } from '../../options/options.ts';
import { readStandardInput, standardInput } from '../../options/prompt-source.ts';

const listExample = `
Example:
  $ claude-code-agent host list
  $ claude-code-agent host list --json | jq '.hosts[] | select(.state == "ready") | .name'`;

export function defineHostList(command: Command, context: Context): void {
  command
    .description('List the hosts of the fleet with their state, labels and slots.')
    .option('--json', 'one JSON document: {"hosts": [{"name", "state", "labels", "slots", "used", ...}]}')
    .addHelpText('after', listExample)
    .action(({ json }) =>
      context.run(async () => {
        const root = need(context.root());
        const hosts = need(await whileBusy(context, 'Reading the hosts of the fleet', () => fleetHosts(context, root)));
        if (json) context.stdout.json({ hosts: hosts.map(plain) });
        else if (hosts.length === 0) {
          const command = commandText(['host', 'add', 'NAME', '--ssh', 'USER@HOST']);
          context.stderr.line(`No host has joined. Add one with: ${command}`);
        } else {
          context.stdout.lines(table(context, hosts));
          for (const host of hosts) {
            const { name, loginWarning: warning } = host;
            const mayFail = warning && `Sessions may fail there, because its login cannot be used. ${warning}`;
            const why = whyRefusing(host) ?? mayFail;
            if (why !== undefined) context.stderr.line(safeLine(`${name}: ${why}`, 600));
          }
        }
      }),
    );
}

function stateOf(host: FleetHost): 'ready' | 'draining' | 'silent' | 'lost' | 'unguarded' | 'refusing' | 'full' {
  if (isLost(host)) return 'lost';
  if (isSilent(host)) return 'silent';
  if (host.isDrained) return 'draining';
  if (!host.isGuarded) return 'unguarded';
  if (whyRefusing(host) !== undefined) return 'refusing';
  return host.isFull === true ? 'full' : 'ready';
}

/** Why the host starts no sessions. */
function whyRefusing(host: FleetHost): string | undefined {
  const { name, refusal, loginTrouble } = host;
  if (!isCompatible(host))
    return `Its claude-code-agent is incompatible with this one. See: ${commandText(['doctor', '--hosts'])}`;
  if (refusal !== undefined || loginTrouble === undefined) return refusal;
  const again = commandText(['host', 'resume', name]);
  return `Its login was refused, so it gets no sessions. Change the login, or retry with: ${again}. ${loginTrouble}`;
}

const tones = {
  ready: 'good',
  draining: 'warn',
  silent: 'bad',
  lost: 'bad',
  unguarded: 'bad',
  refusing: 'bad',
  full: 'bad',
} as const;

function plain(host: FleetHost): object {
  const { name, labels, slots, used, abilities, leaseMs, since, seenAt } = host;
  const { version, claudeVersion } = abilities;
  const at = (ms: number) => new Date(ms).toISOString();
  const more = {
    login: host.login ?? null,
    version,
    claudeVersion,
    leaseMs,
    refusal: whyRefusing(host) ?? null,
    since: at(since),
    lastSeen: at(seenAt),
  };
  return { name, state: stateOf(host), labels, slots, used, free: Math.max(0, slots - used), ...more };
}

function table({ stdout }: Context, hosts: readonly FleetHost[]): string[] {
  const names = ['HOST', 'STATE', 'USED', 'FREE', 'LOGIN', 'VERSION', 'CLAUDE', 'SEEN', 'LABELS'];
  const columns = titled(names, 'USED', 'FREE', 'SEEN');
  const rows = hosts.map((host): TableCell[] => {
    const state = stateOf(host);
    const { version, claudeVersion } = host.abilities;
    return [
      host.name,
      { text: state, tone: tones[state] },
      String(host.used),
      String(Math.max(0, host.slots - host.used)),
      safeLine(host.login ?? '-', 30),
      safeLine(version, 20),
      safeLine(claudeVersion || 'none', 20),
      formatAge(host.silentMs),
      safeLine(host.labels.join(' '), 60),
    ];
  });
  return formatTable(columns, rows, stdout.style);
}

export const defineDrain = defineDraining(
  true,
  'Let a host finish its running sessions and start no others until it is resumed.',
);
export const defineHostResume = defineDraining(
  false,
  'Let a drained host, or a host whose login was refused, take sessions again.',
);

function defineDraining(isDrained: boolean, description: string) {
  const example = `\nExample:\n  $ claude-code-agent host ${isDrained ? 'drain' : 'resume'} gpu1`;
  return (command: Command, context: Context): void => {
    command
      .description(description)
      .argument('<name>', 'name of the host')
      .option('--json', 'one JSON document: {"host", "draining"}')
      .addHelpText('after', example)
      .action((name, { json }) => context.run(() => drain(context, name, isDrained, json === true)));
  };
}

async function drain(context: Context, name: string, isDrained: boolean, json: boolean): Promise<CommandResult> {
  const root = need(context.root());
  const { used } = need(await setDraining(context, root, name, isDrained));
  const rest = used > 0 ? `; it finishes ${plural(used, 'session')}` : '';
  const resume = commandText(['host', 'resume', name]);
  const drained = `${name} takes no more sessions${rest}. Undo it with: ${resume}`;
  const text = isDrained ? drained : `${name} takes sessions again.`;
  context.stdout.line(json ? safeJson({ host: name, draining: isDrained }, 2) : text);
}

const forgetExample = `
Example:
  $ claude-code-agent host forget gpu1`;

export function defineForget(command: Command, context: Context): void {
  command
    .description(`Remove a host from the fleet when its sessions have finished; until then it takes no others.
If it was added from here, the agent, the login and the program are removed from it. Amounts held for a lost host
are recorded as spent.`)
    .argument('<name>', 'name of the host')
    .option('--now', 'end its running sessions instead of waiting; they continue elsewhere as after a crash')
    .option('-y, --yes', 'answer every question with yes')
    .option('--json', 'one JSON document: {"host", "booked": [{"group", "session", "usd"}]}')
    .addHelpText('after', forgetExample)
    .action((name, { now, yes, json }) =>
      context.run(async () => {
        const root = need(context.root());
        const host = need(await lookAtHost(context, root, name));
        const mayHaveCost = host.used === undefined ? heldBy(context, root, name) : [];
        const sure = await confirmed(context, question(host, mayHaveCost, now === true), yes === true);
        if (!sure) {
          context.stderr.line('Nothing was changed.');
          return;
        }
        if (now !== true) await finish(context, root, host);
        const held = host.isHere ? [] : heldBy(context, root, name);
        const forgetting = async () => (host.isHere ? leaveFleet(context, root) : removeHost(context, root, host));
        const forgotten = need(await whileBusy(context, `Removing ${name}`, forgetting));
        if (forgotten !== undefined) {
          context.stderr.line(safeLine(`The program and the login stay on that host. ${forgotten}`, 1_000));
        }
        const booked = [];
        for (const one of held) {
          const done = await bookHeld(context, one);
          if (done.ok) booked.push(one);
          else context.stderr.line(safeLine(`${one.groupId}: ${done.failure.message}`, 1_000));
        }
        const money = booked.map(({ groupId, sessionId, usd }) => ({ group: groupId, session: sessionId, usd }));
        if (json) context.stdout.json({ host: name, booked: money });
        else
          context.stdout.line(
            `Removed ${name} from the fleet${booked.length > 0 ? `; ${sumText(booked)} recorded as spent` : ''}.`,
          );
      }),
    );
}

/** Waits for the sessions of the host. Ctrl-C leaves the host drained. */
async function finish(context: Context, root: string, host: ToForget): Promise<void> {
  let printed = '';
  const show = ({ sessions, withoutRunner }: OpenWork, say: (what: string) => void): void => {
    const waiting = `${host.name} takes no more sessions. Waiting for ${plural(sessions, 'running session')}`;
    const resume = withoutRunner
      .map((id) => ` ${id} needs a runner: ${commandText(['group', 'resume', id])}.`)
      .join('');
    const line = `${waiting}; --now ends them.${resume}`;
    if (line !== printed) context.stderr.line(safeLine(line, 1_000));
    printed = line;
    say(waiting);
  };
  need(
    await whileBusy(context, `Draining ${host.name}`, (say) =>
      finishWork(context, root, host, (open) => show(open, say)),
    ),
  );
}

function question({ name, isHere, ssh, used }: ToForget, held: readonly HeldGroup[], isNow: boolean): string {
  const parts = [
    isHere ? 'Remove this host from the fleet' : `Remove ${name} from the fleet`,
    ...(used === undefined || used === 0
      ? []
      : [`${isNow ? 'ending' : 'waiting for'} ${plural(used, 'session')} there`]),
    ...(ssh === undefined ? [] : [`and remove what was installed at ${ssh}`]),
    ...(held.length === 0 ? [] : [`and record the held ${sumText(held)} as spent`]),
  ];
  return `${parts.join(', ')}?`;
}

function sumText(held: readonly HeldGroup[]): string {
  const sum = held.reduce((all, { usd }) => all + usd, 0);
  const sessions = held.map(({ groupId, sessionId }) => `${groupId}/${sessionId.slice(0, 3)}`);
  return `${formatMoney(sum, true)} (${sessions.join(', ')})`;
}

const parseSlots = parseWhole(1, slotsMax);

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
    const reboot = 'Without systemd --user, the agent does not restart after a reboot; repeat this command then.';
    stderr.line(`${reboot} Its log: ${started.log}`);
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
    .option('--ssh <destination>', '[user@]host, or a name from your ssh configuration; later not needed')
    .option('--slots <n>', 'maximum number of sessions to run there at once (default: the number of cores)', parseSlots)
    .option('--label <label>', 'label that sessions can require; may be repeated', collect)
    .option('--login <name>', 'login to copy: fleet/logins/<name>.env in the data folder, or else your key or token');
  described.addOption(settingOption('acceptClaude', groupSettings.acceptClaude));
  described
    .option('--json', 'one JSON document: {"host", "ssh"}')
    .addHelpText('after', addExample)
    .action((name, { label: labels, json, ...given }) =>
      context.run(async () => {
        const root = need(context.root());
        const ssh = given.ssh ?? new Map(addedHosts(context, root)).get(name);
        if (ssh === undefined)
          return refuse('usage', `The host ${name} was not added from here.`, 'Give its ssh destination with --ssh.');
        const say = (step: string) => context.stderr.line(safeLine(step, 300));
        const added = need(await addHost(context, root, { ...given, name, ssh, labels }, say));
        const out = json ? context.stderr : context.stdout;
        for (const line of added) out.line(safeLine(`${ssh}: ${line}`, 1_000));
        if (json) context.stdout.json({ host: name, ssh });
      }),
    );
}

const initExample = `
Example:
  $ claude-code-agent fleet init --redis redis://127.0.0.1:6379
  $ claude-code-agent fleet init --redis rediss://cca:PASSWORD@redis.example.org:6380
  $ claude-code-agent fleet join-line | ssh gpu1 claude-code-agent host join - --label gpu`;

export function defineFleetInit(command: Command, context: Context): void {
  command
    .description(`Create a fleet of hosts that communicate through a Redis server, and print the line that
hosts join with. The line contains keys: give it only to hosts. Run the command again to change options, not keys.`)
    .option('--redis <url>', 'URL with user and password (default: CLAUDE_CODE_AGENT_FLEET)')
    .option('--lease <seconds>', 'how long a host may run without reaching Redis (default: 60)', parseWhole(2, 3_600))
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
        const options: FleetInitOptions = { ...more, redis, leaseMs: lease && lease * 1_000 };
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
