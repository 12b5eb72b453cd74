/** `host list`: the machines of the fleet, and how they stand. */
import type { Command } from '@commander-js/extra-typings';
import { type FleetHost, isLost, listHosts } from '../../../app/fleet/hosts.ts';
import { whileBusy } from '../../../app/live-runner.ts';
import { commandText } from '../../../core/advice.ts';
import { ok } from '../../../core/failure.ts';
import { type Cell, formatAge, formatDuration, formatTable } from '../../../view/format.ts';
import { safeJson, safeLine } from '../../../view/terminal-text.ts';
import type { Context, Work } from '../../context.ts';
import { exitCode } from '../../exit-code.ts';

const example = `
Example:
  $ claude-code-agent host list
  $ claude-code-agent host list --json | jq '.hosts[] | select(.state == "ready") | .name'`;

export function define(command: Command, context: Context): void {
  command
    .description('Lists the machines of the fleet: what they have, how much of it is in use, and how they stand.')
    .option('--json', 'one JSON document: {"hosts": [{"name", "state", "labels", "slots", "used", ...}]}')
    .addHelpText('after', example)
    .action(({ json }) => context.run(() => list(context, json === true)));
}

async function list(context: Context, json: boolean): Promise<Work> {
  const root = context.root();
  if (!root.ok) return root;
  const hosts = await whileBusy(context, 'Asking the fleet', () => listHosts(context, root.value));
  if (!hosts.ok) return hosts;
  if (json) context.stdout.line(safeJson({ hosts: hosts.value.map(plain) }, 2));
  else if (hosts.value.length === 0) {
    const command = commandText(['host', 'add', 'NAME', '--ssh', 'USER@HOST']);
    context.stderr.line(`No machine has joined. Add one with: ${command}`);
  } else {
    for (const line of table(context, hosts.value)) context.stdout.line(line);
    for (const host of hosts.value) {
      const why = whyRefusing(host);
      if (why !== undefined) context.stderr.line(safeLine(`${host.name}: ${why}`, 600));
    }
  }
  return ok(exitCode.done);
}

/** One word for how it stands. */
function stateOf(host: FleetHost): 'ready' | 'draining' | 'lost' | 'unguarded' | 'refusing' | 'full' {
  if (isLost(host)) return 'lost';
  if (host.isDrained) return 'draining';
  if (!host.isGuarded) return 'unguarded';
  if (whyRefusing(host) !== undefined) return 'refusing';
  return host.isFull === true ? 'full' : 'ready';
}

/** Why nothing can be started there. */
function whyRefusing({ name, refusal, loginTrouble }: FleetHost): string | undefined {
  if (refusal !== undefined || loginTrouble === undefined) return refusal;
  const again = commandText(['host', 'resume', name]);
  return `Its login was refused, and it gets nothing more until that changes, or with: ${again}. ${loginTrouble}`;
}

const tones = { ready: 'good', draining: 'warn', lost: 'bad', unguarded: 'bad', refusing: 'bad', full: 'bad' } as const;

function plain(host: FleetHost): object {
  const { name, labels, slots, used, load = null, abilities, leaseMs, since, seenAt } = host;
  const { logins, version, claudeVersion } = abilities;
  const at = (ms: number) => new Date(ms).toISOString();
  const more = {
    load,
    logins,
    login: host.login ?? null,
    version,
    claudeVersion,
    leaseMs,
    refusal: whyRefusing(host) ?? null,
    since: at(since),
    heard: at(seenAt),
  };
  return { name, state: stateOf(host), labels, slots, used, free: Math.max(0, slots - used), ...more };
}

function table({ stdout }: Context, hosts: readonly FleetHost[]): string[] {
  const columns = [
    { title: 'HOST' },
    { title: 'STATE' },
    { title: 'USED', align: 'right' },
    { title: 'FREE', align: 'right' },
    { title: 'LOAD', align: 'right' },
    { title: 'LOGIN' },
    { title: 'VERSION' },
    { title: 'CLAUDE' },
    { title: 'LEASE', align: 'right' },
    { title: 'SINCE', align: 'right' },
    { title: 'LABELS' },
  ] as const;
  const rows = hosts.map((host): Cell[] => {
    const state = stateOf(host);
    const { version, claudeVersion } = host.abilities;
    return [
      host.name,
      { text: state, tone: tones[state] },
      String(host.used),
      String(Math.max(0, host.slots - host.used)),
      host.load?.toFixed(1) ?? '-',
      safeLine(host.login ?? '-', 30),
      safeLine(version, 20),
      safeLine(claudeVersion || 'none', 20),
      formatDuration(host.leaseMs),
      formatAge(host.seenAt + host.silentMs - host.since),
      safeLine(host.labels.join(' '), 60),
    ];
  });
  return formatTable(columns, rows, stdout.style);
}
