/** Where the agent of a machine begins and ends: `host serve`. */
import { type Abilities, abilitiesIn } from '../../claude/abilities.ts';
import { findClaude } from '../../claude/launch/program.ts';
import { versionOf } from '../../claude/launch/program-file.ts';
import { advise } from '../../core/advice.ts';
import { fail, ok, type Result } from '../../core/failure.ts';
import { ownCommand } from '../../world/own-program.ts';
import type { World } from '../../world/world.ts';
import { type HostConfig, readHost } from '../fleet/fleet-files.ts';
import { fleetPaths } from '../fleet/fleet-paths.ts';
import { loginNames } from '../fleet/login-files.ts';
import { FleetRedis } from '../fleet/redis.ts';
import { listHosts } from '../fleet/registry.ts';
import { type HostAbilities, wireVersion } from '../fleet/wire.ts';
import { LocalHost } from '../local-host.ts';
import { Agent } from './agent.ts';
import type { AgentContext, ChosenProgram } from './context.ts';
import { isGuarded } from './lease-file.ts';
import { uptimeMs } from './uptime.ts';

export interface ServeOptions {
  /** The data root. */
  readonly root: string;
  readonly callerEnv: Readonly<Record<string, string | undefined>>;
  readonly packageRoot: string;
  /** Of this program. */
  readonly version: string;
  /** What a trial of the claude in use has shown; absent = what it says itself. */
  readonly abilities?: (program: string) => Abilities;
  /** Starts `serveGuard` as a process of its own, which outlives this one. */
  readonly startGuard: () => void;
  /** Calls what it is given once this process is told to end. */
  readonly onSignal: (action: () => void) => void;
  /** One line for people, on stderr. */
  readonly tell: (line: string) => void;
}

/**
 * Works for others until it is told to end; what runs then works on, for the next agent, or until its lease is over.
 * Fails with `usage` where the machine belongs to no fleet, with `busy` where an agent runs already.
 */
export async function serveHost(world: World, options: ServeOptions): Promise<Result<void>> {
  const { root, callerEnv, packageRoot, onSignal, tell, startGuard } = options;
  const paths = fleetPaths(root);
  const read = readHost(world.files, root);
  if (!read.ok) return read;
  const config = read.value;
  if (config === undefined) {
    const next = advise('Get the join line from whoever has made the fleet', ['host', 'join', 'LINE']);
    return fail('usage', 'This machine belongs to no fleet.', next);
  }
  try {
    uptimeMs(world.files);
  } catch {
    return fail('usage', 'A machine of a fleet has to run Linux.', 'Use another machine.');
  }
  for (const folder of [paths.slots, paths.repositories, paths.work]) world.files.makeFolder(folder);
  const holder = { identity: world.machine.self, runId: world.random.uuid() };
  const lock = world.locks.tryLock(paths.agentLock, holder);
  if (lock === null) return fail('busy', 'An agent runs on this machine already.', 'One is enough: leave it.');
  const redis = await FleetRedis.open(world, config);
  if (!redis.ok) {
    lock.release();
    return redis;
  }
  const home = homeOf(world, root);
  const free = await checkName(redis.value, config, home);
  if (!free.ok) {
    redis.value.close();
    lock.release();
    return free;
  }
  const claude = () => chooseClaude(world, options);
  const context: Omit<AgentContext, 'noteLeases'> = {
    ...{ world, config, root, paths, home, packageRoot, tell, claude },
    redis: redis.value,
    host: new LocalHost(world),
    git: { world, env: callerEnv },
    env: callerEnv,
    bun: ownCommand('main').program,
    hook: ownCommand('hook', packageRoot),
    isGuarded: () => isGuarded(world, paths),
  };
  const agent = new Agent(context, { startGuard, abilities: () => abilitiesOf(world, options, claude) });
  const told = Promise.withResolvers<void>();
  onSignal(told.resolve);
  const working = agent.run();
  try {
    await Promise.race([told.promise, working]);
  } finally {
    await agent.close();
    lock.release();
  }
  return ok(undefined);
}

/** Tells machines apart that were given the same name. */
export function homeOf({ machine }: World, root: string): string {
  return `${machine.bootId} ${root}`;
}

/** Two machines of one name would take each other's messages. What is not known now is no reason to wait. */
export async function checkName(
  redis: FleetRedis,
  { name, leaseMs }: Pick<HostConfig, 'name' | 'leaseMs'>,
  home: string,
): Promise<Result<void>> {
  const hosts = await listHosts(redis);
  const other = hosts.ok ? hosts.value.find((host) => host.name === name) : undefined;
  if (other?.home === undefined || other.home === home || other.silentMs > leaseMs) return ok(undefined);
  const next = advise('Give this one another name', ['host', 'join', 'LINE', '--name', 'NAME']);
  return fail('duplicate', `Another machine of the fleet is called ${name}, and works.`, next);
}

const helpTimeoutMs = 20_000;

async function chooseClaude(
  world: World,
  { callerEnv, packageRoot, abilities }: ServeOptions,
): Promise<Result<ChosenProgram>> {
  const found = findClaude(world, callerEnv, { packageRoot });
  if (!found.ok) return found;
  const { program } = found.value;
  const version = await versionOf(world, program, callerEnv);
  if (!version.ok) return version;
  if (abilities !== undefined) return ok({ program, version: version.value, can: abilities(program) });
  const env = { PATH: callerEnv.PATH ?? '', HOME: callerEnv.HOME ?? '', DISABLE_AUTOUPDATER: '1' };
  const help = await world.processes.run({ program, args: ['--help'], cwd: '/', env, timeoutMs: helpTimeoutMs });
  return ok({ program, version: version.value, can: help.ok ? abilitiesIn(help.value.stdout) : {} });
}

async function abilitiesOf(
  world: World,
  { root, version }: ServeOptions,
  claude: () => Promise<Result<ChosenProgram>>,
): Promise<Result<HostAbilities>> {
  const chosen = await claude();
  if (!chosen.ok) return chosen;
  const { can } = chosen.value;
  return ok({
    wire: wireVersion,
    version,
    claudeVersion: chosen.value.version,
    forwardsSubagents: can.forwardsSubagents === true,
    limitsUntrusted: can.untrusted === true,
    limitsMemory: can.toolMemory === true,
    logins: loginNames(world.files, root),
  });
}
