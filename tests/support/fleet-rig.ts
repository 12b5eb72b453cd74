/**
 * A fleet of one host on this machine: a real redis-server, an agent and a guard as processes with their own data root,
 * and a runner that sends and receives what a test wants, signed and sealed like a real one.
 */

import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { attemptMark } from '../../src/claude/launch/environment.ts';
import type { GroupId, SessionId } from '../../src/core/group.ts';
import { fleetPaths, type HostConfig, writeHost } from '../../src/fleet/fleet-files.ts';
import { FleetRedis, type SlotLeases, toGroupStream, toHostStream } from '../../src/fleet/redis.ts';
import { listHosts, takesNew } from '../../src/fleet/registry.ts';
import { newFleetKeys, Signer } from '../../src/fleet/seal.ts';
import {
  type AttemptNews,
  type Blob,
  type Order,
  type ParcelFile,
  type SlotCommand,
  type ToGroup,
  unpacked,
} from '../../src/fleet/wire.ts';
import { groupPaths, type SessionPaths, sessionPaths } from '../../src/store/paths.ts';
import { createRealWorld } from '../../src/system/real-world.ts';
import { groupId, sid } from './core-events.ts';
import { kill } from './kill.ts';
import { type RedisServer, startRedis } from './redis-server.ts';
import { basePath, eventually, expectOk, makeTempFolder } from './system/rig.ts';

export const fleetWorld = createRealWorld();

/** Runs its second argument as a shell script; only `--version` and `--help` resemble claude. */
const claude = `#!/bin/sh
case "$1" in
  --version) echo '2.1.331 (Claude Code)' ;;
  --help) echo 'no options' ;;
  run) exec sh -c "$2" ;;
esac
`;

export type Told<S extends AttemptNews['say']> = Extract<AttemptNews, { say: S }>;

interface RigOptions {
  readonly leaseMs?: number;
  readonly slots?: number;
  readonly env?: Readonly<Record<string, string>>;
  readonly redis?: readonly string[];
  readonly config?: Partial<HostConfig>;
}

export interface OrderOptions {
  readonly script: string;
  readonly files?: readonly ParcelFile[];
  readonly attemptId?: string;
  readonly change?: Partial<Order>;
  /** The project at that moment; absent = as when the rig was created. */
  readonly work?: Order['work'];
  readonly branch?: string;
}

export class FleetRig {
  readonly temp: ReturnType<typeof makeTempFolder>;
  readonly server: RedisServer;
  readonly redis: FleetRedis;
  readonly leases: SlotLeases;
  readonly root: string;
  readonly keys = newFleetKeys();
  readonly leaseMs: number;
  /** All messages in order, including repetitions. */
  readonly heard: ToGroup[] = [];
  /** Attempts whose messages are not acknowledged. */
  readonly silent = new Set<string>();
  #env: Readonly<Record<string, string>>;
  #agent: Bun.Subprocess | null = null;
  #attempts = 0;
  #isOpen = true;
  #listening: Promise<void> = Promise.resolve();
  #checkpoints = new Map<string, number>();
  readonly #born: number[] = [];

  private constructor(
    temp: FleetRig['temp'],
    server: RedisServer,
    redis: FleetRedis,
    keys: FleetRig['keys'],
    leaseMs: number,
  ) {
    [this.temp, this.server, this.redis, this.keys, this.leaseMs] = [temp, server, redis, keys, leaseMs];
    this.root = join(temp.path, 'machine');
    this.leases = redis.leases(leaseMs);
    this.#env = {};
  }

  static async open({ leaseMs = 3_000, slots = 2, env = {}, redis: options = [], config = {} }: RigOptions = {}) {
    const temp = makeTempFolder();
    const server = await startRedis(temp.path, options);
    const keys = newFleetKeys();
    const redis = expectOk(await FleetRedis.open(fleetWorld, { redis: server.url, sealingKey: keys.sealingKey }));
    const rig = new FleetRig(temp, server, redis, keys, leaseMs);
    const program = join(temp.path, 'claude');
    writeFileSync(program, claude);
    chmodSync(program, 0o755);
    const home = join(temp.path, 'home');
    mkdirSync(home);
    rig.#env = { PATH: basePath, HOME: home, CLAUDE_CODE_AGENT_CLAUDE: program, ANTHROPIC_API_KEY: 'test-key', ...env };
    expectOk(
      writeHost(fleetWorld.files, rig.root, {
        version: 1,
        redis: server.url,
        sealingKey: keys.sealingKey,
        leaseMs,
        runnerKeys: [keys.publicKey],
        name: 'one',
        slots,
        labels: ['gpu'],
        ...config,
      }),
    );
    rig.#makeProject();
    rig.#listening = rig.#listen();
    return rig;
  }

  readonly group = groupId;

  // The host.

