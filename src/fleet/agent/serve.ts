/** `host serve`: start and end of a host's agent. */
import { advise } from '../../core/advice.ts';
import { fail, ok, type Result } from '../../core/failure.ts';
import { ownCommand } from '../../system/own-program.ts';
import type { World } from '../../system/world.ts';
import { fleetPaths, type HostConfig, readHost } from '../fleet-files.ts';
import { loginKey } from '../login-files.ts';
import type { FleetEngine, OpenEngine } from '../redis.ts';
import { FleetRedis } from '../redis.ts';
import { listHosts } from '../registry.ts';
import { wireVersion } from '../wire.ts';
import { Agent, type AgentAbilities } from './agent.ts';
import type { ChosenProgram, OuterContext } from './context.ts';
import { isGuarded, uptimeMs } from './guard.ts';

export interface ServeOptions {
  readonly root: string;
  readonly callerEnv: Readonly<Record<string, string | undefined>>;
  readonly packageRoot: string;
  readonly version: string;
  /** The claude to use now, with its check result. Fails when none may be used. */
  readonly claude: () => Promise<Result<ChosenProgram>>;
  readonly claudeVersion: () => Promise<string>;
  readonly checkLogin: () => Promise<string | undefined>;
  readonly startGuard: () => void;
  readonly onSignal: (action: () => void) => void;
  readonly openEngine?: OpenEngine;
  readonly tell: (line: string) => void;
}

/** Fails with `usage` when the host belongs to no fleet, with `busy` when an agent is already running. */
export async function serveHost(world: World, options: ServeOptions): Promise<Result<void>> {
  const { root, callerEnv, packageRoot, onSignal, tell, startGuard, claude } = options;
  const paths = fleetPaths(root);
  const read = readHost(world.files, root);
  if (!read.ok) return read;
  const config = read.value;
  if (config === undefined) {
    const next = advise('Get the join line from the owner of the fleet', ['host', 'join', 'LINE']);
    return fail('usage', 'This host belongs to no fleet.', next);
  }
  try {
    uptimeMs(world.files);
  } catch {
    return fail('usage', 'A host of a fleet has to run Linux.', 'Use another host.');
  }
  for (const folder of [paths.slots, paths.repositories, paths.work]) world.files.makeFolder(folder);
  const holder = { identity: world.machine.self, runId: world.random.uuid() };
  const lock = world.locks.tryLock(paths.agentLock, holder);
  if (lock === null) return fail('busy', 'An agent runs on this host already.', 'One is enough: leave it.');
  const engine = await (options.openEngine ?? FleetRedis.open)(world, config);
  if (!engine.ok) {
    lock.release();
    return engine;
  }
  const home = homeOf(world, root);
  const free = await checkName(engine.value, config, home);
  if (!free.ok) {
    engine.value.close();
    lock.release();
    return free;
  }
  const context: OuterContext = {
    ...{ world, config, root, paths, home, packageRoot, tell, claude },
    engine: engine.value,
    git: { world, env: callerEnv },
    env: callerEnv,
    bun: ownCommand('main').program,
    hook: ownCommand('hook', packageRoot),
    isGuarded: () => isGuarded(world, paths),
  };
  const agent = new Agent(context, {
    startGuard,
    checkLogin: options.checkLogin,
    abilities: () => abilitiesOf(world, options, { login: config.login, salt: holder.runId }),
  });
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

/** Distinguishes hosts with the same name. */
export function homeOf({ machine }: World, root: string): string {
  return `${machine.bootId} ${root}`;
}

/** Two hosts with one name would take each other's messages. An unknown state is no reason to wait. */
export async function checkName(
  engine: FleetEngine,
  { name, leaseMs }: Pick<HostConfig, 'name' | 'leaseMs'>,
  home: string,
): Promise<Result<void>> {
  const hosts = await listHosts(engine);
  const other = hosts.ok ? hosts.value.find((host) => host.name === name) : undefined;
  if (other?.home === undefined || other.home === home || other.silentMs > leaseMs) return ok(undefined);
  const next = advise('Give this one another name', ['host', 'join', 'LINE', '--name', 'NAME']);
  return fail('duplicate', `Another host of the fleet is called ${name}, and works.`, next);
}

/** `salt`: a new one per agent, so that a host that has joined again is tried again. */
async function abilitiesOf(
  world: World,
  options: ServeOptions,
  { login, salt }: { readonly login: string | undefined; readonly salt: string },
): Promise<AgentAbilities> {
  const { root, version, claude, callerEnv: agentEnv } = options;
  const chosen = await claude();
  const claudeVersion = chosen.ok ? chosen.value.version : await options.claudeVersion();
  const abilities = {
    wire: wireVersion,
    version,
    claudeVersion,
    loginKey: loginKey(world.files, { root, agentEnv, ownLogin: login }, salt),
  };
  return { abilities, ...(chosen.ok ? {} : { refusal: chosen.failure.message }) };
}
