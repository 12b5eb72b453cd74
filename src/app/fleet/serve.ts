/** `host serve`: runs the agent of this host, or its guard, until a signal. */
import { advise, shellWord } from '../../core/advice.ts';
import { fail, ok, type Result } from '../../core/failure.ts';
import { Agent, type AgentAbilities } from '../../fleet/agent/agent.ts';
import { isGuarded, serveGuard, uptimeMs } from '../../fleet/agent/guard.ts';
import type { ChosenProgram, OuterContext } from '../../fleet/agent/prepare.ts';
import { fleetPaths, type HostConfig, readHost } from '../../fleet/fleet-files.ts';
import { environmentWith, loginKey } from '../../fleet/login-files.ts';
import { type FleetEngine, FleetRedis, type OpenEngine } from '../../fleet/redis.ts';
import { listHosts } from '../../fleet/registry.ts';
import { wireVersion } from '../../fleet/wire.ts';
import { launcherIn, ownCommand } from '../../system/own-program.ts';
import { spawnDetached } from '../../system/terminal.ts';
import type { World } from '../../system/world.ts';
import type { AppContext } from '../app-context.ts';
import { CheckGate, type ClaudeCheckOptions } from '../claude-check/gate.ts';
import { onSignal } from '../signals.ts';
import { restartedVariable, spawnAgent } from './agent-service.ts';

export interface HostServeOptions {
  readonly isGuard: boolean;
  readonly version: string;
}

/** Fails with `usage` if the host is not in a fleet, and with `busy` if an agent is already running. */
export async function serveFleet(
  context: AppContext,
  root: string,
  { isGuard, version }: HostServeOptions,
): Promise<Result<void>> {
  const { world, env, packageRoot } = context;
  const tell = (line: string) => context.notes.line(line);
  let unsubscribe = (): void => {};
  let closeClaude = async (): Promise<void> => {};
  const callbacks = {
    onSignal: (action: () => void) => {
      unsubscribe = onSignal(world.clock, action);
    },
  };
  try {
    if (isGuard) {
      const next = [launcherIn(packageRoot), 'host', 'serve', '--guard'].map(shellWord).join(' ');
      const startShell = (script: string, variables: Readonly<Record<string, string>>) => {
        const given = { ...env, ...variables, CCA_NEXT_GUARD: next };
        spawnDetached({ program: 'sh', args: ['-c', script] }, { args: [], cwd: '/', env: given });
      };
      const startAgent = () => void spawnAgent(context, root);
      const again = env[restartedVariable] === undefined ? {} : { startAgent };
      return await serveGuard(world, { root, tell, startShell, ...again, ...callbacks });
    }
    const startGuard = () =>
      spawnDetached(ownCommand('main', packageRoot), { args: ['host', 'serve', '--guard'], cwd: '/', env });
    const claude = hostClaude(context, root);
    closeClaude = claude.close;
    const own = {
      checkLogin: async () => checkOwnLogin(context, root, await claude.choose()),
      root,
      callerEnv: env,
      packageRoot,
      version,
      claude: claude.choose,
      claudeVersion: claude.version,
    };
    return await serveHost(world, { ...own, startGuard, tell, ...callbacks });
  } finally {
    unsubscribe();
    await closeClaude();
  }
}

// The claude of a host, checked like that of a local run, repeatedly.

/** A refused claude is looked at again after this time; a check that could not be made takes seconds. */
const againMs = 60_000;

export function hostClaude(context: AppContext, root: string, check?: ClaudeCheckOptions['check']) {
  const { world, env, packageRoot, notes } = context;
  const host = readHost(world.files, root);
  const paying = environmentWith(world.files, root, env, host.ok ? host.value?.login : undefined);
  // Each session reports an unreadable login itself.
  const caller = paying.ok ? paying.value : env;
  const gate = new CheckGate({ world, env: caller, packageRoot, notes }, { root: fleetPaths(root).folder, check });
  let refused: { readonly atMs: number; readonly answer: Result<never> } | null = null;
  const choose = async (): Promise<Result<ChosenProgram>> => {
    const nowMs = world.clock.now();
    if (refused !== null && Math.abs(nowMs - refused.atMs) < againMs) return refused.answer;
    const admitted = await gate.choose(host.ok ? host.value?.acceptClaude : undefined);
    const isRefused = !admitted.ok && admitted.failure.reason === 'claude-unproven';
    refused = isRefused ? { atMs: nowMs, answer: admitted } : null;
    return admitted;
  };
  const version = async (): Promise<string> => {
    const there = await gate.version();
    return there.ok ? there.value : '';
  };
  return { choose, version, close: () => gate.close() };
}

/** Why sessions on this host cannot log in, as far as known without a request. */
async function checkOwnLogin(
  { world, env }: Pick<AppContext, 'world' | 'env'>,
  root: string,
  claude: Result<ChosenProgram>,
): Promise<string | undefined> {
  const host = readHost(world.files, root);
  if (!claude.ok || !host.ok) return undefined;
  const paying = environmentWith(world.files, root, env, host.value?.login);
  const probed = paying.ok
    ? await (await import('../check/machine.ts')).probeLogin({ world, env: paying.value }, claude.value.program)
    : paying;
  return probed.ok ? undefined : probed.failure.message;
}

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
  const home = homeOf(world, root);
  const free = engine.ok ? await checkName(engine.value, config, home) : engine;
  if (!engine.ok || !free.ok) {
    if (engine.ok) engine.value.close();
    lock.release();
    return free as Result<never>;
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