  startAgent(env: Readonly<Record<string, string>> = {}): void {
    const command = [
      process.execPath,
      '--no-install',
      join(import.meta.dir, 'fleet-machine-main.ts'),
      'agent',
      this.root,
    ];
    this.#agent = Bun.spawn(command, {
      env: { ...this.#env, ...env },
      stdio: ['ignore', 'ignore', Bun.file(join(this.temp.path, 'agent.stderr'))],
    });
  }

  async killAgent(signal: NodeJS.Signals = 'SIGKILL'): Promise<void> {
    this.#agent?.kill(signal);
    await this.#agent?.exited;
  }

  /** The agent's messages to the user. */
  told(): string {
    const path = join(this.root, 'agent.log');
    return existsSync(path) ? readFileSync(path, 'utf8') : '';
  }

  guardPid(): number | null {
    const { pid = 0 } = fleetWorld.locks.holder(fleetPaths(this.root).guardLock)?.identity ?? {};
    // A process that has the lock but no record yet.
    return pid === 0 ? null : pid;
  }

  async killGuard(): Promise<void> {
    const pid = this.guardPid();
    if (pid === null) return;
    kill(pid);
    // Another one started meanwhile may replace it at once.
    await eventually(() => this.guardPid() !== pid);
  }

  /** Also guards started by agents that do not guard yet. */
  async killGuards(): Promise<void> {
    for (const pid of readdirSync('/proc').map(Number).filter(Boolean)) if (this.#isGuard(pid)) kill(pid);
    await this.killGuard();
  }

  #isGuard(pid: number): boolean {
    const path = `/proc/${pid}/cmdline`;
    try {
      return readFileSync(path, 'utf8').endsWith(`\0guard\0${this.root}\0`);
    } catch {
      return false;
    }
  }

  paths(session: SessionId = sid(1)): SessionPaths {
    return sessionPaths(groupPaths(fleetPaths(this.root).work, groupId as GroupId), session);
  }

  slotFolders(): string[] {
    return readdirSync(fleetPaths(this.root).slots);
  }

  living(attemptId: string): number[] {
    return fleetWorld.processes.findMarked(attemptMark, attemptId).map(({ pid }) => pid);
  }

  // The project.

  get project(): string {
    return join(this.temp.path, 'project');
  }

  git(...args: string[]): string {
    return this.gitIn(this.project, ...args);
  }

  gitIn(cwd: string, ...args: string[]): string {
    const identity = ['-c', 'user.name=T', '-c', 'user.email=t@localhost', '-c', 'commit.gpgSign=false'];
    const ran = Bun.spawnSync(['git', ...identity, ...args], {
      cwd,
      env: { PATH: basePath, HOME: join(this.temp.path, 'home') },
    });
    if (!ran.success) throw new Error(`git ${args.join(' ')}: ${ran.stderr.toString()}`);
    return ran.stdout.toString().trim();
  }

  #makeProject(): void {
    mkdirSync(this.project);
    this.git('init', '--quiet', '--initial-branch=main');
    writeFileSync(join(this.project, 'kept.txt'), 'kept\n');
    writeFileSync(join(this.project, '.gitignore'), 'ignored/\n');
    this.git('add', '--all');
    this.git('commit', '--quiet', '-m', 'first');
  }

  /** The project as it is, committed and uncommitted. */
  async shipWork(): Promise<Order['work']> {
    const head = this.git('rev-parse', 'HEAD');
    this.git('add', '--all');
    const tree = this.git('write-tree');
    this.git('reset', '--quiet');
    const isClean = tree === this.git('rev-parse', 'HEAD^{tree}');
    const snapshot = isClean ? head : this.git('commit-tree', '-p', head, '-m', 'snapshot', tree);
    if (!existsSync(this.repositoryThere)) this.git('init', '--quiet', '--bare', this.repositoryThere);
    for (const commit of [head, snapshot])
      this.git('push', '--quiet', this.repositoryThere, `${commit}:refs/test/${commit}`);
    return { repository: 'abc123', head, snapshot, branch: 'cca/group/001-one', settings: [] };
  }

  /** The project's worktree on the host. */
  get repositoryThere(): string {
    return join(fleetPaths(this.root).repositories, 'abc123');
  }

  // The runner.

  async #listen(): Promise<void> {
    const stream = toGroupStream(groupId);
    for (let after = '0'; this.#isOpen; ) {
      const read = await this.redis.read(stream, after);
      if (!read.ok) {
        await Bun.sleep(20);
        continue;
      }
      for (const { id, bytes } of read.value) {
        after = id;
        const message = unpacked(bytes ?? new Uint8Array(0)) as ToGroup;
        this.heard.push(message);
        if (message.kind === 'attempt' && !this.silent.has(message.attemptId)) await this.#acknowledge(message);
      }
      await this.redis.drop(
        stream,
        read.value.map(({ id }) => id),
      );
    }
  }

  async #acknowledge({ token, attemptId, news }: Extract<ToGroup, { kind: 'attempt' }>): Promise<void> {
    if (news.say !== 'printed' && news.say !== 'checkpoint') return;
    const checkpoint = news.say === 'checkpoint' ? news.n : (this.#checkpoints.get(attemptId) ?? 0);
    this.#checkpoints.set(attemptId, checkpoint);
    await this.say(token, { do: 'have', printed: Buffer.byteLength(this.printed(attemptId)), checkpoint });
  }

  /** Takes a slot of the host. */
  async takeSlot(): Promise<string> {
    const lease = { host: 'one', token: `one:${crypto.randomUUID()}` };
    while (!expectOk(await listHosts(this.redis)).some(takesNew)) await Bun.sleep(20);
    // A slot that was just released is free in a moment.
    while (!expectOk(await this.leases.take(lease, 2))) await Bun.sleep(20);
    return lease.token;
  }

  async say(token: string, command: SlotCommand, signer = new Signer(this.keys.signingKey)): Promise<void> {
    await this.sendSigned({ kind: 'slot', token, groupId, command }, signer);
  }

  async sendSigned(message: unknown, signer = new Signer(this.keys.signingKey)): Promise<void> {
    const stream = toHostStream('one');
    // An unreachable server is tried again; repeated messages count once.
    while (this.#isOpen) {
      const sent = await this.redis.send(stream, [signer.sign(stream, JSON.stringify(message))]);
      if (sent.ok) return;
      await Bun.sleep(20);
    }
  }

  newAttempt(): string {
    this.#attempts += 1;
    return `${process.pid}-${crypto.randomUUID()}-${this.#attempts}`;
  }

  async makeOrder(options: OrderOptions, session: SessionId = sid(1)): Promise<Order> {
    const { script, files = [], attemptId = this.newAttempt(), branch = 'cca/group/001-one', change = {} } = options;
    const work = { ...(options.work ?? (await this.shipWork())), branch };
    const blob = expectOk(await this.redis.putBlob(crypto.randomUUID(), Buffer.from(JSON.stringify({ files }))));
    const place = { groupId, sessionId: session, cwd: 'worktree', files: blob, work };
    return { attemptId, attempt: 1, args: ['run', script], untrusted: false, ...place, ...change };
  }

  /** Takes a slot and starts something on it. */
  async start(
    options: OrderOptions,
    session: SessionId = sid(1),
  ): Promise<{ token: string; attemptId: string; order: Order }> {
    // Until the host has the order, no one renews the lease of the slot.
    const order = await this.makeOrder(options, session);
    const token = await this.takeSlot();
    await this.say(token, { do: 'order', order });
    return { token, attemptId: order.attemptId, order };
  }

  /** The messages about the attempt, each once. */
  news(attemptId: string): AttemptNews[] {
    const once = new Map<string, AttemptNews>();
    for (const message of this.heard) {
      if (message.kind !== 'attempt' || message.attemptId !== attemptId) continue;
      const { news } = message;
      const which = news.say === 'printed' ? news.offset : news.say === 'checkpoint' ? news.n : '';
      const key = `${news.say} ${news.say === 'ran' ? news.id : which}`;
      const known = once.get(key);
      // Another agent may start again with a larger piece.
      const isMore = known?.say === 'printed' && news.say === 'printed' && news.data.length > known.data.length;
      if (known === undefined || isMore) once.set(key, news);
    }
    return [...once.values()];
  }

  async hear<S extends AttemptNews['say']>(attemptId: string, say: S): Promise<Told<S>> {
    return eventually(() => this.news(attemptId).find((news) => news.say === say) as Told<S> | undefined);
  }

  /** Its output received so far: pieces must join without a gap. */
  printed(attemptId: string): string {
    let all = Buffer.alloc(0);
    for (const news of this.news(attemptId)) {
      if (news.say !== 'printed') continue;
      if (news.offset > all.length) throw new Error(`a piece at ${news.offset} comes after ${all.length} bytes`);
      all = Buffer.concat([all, news.data.subarray(all.length - news.offset)]);
    }
    return all.toString();
  }

  /** The pid that it printed after that word. */
  async pidOf(attemptId: string, text: string): Promise<number> {
    const found = await eventually(
      () => new RegExp(`^${text} (\\d+)$`, 'm').exec(this.printed(attemptId))?.[1] ?? null,
    );
    this.#born.push(Number(found));
    return Number(found);
  }

  async blob(blob: Blob): Promise<Uint8Array> {
    return expectOk(await this.redis.getBlob(blob));
  }

  async close(): Promise<void> {
    this.#isOpen = false;
    await this.killAgent();
    await this.killGuards();
    const attempts = new Set(this.heard.flatMap((one) => (one.kind === 'attempt' ? [one.attemptId] : [])));
    for (const id of attempts) for (const pid of this.living(id)) kill(pid);
    for (const pid of this.#born) kill(pid);
    this.redis.close();
    await this.#listening;
    await this.server.kill();
    this.temp.remove();
  }
}

export const isAlive = (pid: number): boolean => fleetWorld.processes.identify(pid) !== null;
