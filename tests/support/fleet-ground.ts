/**
 * A group that runs with a fleet: a real redis-server, and hosts with an agent and a guard each, as processes with
 * their own data roots. Their claude is set by the environment.
 */

import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { attemptMark } from '../../src/claude/launch/environment.ts';
import type { GroupConfig, SessionDefinition } from '../../src/core/group.ts';
import { fleetPaths, writeFleet, writeHost } from '../../src/fleet/fleet-files.ts';
import { loginText } from '../../src/fleet/login-files.ts';
import { FleetRedis } from '../../src/fleet/redis.ts';
import { newFleetKeys } from '../../src/fleet/seal.ts';
import { createRealWorld } from '../../src/system/real-world.ts';
import { until } from './cli.ts';
import { Repository } from './git/repository.ts';
import { type GroupFixture, makeGroup, type SessionSketch } from './group-fixture.ts';
import { kill } from './kill.ts';
import { type RedisServer, startRedis } from './redis-server.ts';

const world = createRealWorld();

/** The program of hosts, run from its sources. */
export const machineMain = join(import.meta.dir, 'fleet-machine-main.ts');

/** A host that runs sessions of others. */
export class HostFixture {
  readonly root: string;
  readonly home: string;
  readonly #env: Readonly<Record<string, string>>;
  readonly #main: string;
  readonly #within: readonly string[];
  #agent: Bun.Subprocess | null = null;

  /** `within`: a command prefix that starts a program elsewhere. */
  constructor(
    root: string,
    home: string,
    env: Readonly<Record<string, string>>,
    main = machineMain,
    within: readonly string[] = [],
  ) {
    this.#within = within;
    this.root = root;
    this.home = home;
    this.#env = env;
    this.#main = main;
  }

  /** Undefined when its agent does not run. */
  start(): void {
    if (this.#agent !== null && this.#agent.exitCode === null && this.#agent.signalCode === null) return;
    this.#agent = Bun.spawn([...this.#within, process.execPath, '--no-install', this.#main, 'agent', this.root], {
      env: this.#env,
      stdio: ['ignore', 'ignore', Bun.file(join(this.root, 'agent.stderr'))],
    });
  }

  /** Pid of the agent. */
  get pid(): number {
    return this.#agent?.pid ?? 0;
  }

  async killAgent(signal: NodeJS.Signals = 'SIGKILL'): Promise<void> {
    this.#agent?.kill(signal);
    await this.#agent?.exited;
  }

  get #guard(): number | null {
    return world.locks.holder(fleetPaths(this.root).guardLock)?.identity.pid ?? null;
  }

  async killGuard(): Promise<void> {
    const pid = this.#guard;
    if (pid === null) return;
    kill(pid);
    await until(() => this.#guard !== pid);
  }

  /** The messages of agent and guard. */
  told(): string {
    const logs = ['agent.log', 'guard.log', 'agent.stderr'].map((name) => join(this.root, name)).filter(existsSync);
    return logs.map((path) => readFileSync(path, 'utf8')).join('');
  }

  /** Kills all of it at once, as when the host is switched off; `attemptIds`: its running attempts. */
  async burn(attemptIds: readonly string[]): Promise<void> {
    this.#agent?.kill('SIGKILL');
    const guard = this.#guard;
    if (guard !== null) kill(guard);
    for (const id of attemptIds) for (const { pid } of world.processes.findMarked(attemptMark, id)) kill(pid);
    await this.#agent?.exited;
  }
}

export interface FleetGround {
  readonly group: GroupFixture;
  readonly server: RedisServer;
  readonly machines: Readonly<Record<string, HostFixture>>;
  /** Adds and starts another host. */
  addMachine(name: string, options: MachineOptions): HostFixture;
  /** A connection that the caller closes. */
  redis(): Promise<FleetRedis>;
  close(): Promise<void>;
}

export interface MachineOptions {
  readonly slots?: number;
  readonly labels?: readonly string[];
  /** In addition to the common environment. */
  readonly env?: Readonly<Record<string, string>>;
  /** Port of loopback on which it reaches Redis; absent = its own. */
  readonly redisPort?: number;
  /** Address at which it reaches Redis; absent = loopback. */
  readonly redisAddress?: string;
  /** A command prefix that starts a program elsewhere. */
  readonly within?: readonly string[];
  /** Its program; absent = `machineMain`. */
  readonly main?: string;
}

