/** `doctor --hosts`: checks the Redis server and the hosts of the fleet. */

import { findClaude, versionOf } from '../../claude/launch/program.ts';
import { advise, type CommandLine, see } from '../../core/advice.ts';
import { ok, type Result } from '../../core/failure.ts';
import { plainNamePattern, wordPattern } from '../../core/setting-values.ts';
import { isCompatible, isLost, isSilent, listHosts } from '../../fleet/registry.ts';
import { formatAge, formatDuration, plural } from '../../view/format.ts';
import type { AppContext } from '../app-context.ts';
import { checkRedis, type FleetHost, knownFleet, updateCommand, withRedis } from '../fleet/init.ts';
import { type Finding, finding, fine, freeBytesLow, freeBytesMin, mebibyte } from './machine.ts';

/** Fails with `not-found` without a fleet, or if Redis cannot be reached. */
export async function checkHosts(context: AppContext, root: string): Promise<Result<Finding[]>> {
  const fleet = knownFleet(context, root);
  if (!fleet.ok) return fleet;
  const reached = await withRedis(context.world, fleet.value, async (redis) => {
    const health = await redis.health();
    if (!health.ok) return health;
    const hosts = await listHosts(redis);
    return hosts.ok ? ok({ health: health.value, hosts: hosts.value }) : hosts;
  });
  if (!reached.ok) return reached;
  const { health, hosts } = reached.value;
  const redis = checkRedis(health);
  const claude = findClaude(context.world, context.env, { packageRoot: context.packageRoot });
  const version = claude.ok ? await versionOf(context.world, claude.value.program, context.env) : claude;
  const here = {
    leaseMs: fleet.value.leaseMs,
    claude: version.ok ? version.value : undefined,
    update: (name: string) => updateCommand(context, root, name),
  };
  const server = redis.ok
    ? fine('redis', `Redis ${health.version}, ${health.isEncrypted ? 'by TLS' : 'not encrypted'}`)
    : finding('redis', 'broken', redis.failure.message, redis.failure.next);
  if (hosts.length > 0) return ok([server, ...hosts.flatMap((host) => hostFindings(host, here))]);
  const next = advise('Add one with', ['host', 'add', 'NAME', '--ssh', 'USER@HOST']);
  return ok([server, finding('hosts', 'warning', 'No host has joined the fleet.', next)]);
}

interface Here {
  readonly leaseMs: number;
  readonly claude: string | undefined;
  readonly update: (host: string) => CommandLine;
}

/** The problems of a host, or one line with its state. */
export function hostFindings(host: FleetHost, here: Here): Finding[] {
  const { name } = host;
  if (isLost(host)) {
    const message = `${name}: no heartbeat for ${formatAge(host.silentMs)}; its sessions are lost.`;
    const next = advise(
      'Start its agent there ("systemctl --user restart claude-code-agent-host", or join again), or remove it with',
      ['host', 'forget', name],
    );
    return [finding('lease', 'broken', message, next)];
  }
  if (isSilent(host)) {
    const message = `${name}: no heartbeat for ${formatAge(host.silentMs)}, so it gets no sessions.`;
    const next = 'Wait. If it stays silent, its sessions continue elsewhere when its lease expires.';
    return [finding('lease', 'warning', message, next)];
  }
  const found = [
    ...leaseFindings(host, here),
    ...programFindings(host, here),
    ...loginFindings(host, here),
    ...diskFindings(host),
    ...slotFindings(host),
  ];
  return found.length > 0 ? found : [fine('host', standing(host))];
}

function standing({ name, slots, used, abilities, leaseMs, login = 'that of its agent' }: FleetHost): string {
  const free = `${slots - used} of ${plural(slots, 'slot')} free`;
  const claude = `claude ${abilities.claudeVersion}`;
  return `${name}: ${free}, ${claude}, login: ${login}, lease ${formatDuration(leaseMs)}`;
}

