/** Starts and stops the agent of this host: a unit of `systemd --user`, or else a background process. */
import { isAbsolute, join } from 'node:path';
import { defined } from '../../core/defined.ts';
import { fail, ok, type Result } from '../../core/failure.ts';
import { fleetPaths } from '../../fleet/fleet-files.ts';
import { systemFailure } from '../../store/system-failure.ts';
import { delay } from '../../system/clock.ts';
import { launcherIn, ownCommand } from '../../system/own-program.ts';
import type { RunningProcess, SignalName, World } from '../../system/world.ts';
import type { AppContext } from '../app-context.ts';
import { lastLine } from './ssh.ts';

const commandMs = 30_000;
const pollMs = 50;
const endTimeoutMs = 10_000;

export const agentUnit = 'claude-code-agent-host.service';

/** Variables of `host join` that the agent needs, because a systemd unit starts with an almost empty environment. */
const keptVariables = new RegExp(
  [
    /^(?:PATH|LANG|LC_\w+|TZ|XDG_\w+_HOME|CLAUDE_CODE_AGENT_(?:HOME|CLAUDE|BUN))$/,
    /^(?:HTTPS?_PROXY|NO_PROXY|https?_proxy|no_proxy|NODE_EXTRA_CA_CERTS|SSL_CERT_\w+)$/,
  ]
    .map(({ source }) => source)
    .join('|'),
);

export function unitText({ env, packageRoot }: Pick<AppContext, 'env' | 'packageRoot'>): string {
  const variables = Object.entries(env).filter(([name, value]) => keptVariables.test(name) && value !== undefined);
  const environment = variables.map(([name, value]) => `Environment=${quoted(`${name}=${value}`)}`);
  const command = [quoted(launcherIn(packageRoot), true), ...agentWords].join(' ');
  return `[Unit]
Description=claude-code-agent: agent of a fleet host
StartLimitIntervalSec=0

[Service]
ExecStart=${command}
Restart=always
RestartSec=2
# Sessions and the guard outlive the agent; the next agent adopts them.
KillMode=process
# Sessions may run in control groups of their own.
Delegate=yes
${environment.join('\n')}

[Install]
WantedBy=default.target
`;
}

const agentWords = ['host', 'serve'];

/** Quotes a word for a unit file, where `%` is special, as is `$` in command lines. */
function quoted(text: string, isCommand = false): string {
  const plain = text
    .replace(/[\\"]/g, '\\$&')
    .replaceAll('%', '%%')
    .replace(/[\n\r]/g, ' ');
  return `"${isCommand ? plain.replaceAll('$', '$$$$') : plain}"`;
}

export type Started =
  | { readonly as: 'unit'; readonly lingers: boolean }
  | { readonly as: 'process'; readonly log: string; readonly isOver: () => boolean };

/** Restarts the agent. */
export async function startAgent(context: AppContext, root: string): Promise<Result<Started>> {
  const stopped = await stopAgent(context, root);
  if (!stopped.ok) return stopped;
  const { world } = context;
  if (!(await hasUserUnits(context))) return startInBackground(context, root);
  const folder = unitFolder(context);
  try {
    world.files.makeFolder(folder, 'project');
    world.files.writeAtomic(join(folder, agentUnit), unitText(context));
  } catch (error) {
    return { ok: false, failure: systemFailure(folder, error) };
  }
  for (const words of [['daemon-reload'], ['enable', '--now', agentUnit]]) {
    const done = await systemctl(context, ...words);
    if (!done.ok) return done;
  }
  return ok({ as: 'unit', lingers: await lingers(context) });
}

/** Set for an agent that its guard restarted, because there is no systemd. */
export const restartedVariable = 'CLAUDE_CODE_AGENT_RESTARTED';

/** Starts the agent as a background process that appends to its log. */
export function spawnAgent({ world, env, packageRoot }: AppContext, root: string): Result<RunningProcess> {
  const log = logPath(root);
  const { program, args } = ownCommand('main', packageRoot);
  const own = { ...defined(env), [restartedVariable]: '1' } as Record<string, string>;
  const files = { stdoutFile: log, stderrFile: log };
  return world.processes.spawn({ program, args: [...args, ...agentWords], cwd: '/', env: own, ...files });
}

const logPath = (root: string): string => join(fleetPaths(root).folder, 'host.log');

function startInBackground(context: AppContext, root: string): Result<Started> {
  const { files } = context.world;
  const log = logPath(root);
  files.makeFolder(fleetPaths(root).folder);
  files.remove(log);
  const spawned = spawnAgent(context, root);
  if (!spawned.ok) return spawned;
  let isOver = false;
  spawned.value.onExit(() => {
    isOver = true;
  });
  return ok({ as: 'process', log, isOver: () => isOver });
}

/** Ends the agent and the guard, and removes the unit. Sessions continue. */
export async function stopAgent(context: AppContext, root: string): Promise<Result<void>> {
  const { world } = context;
  const unit = join(unitFolder(context), agentUnit);
  if (world.files.info(unit) !== null && (await hasUserUnits(context))) {
    const disabled = await systemctl(context, 'disable', '--now', agentUnit);
    if (!disabled.ok) return disabled;
  }
  world.files.remove(unit);
  const { agentLock, guardLock } = fleetPaths(root);
  for (const lock of [agentLock, guardLock]) {
    const isGone = await endHolder(world, lock);
    if (!isGone) {
      const pid = world.locks.holder(lock)?.identity.pid;
      return fail('internal', `Process ${pid}, which holds ${lock}, did not end.`, `Kill it with: kill -9 ${pid}`);
    }
  }
  return ok(undefined);
}

async function endHolder(world: World, lock: string): Promise<boolean> {
  for (const signal of ['SIGTERM', 'SIGKILL'] as const satisfies readonly SignalName[]) {
    const holder = world.locks.holder(lock);
    if (holder === null) return true;
    world.processes.signal(holder.identity, signal);
    for (let waited = 0; waited < endTimeoutMs; waited += pollMs) {
      if (!world.processes.isAlive(holder.identity)) break;
      await delay(world.clock, pollMs);
    }
  }
  return world.locks.holder(lock) === null;
}

function unitFolder({ env }: Pick<AppContext, 'env'>): string {
  const { XDG_CONFIG_HOME: config = '', HOME: home = '/' } = env;
  return join(isAbsolute(config) ? config : join(home, '.config'), 'systemd', 'user');
}

async function hasUserUnits(context: AppContext): Promise<boolean> {
  return (await systemctl(context, 'show-environment')).ok;
}

async function lingers(context: AppContext): Promise<boolean> {
  const shown = await run(context, 'loginctl', ['show-user', '--property=Linger', '--value']);
  // If loginctl fails, do not suggest the setting.
  return !(shown.ok && shown.value.stdout.trim() === 'no');
}

async function systemctl(context: AppContext, ...words: string[]): Promise<Result<void>> {
  const ran = await run(context, 'systemctl', ['--user', ...words]);
  if (ran.ok && ran.value.exitCode === 0) return ok(undefined);
  const reason = ran.ok ? lastLine(ran.value.stderr) : ran.failure.message;
  return fail(
    'spawn-failed',
    `systemctl --user ${words.join(' ')} failed: ${reason}.`,
    'Fix what it reports, or use --foreground.',
  );
}

function run({ world, env }: AppContext, program: string, args: readonly string[]) {
  const given = defined(env) as Record<string, string>;
  return world.processes.run({ program, args, cwd: '/', env: given, timeoutMs: commandMs });
}