export interface GroundOptions {
  readonly machines: Readonly<Record<string, MachineOptions>>;
  /** Environment of the agents. */
  readonly env: Readonly<Record<string, string>>;
  /** More environment that depends on the common folder. */
  readonly envOf?: (folder: string) => Readonly<Record<string, string>>;
  /** Creates the agents' claude in the fixture's folder; absent = as the environment says. */
  readonly claude?: (folder: string) => string;
  /** Variables of a login that each host holds; absent = that of the environment. */
  readonly login?: Readonly<Record<string, string>>;
  /** Absent = long enough that a busy machine does not lose it. */
  readonly leaseMs?: number;
  readonly config?: Partial<GroupConfig>;
  readonly files?: Readonly<Record<string, string>>;
  /** Extra lines of the Redis configuration. */
  readonly redis?: readonly string[];
}

/** Sessions work in the repositories of their projects, `app` by default. The agents are started. */
export async function openGround(sketches: readonly SessionSketch[], options: GroundOptions): Promise<FleetGround> {
  const { leaseMs = 10_000, env, config = {}, files = {}, login } = options;
  let projects = '';
  const all = sketches.map((sketch) => {
    const { project = 'app' } = sketch;
    const fields: Partial<SessionDefinition> = {
      isolate: 'worktree',
      get repository() {
        return join(projects, project, '.git');
      },
    };
    return { ...sketch, project, fields: Object.assign(copy(fields), sketch.fields) };
  });
  const group = makeGroup(all, config, {
    beforeSessions: (folder) => {
      projects = join(folder, 'projects');
      for (const name of new Set(['app', ...all.map(({ project }) => project)]))
        new Repository(join(projects, name)).commit({
          'base.txt': 'base\n',
          '.gitignore': 'ignored\n',
          ...files,
        });
    },
  });
  const server = await startRedis(group.folder, options.redis);
  const keys = newFleetKeys();
  const common = { version: 1 as const, redis: server.url, sealingKey: keys.sealingKey, leaseMs };
  const { publicKey, signingKey } = keys;
  written(writeFleet(world.files, group.root, { ...common, publicKey, signingKey }));
  const claude = options.claude?.(group.folder) ?? null;
  const ownEnv = options.envOf?.(group.folder) ?? {};
  const machines: Record<string, HostFixture> = {};
  const addMachine = (name: string, options: MachineOptions): HostFixture => {
    const { slots = 2, labels = [], redisPort = server.port, redisAddress = '127.0.0.1' } = options;
    const root = join(group.folder, `machine ${name}`);
    const home = join(group.folder, `home ${name}`);
    mkdirSync(home, { recursive: true });
    const own = login === undefined ? {} : { login: 'team-a' };
    const redis = `redis://${redisAddress}:${redisPort}`;
    const reached = { ...common, redis, insecure: true, runnerKeys: [publicKey] };
    const codeUrl = fleetPaths(root).repositories;
    const config = { ...reached, name, slots, labels: [...labels], codeUrl, ...own };
    written(writeHost(world.files, root, config));
    if (login !== undefined) keepLogin(root, login);
    const program = { ...ownEnv, ...(claude === null ? {} : { CLAUDE_CODE_AGENT_CLAUDE: claude }) };
    const all = { PATH: process.env.PATH ?? '', HOME: home, ...env, ...program, ...options.env };
    const machine = new HostFixture(root, home, all, options.main, options.within);
    machines[name] = machine;
    machine.start();
    return machine;
  };
  for (const [name, one] of Object.entries(options.machines)) addMachine(name, one);
  return {
    ...{ group, server, machines, addMachine },
    redis: async () => {
      const opened = await FleetRedis.open(world, common);
      if (!opened.ok) throw new Error(opened.failure.message);
      return opened.value;
    },
    close: async () => {
      const attempts = group.events().flatMap((event) => (event.type === 'session_starting' ? [event.attempt.id] : []));
      for (const machine of Object.values(machines)) {
        await machine.burn(attempts);
        await machine.killGuard();
      }
      await server.kill();
      group.remove();
    },
  };
}

function keepLogin(root: string, login: Readonly<Record<string, string>>): void {
  const { logins } = fleetPaths(root);
  mkdirSync(logins, { recursive: true });
  writeFileSync(join(logins, 'team-a.env'), loginText(login), { mode: 0o600 });
}

/** With its getters. */
function copy<T extends object>(value: T): T {
  return Object.defineProperties({}, Object.getOwnPropertyDescriptors(value)) as T;
}

function written(result: { readonly ok: boolean }): void {
  if (!result.ok) throw new Error(`it cannot be written: ${JSON.stringify(result)}`);
}
