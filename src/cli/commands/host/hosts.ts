/** `host list`, `drain`, `resume` and `forget`. */
import type { Command } from '@commander-js/extra-typings';
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
import { type FleetHost, fleetHosts, isLost, isSilent, setDraining } from '../../../app/fleet/hosts.ts';
import { whileBusy } from '../../../app/live-runner.ts';
import { commandText } from '../../../core/advice.ts';
import { formatAge, formatMoney, formatTable, plural, type TableCell, titled } from '../../../view/format.ts';
import { safeJson, safeLine } from '../../../view/terminal-text.ts';
import { type CommandResult, type Context, confirmed, need } from '../../context.ts';

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
function whyRefusing({ name, refusal, loginTrouble }: FleetHost): string | undefined {
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
          context.stderr.line(safeLine(`${forgotten} The program and the login stay on that host.`, 1_000));
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