function leaseFindings({ name, leaseMs, isGuarded }: FleetHost, here: Here): Finding[] {
  const again = advise('Add it again with', here.update(name));
  const [its, ours] = [leaseMs, here.leaseMs].map(formatDuration);
  const other = `${name}: it joined with a lease of ${its}, but the fleet has ${ours}.`;
  const unguarded = `${name}: its guard does not run, so it gets no sessions.`;
  const restart = 'Restart its agent there, which starts the guard: systemctl --user restart claude-code-agent-host';
  return [
    ...(leaseMs === here.leaseMs ? [] : [finding('lease', 'broken', other, again)]),
    ...(isGuarded ? [] : [finding('guard', 'broken', unguarded, restart)]),
  ];
}

function programFindings(host: FleetHost, here: Here): Finding[] {
  const { name, abilities, refusal } = host;
  const { version, claudeVersion } = abilities;
  const found: Finding[] = [];
  if (!isCompatible(host)) {
    const message = `${name}: its claude-code-agent ${version} is incompatible, so it gets no sessions.`;
    const next = advise('Install this version there with', here.update(name));
    found.push(finding('version', 'broken', message, next));
  }
  if (refusal !== undefined) {
    const cure = 'Install another version of Claude Code there; its agent checks it automatically.';
    const risk = [...here.update(name), '--accept-claude', claudeVersion];
    const next = !wordPattern.test(claudeVersion) ? cure : advise(`${cure} Or use it at your own risk with`, risk);
    found.push(finding('claude', 'broken', `${name}: it gets no sessions. ${refusal}`, next));
  } else if (claudeVersion === '') {
    found.push(finding('claude', 'broken', `${name}: there is no claude.`, 'Install Claude Code there.'));
  } else if (here.claude !== undefined && here.claude !== claudeVersion) {
    const message = `${name}: it has claude ${claudeVersion}, but this machine has ${here.claude}.`;
    found.push(
      finding(
        'claude',
        'warning',
        message,
        `Install the same version there: npm i -g @anthropic-ai/claude-code@${here.claude}`,
      ),
    );
  }
  return found;
}

/** Names reported by a host are used in commands only if they are valid. */
function isName(text: string | undefined): text is string {
  return text !== undefined && plainNamePattern.test(text);
}

function loginFindings({ name, login = 'NAME', loginWarning, loginTrouble }: FleetHost, here: Here): Finding[] {
  const found: Finding[] = [];
  if (loginWarning !== undefined) {
    const send = [...here.update(name), '--login', isName(login) ? login : 'NAME'];
    const message = `${name}: its login cannot be used. ${loginWarning}`;
    found.push(finding('login', 'broken', message, advise('Send one with', send)));
  }
  if (loginTrouble !== undefined) {
    const message = `${name}: its login was refused in a session, so it gets no sessions. ${loginTrouble}`;
    const next = advise('Change its login, or retry with', ['host', 'resume', name]);
    found.push(finding('login', 'broken', message, next));
  }
  return found;
}

function diskFindings({ name, freeDiskBytes: freeBytes, isFull = false }: FleetHost): Finding[] {
  if (freeBytes === undefined || freeBytes >= freeBytesLow) return [];
  const stops = isFull ? ', so it gets no sessions' : '';
  const message = `${name}: only ${Math.floor(freeBytes / mebibyte)} MiB are free on its disk${stops}.`;
  const isFine = freeBytes >= freeBytesMin && !isFull;
  return [finding('disk', isFine ? 'warning' : 'broken', message, 'Free some space there.')];
}

function slotFindings({ name, slots, used, isDrained }: FleetHost): Finding[] {
  if (isDrained) {
    const next = advise('Resume it with', ['host', 'resume', name]);
    return [finding('slots', 'warning', `${name}: it is draining and takes no more sessions.`, next)];
  }
  if (used < slots) return [];
  const message = `${name}: all of its ${plural(slots, 'slot')} are in use.`;
  return [finding('slots', 'warning', message, see('host', 'list'))];
}
