/**
 * A job on three hosts, each a set of namespaces with its own sshd, with one fault. The program is the npm package, all
 * steps are user commands, and the real claude works for a scripted API.
 */
import {
  appendFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import type { GroupEvent } from '../../src/core/event.ts';
import { sessionUuid } from '../../src/core/id.ts';
import type { GroupState } from '../../src/core/state.ts';
import { fleetPaths } from '../../src/fleet/fleet-files.ts';
import type { RehearsalScript, Step } from '../../src/rehearsal/script.ts';
import { type ScriptedApi, startScriptedApi } from '../../src/rehearsal/scripted-api.ts';
import { readLog } from '../../src/store/event-log.ts';
import { loadGroup } from '../../src/store/group-store.ts';
import { groupPaths } from '../../src/store/paths.ts';
import { createRealWorld } from '../../src/system/real-world.ts';
import { modelOfKnownPrice } from './claude/rig.ts';
import { User } from './cli/user.ts';
import { pinnedClaude, type StartedCommand } from './cli.ts';
import { type CuttableProxy, startProxy } from './cuttable-proxy.ts';
import { HostNetwork, NamespacedHost } from './fleet/namespaced-host.ts';
import { git, Repository } from './git/repository.ts';
import { type RedisServer, startRedis } from './redis-server.ts';
import { noteTried } from './tried.ts';

/** Name, repository and dependencies: four waves. */
export const job = [
  ['one', 'api', []],
  ['two', 'web', []],
  ['three', 'big', []],
  ['four', 'api', ['one', 'two']],
  ['five', 'big', ['two', 'three']],
  ['six', 'web', ['three', 'four']],
  ['seven', 'api', ['four', 'five']],
  ['eight', 'web', ['six', 'seven']],
] as const;
export const repositories = ['api', 'web', 'big'] as const;
/** The sessions of the second wave, which are in the middle of a tool when the fault happens. */
const held = ['four', 'five'] as const;
type HeldName = (typeof held)[number];

const lookMs = 100;
/** Longer than it takes to give up a lost host, on a busy machine. */
const patienceMs = 300_000;

export async function untilTrue(condition: () => boolean | Promise<boolean>, what: string): Promise<void> {
  const giveUpAt = performance.now() + patienceMs;
  while (!(await condition())) {
    if (performance.now() > giveUpAt) throw new Error(`Waited ${patienceMs / 1_000} s in vain until ${what}.`);
    await Bun.sleep(lookMs);
  }
}

export interface FleetFixtureOptions {
  readonly leaseSeconds: number;
  /** Size of a disk for the data folder of each host; absent = they share that of the tests. */
  readonly diskBytes?: number;
  /** Size of the history of the repository `big`. */
  readonly bigBytes: number;
}

const world = createRealWorld();

export class FaultyFleet {
  readonly user: User;
  readonly hosts: readonly NamespacedHost[];
  readonly redis: RedisServer;
  readonly api: ScriptedApi;
  readonly #names: Map<string, string>;
  readonly #network: HostNetwork;
  readonly #proxy: CuttableProxy;
  readonly #marks: string;
  group = '';
  runner: StartedCommand | null = null;

  private constructor(user: User, network: HostNetwork, hosts: readonly NamespacedHost[], rest: Rest) {
    [this.user, this.#network, this.hosts] = [user, network, hosts];
    [this.redis, this.api, this.#proxy, this.#marks, this.#names] = rest;
  }

  /** `program`: what the user has installed. */
  static async open(program: string, options: FleetFixtureOptions): Promise<FaultyFleet> {
    const user = new User({ ANTHROPIC_API_KEY: 'test-key', CLAUDE_CODE_AGENT_CLAUDE: pinnedClaude() });
    user.program = program;
    const marks = join(user.folder, 'marks');
    mkdirSync(marks);
    const network = new HostNetwork();
    const { address } = network;
    const bind = [`bind 127.0.0.1 ${address}`, 'protected-mode no', 'appendonly yes', 'appendfsync always'];
    const redis = await startRedis(user.folder, bind);
    const names = new Map<string, string>();
    const api = startScriptedApi({ script: scriptOf(marks), nameOf: (id) => names.get(id) });
    const proxy = await startProxy(api.port, address);
    user.env.ANTHROPIC_BASE_URL = `http://${address}:${proxy.port}`;
    const programs = { claude: pinnedClaude(), bun: process.execPath };
    const hosts = ['gpu1', 'gpu2', 'gpu3'].map(
      (name) => new NamespacedHost(name, join(user.folder, 'hosts'), network, { programs, ...options }),
    );
    const fleet = new FaultyFleet(user, network, hosts, [redis, api, proxy, marks, names]);
    try {
      await fleet.#setUp(options);
    } catch (error) {
      await fleet.close();
      throw error;
    }
    return fleet;
  }

  async #setUp({ leaseSeconds, bigBytes }: FleetFixtureOptions): Promise<void> {
    const { user, hosts } = this;
    const bin = join(user.folder, 'ssh-bin');
    mkdirSync(bin);
    for (const host of hosts) await host.switchOn();
    const config = join(bin, 'config');
    writeFileSync(config, hosts.map(({ sshd }) => sshd.config).join('\n'));
    const ssh = `#!/bin/sh\nexec '${Bun.which('ssh')}' -F '${config}' "$@"\n`;
    writeFileSync(join(bin, 'ssh'), ssh, { mode: 0o755 });
    symlinkSync(process.execPath, join(bin, 'bun'));
    user.env.PATH = `${bin}:${user.env.PATH}`;
    const url = `redis://${this.#network.address}:${this.redis.port}`;
    await user.ok('fleet', 'init', '--redis', url, '--insecure', '--lease', String(leaseSeconds));
    await Promise.all(hosts.map((host) => this.addHost(host)));
    for (const name of repositories) makeRepository(user.project(name), name === 'big' ? bigBytes : 0);
  }

  addHost(host: NamespacedHost): Promise<string> {
    noteTried(fleetPaths(host.inside(host.root)).folder, pinnedClaude());
    return this.user.ok('host', 'add', host.name, '--ssh', host.sshd.destination, '--slots', '2', '--login', 'team-a');
  }

  /** Defines the job and starts it. */
  async begin(): Promise<void> {
    const { user } = this;
    this.group = await user.ok('group', 'create', 'job', '--max-budget-usd', '50', '--where', 'fleet');
    const common = ['--isolate', 'worktree', '--allowed-tools', 'Bash', '--model', modelOfKnownPrice];
    for (const [name, repository, after] of job) {
      const { session } = await user.json<{ session: string }>(
        ...['session', 'add', this.group, '--name', name, '--project', user.project(repository), ...common],
        ...['--prompt', `Do ${name}.`, '--accept', acceptance(name, this.#marks)],
        ...after.flatMap((one) => ['--depends-on', one]),
      );
      this.#names.set(sessionUuid(session as never), name);
    }
    this.startRunner();
  }

  startRunner(): void {
    this.runner = this.user.start('group', 'run', this.group, '--output', 'text');
  }

  /** Resolves when a runner has ended by itself, with its exit code and output. */
  async end(): Promise<{ readonly code: number | null; readonly said: string }> {
    if (this.runner === null) throw new Error('there is no runner');
    const ended = await Promise.race([this.runner.finished, Bun.sleep(patienceMs)]);
    if (ended === undefined) throw new Error(`Waited ${patienceMs / 1_000} s in vain until the runner ended.`);
    appendFileSync(join(this.user.folder, 'runner.log'), ended.stdout + ended.stderr);
    return { code: ended.code, said: ended.stdout + ended.stderr };
  }

  /** Both sessions of the second wave are in the middle of a tool. */
  async untilHeld(): Promise<void> {
    await untilTrue(() => held.every((name) => existsSync(join(this.#marks, `${name}.waits`))), 'both sessions work');
  }

  /** The session's tool ends, on whichever host it runs. */
  release(...names: readonly HeldName[]): void {
    for (const name of names) writeFileSync(join(this.#marks, `${name}.go`), '');
  }

  /** The session has done its second step. */
  async untilDone(name: HeldName): Promise<void> {
    await untilTrue(() => existsSync(join(this.#marks, `${name}.done`)), `${name} is done`);
  }

  /** Names of sessions, once for each acceptance. */
  get accepted(): readonly string[] {
    return readFileSync(join(this.#marks, 'accepted'), 'utf8').trim().split('\n');
  }

  get events(): readonly GroupEvent[] {
    const read = readLog(world, groupPaths(this.user.data, this.group as never).events);
    if (!read.ok) throw new Error(read.failure.message);
    return read.value;
  }

  get state(): GroupState {
    const loaded = loadGroup(world, this.user.data, this.group as never);
    if (!loaded.ok) throw new Error(loaded.failure.message);
    return loaded.value;
  }

  /** The host on which the session runs. */
  hostOf(name: HeldName): NamespacedHost {
    const session = [...this.state.sessions.values()].find(({ definition }) => definition.name === name);
    const at = session?.state.status === 'running' ? session.state.attempt.place?.host : undefined;
    const host = this.hosts.find((one) => one.name === at);
    if (host === undefined) throw new Error(`${name} works nowhere`);
    return host;
  }

  /** Copies the files of Redis, to be restored later. */
  copyRedis(): void {
    cpSync(join(this.redis.folder, 'appendonlydir'), join(this.user.folder, 'redis as it was'), { recursive: true });
  }

  putRedisBack(): void {
    const log = join(this.redis.folder, 'appendonlydir');
    rmSync(log, { recursive: true });
    cpSync(join(this.user.folder, 'redis as it was'), log, { recursive: true });
  }

  /** The history of the run, for the reader of a failure. */
  story(): string {
    const lines = this.events.map(({ at, type, ...rest }) => `${at} ${type} ${JSON.stringify(rest).slice(0, 300)}`);
    const logs = this.hosts.map((host) => join(this.user.folder, 'hosts', host.name, 'there'));
    const told = logs.map((home) => {
      const log = join(home, '.local', 'claude-code-agent', 'fleet', 'host.log');
      return `${log}:\n${existsSync(log) ? readFileSync(log, 'utf8') : ''}`;
    });
    const said = join(this.user.folder, 'runner.log');
    return [...lines, ...told, existsSync(said) ? readFileSync(said, 'utf8') : ''].join('\n');
  }

  async close(): Promise<void> {
    this.runner?.kill('SIGKILL');
    for (const host of this.hosts) await host.switchOff();
    this.#network.remove();
    this.#proxy.close();
    await this.api.stop();
    await this.redis.kill();
    this.user.remove();
  }
}

type Rest = readonly [RedisServer, ScriptedApi, CuttableProxy, string, Map<string, string>];

/** Succeeds once all inputs are there, and records each success. */
function acceptance(name: string, marks: string): string {
  return `test -s ${name}-1.txt && test -s ${name}-2.txt && echo ${name} >>'${join(marks, 'accepted')}'`;
}

/** Each session commits twice; those of the second wave wait in between. */
function scriptOf(marks: string): RehearsalScript {
  const bash = (command: string): Step => ({ text: 'Working.', tool: 'Bash', input: { command } });
  const commit = (name: string, n: number) =>
    bash(`echo ${n} >${name}-${n}.txt && git add --all && git commit -qm '${name} ${n}'`);
  const mark = (name: string, what: string) => `'${join(marks, `${name}.${what}`)}'`;
  const wait = (name: string) =>
    bash(`touch ${mark(name, 'waits')}; until [ -e ${mark(name, 'go')} ]; do sleep 0.1; done`);
  const sessions = job.map(([name]) => {
    const isHeld = held.some((one) => one === name);
    const steps = [
      commit(name, 1),
      ...(isHeld ? [wait(name)] : []),
      commit(name, 2),
      ...(isHeld ? [bash(`touch ${mark(name, 'done')}`)] : []),
      { text: `${name} is done.` },
    ];
    return [name, { steps }] as const;
  });
  return { version: 1, sessions: Object.fromEntries(sessions) };
}

/** Adds a file of this many incompressible bytes to the history only. */
function makeRepository(folder: string, bytes: number): void {
  const repository = new Repository(folder);
  for (const [key, value] of [
    ['user.name', 'Team'],
    ['user.email', 'team@example.org'],
    ['core.compression', '0'],
  ] as const)
    git(folder, 'config', key, value);
  repository.commit({ 'README.md': 'A project.\n' });
  if (bytes === 0) return;
  const path = join(folder, 'large.bin');
  const filled = Bun.spawnSync(['sh', '-c', 'head -c "$1" /dev/urandom >"$2"', 'sh', String(bytes), path]);
  if (!filled.success) throw new Error(filled.stderr.toString());
  repository.commit({});
  repository.commit({ 'large.bin': null });
}
