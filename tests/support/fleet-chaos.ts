/** A group on three hosts with one fault, which heals; then the group must complete. */
import { cpSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { launcher } from './cli.ts';
import { type CuttableProxy, type CutWay, startProxy } from './cuttable-proxy.ts';
import { type FleetGround, type HostFixture, openGround } from './fleet-ground.ts';
import { type Noted, steppingClaude, stepsNoted } from './stepping-claude.ts';
import { noteTried } from './tried.ts';

export const leaseMs = 3_000;
/** A runner counts a host as lost this long after its lease. */
const fenceMs = 20_000;
const shape = { machines: 3, sessions: 5, steps: 16, stepSeconds: 0.7 };
export const stepsOfEach = shape.steps;
/** Completed steps when the fault begins, and those after which Redis is copied to return in that state. */
const beginsAt = 8;
const copiedAt = 2;
const lookMs = 50;

const kinds = [
  'machine cut off',
  'runner cut off',
  'agent killed',
  'guard killed',
  'runner killed',
  'redis killed',
  'redis as it was',
] as const;

export interface ChaosFault {
  readonly kind: (typeof kinds)[number];
  readonly lastsMs: number;
  readonly way: CutWay;
}

/** Each fault alone, long enough to be noticed where possible. */
export const singleTroubles: readonly ChaosFault[] = [
  { kind: 'machine cut off', way: 'both', lastsMs: 60_000 },
  { kind: 'machine cut off', way: 'up', lastsMs: 2 * leaseMs },
  { kind: 'machine cut off', way: 'down', lastsMs: 2 * leaseMs },
  { kind: 'runner cut off', way: 'both', lastsMs: 60_000 },
  { kind: 'agent killed', way: 'both', lastsMs: leaseMs + fenceMs + 5_000 },
  { kind: 'guard killed', way: 'both', lastsMs: 0 },
  { kind: 'runner killed', way: 'both', lastsMs: 60_000 },
  { kind: 'redis killed', way: 'both', lastsMs: 2 * leaseMs },
  { kind: 'redis as it was', way: 'both', lastsMs: 0 },
];

/** Faults of a shared part, not of one host. */
export const isOfCenter = (kind: ChaosFault['kind']): boolean => /^(runner|redis)/.test(kind);

/** Keys left in Redis, except permanent ones: the registry and the engine's queue keys. */
export function keysLeft({ server }: FleetGround): string[] {
  const ask = (...args: string[]): string => {
    const asked = Bun.spawnSync(['redis-cli', '-p', String(server.port), ...args]);
    return asked.stdout.toString().trim();
  };
  const keys = ask('keys', '*').split('\n');
  const isKept = (key: string): boolean =>
    /^cca:(hosts|drained|label-sets|slots-[^:]+:(id|meta|marker|events))$/.test(key);
  // Keys without a reader expire in time.
  return keys.filter((key) => !isKept(key) && Number(ask('ttl', key)) < 0);
}

/** The history of the run, for the reader of a failure. */
export function storyOf({ group, machines }: FleetGround): string {
  const names = new Map([...group.state().sessions.values()].map(({ definition }) => [definition.id, definition.name]));
  const events = group.events().map((event) => {
    const { type, at, ...rest } = event as unknown as Record<string, unknown>;
    return `${at} ${type} ${JSON.stringify(rest).slice(0, 400)}`;
  });
  const noted = stepsNoted(group.folder).map((one) => {
    return `${one.atMs} ${one.claudeSessionId} ${one.attemptId} ${one.word} ${one.numbers.join(' ')}`;
  });
  const told = Object.entries(machines).map(([name, machine]) => `${name}:\n${machine.told()}`);
  return [JSON.stringify([...names]), ...events, ...noted, ...told].join('\n');
}

export interface ChaosResult {
  readonly ground: FleetGround;
  readonly noted: readonly Noted[];
  readonly trouble: ChaosFault;
}

export const describe = ({ kind, lastsMs, way }: ChaosFault): string =>
  `${kind}${kind.endsWith('cut off') ? ` ${way}` : ''} ${lastsMs / 1_000}s`;

/** Each waits a moment for newly started hosts. */
const bookingsMax = 6;

/** `opened` gets the fixture and its cleanup. Throws when the group does not complete. */
export async function runChaos(
  trouble: ChaosFault,
  opened: (ground: FleetGround, close: () => Promise<void>) => void,
): Promise<ChaosResult> {
  const chaos = await Chaos.open(opened);
  return chaos.run(trouble);
}

class Chaos {
  readonly #ground: FleetGround;
  readonly #claude: string;
  readonly #proxies: readonly CuttableProxy[];
  readonly #runnerProxy: CuttableProxy;
  readonly #machines: readonly HostFixture[];
  /** Sooner than they would expire, once the group is over. */
  readonly #hurry = Promise.withResolvers<void>();
  #runner: Bun.Subprocess | null = null;
  #runnerMayRun: Promise<void> = Promise.resolve();
  #healing: Promise<void> = Promise.resolve();

  private constructor(
    ground: FleetGround,
    claude: string,
    proxies: readonly CuttableProxy[],
    runnerProxy: CuttableProxy,
  ) {
    [this.#ground, this.#claude, this.#proxies, this.#runnerProxy] = [ground, claude, proxies, runnerProxy];
    this.#machines = proxies.map(({ port }, index) => ground.addMachine(`m${index + 1}`, { redisPort: port }));
  }

  static async open(opened: (ground: FleetGround, close: () => Promise<void>) => void): Promise<Chaos> {
    let claude = '';
    const names = Array.from({ length: shape.sessions }, (_, index) => `s${index + 1}`);
    const ground = await openGround(
      names.map((name, index) => ({ name, after: index === names.length - 1 ? ['s1'] : [] })),
      {
        machines: {},
        claude: (folder) => {
          claude = steppingClaude(folder, shape);
          return claude;
        },
        env: { ANTHROPIC_API_KEY: 'test-key' },
        leaseMs,
        redis: ['appendonly yes', 'appendfsync everysec'],
        config: { where: 'fleet', maxBudgetUsd: 20, maxConcurrentSessions: shape.sessions },
      },
    );
    const proxies: CuttableProxy[] = [];
    for (let index = 0; index <= shape.machines; index += 1) proxies.push(await startProxy(ground.server.port));
    const [runnerProxy, ...others] = proxies as [CuttableProxy, ...CuttableProxy[]];
    const chaos = new Chaos(ground, claude, others, runnerProxy);
    opened(ground, async () => {
      chaos.#hurry.resolve();
      await chaos.#healing;
      chaos.#runner?.kill('SIGKILL');
      await chaos.#runner?.exited;
      await ground.close();
      for (const proxy of proxies) proxy.close();
    });
    return chaos;
  }

  async run(trouble: ChaosFault): Promise<ChaosResult> {
    const { folder } = this.#ground.group;
    const steps = (): number => stepsNoted(folder).filter(({ word }) => word === 'did').length;
    let isOver = false;
    const running = this.#runToEnd().finally(() => {
      isOver = true;
    });
    // It is awaited below; until then nothing is lost.
    running.catch(() => {});
    while (!isOver && steps() < copiedAt) await Bun.sleep(lookMs);
    cpSync(this.#ground.server.folder, this.#copy, { recursive: true });
    while (!isOver && steps() < beginsAt) await Bun.sleep(lookMs);
    if (!isOver) this.#healing = this.#happen(trouble);
    await running.finally(() => this.#hurry.resolve());
    await this.#healing;
    // The late report of a lost host is recorded by the next command.
    for (let more = 0; more < bookingsMax && this.#isHeld; more += 1) await this.#runToEnd();
    return { ground: this.#ground, noted: stepsNoted(folder), trouble };
  }

  get #isHeld(): boolean {
    return this.#ground.group.state().usage.heldUsd !== undefined;
  }

  get #copy(): string {
    return join(this.#ground.group.folder, 'redis as it was');
  }

  /** Starts a new runner for each one that was killed. */
  async #runToEnd(): Promise<void> {
    for (;;) {
      await this.#runnerMayRun;
      const child = this.#startRunner();
      await child.exited;
      if (child.signalCode === 'SIGKILL') continue;
      if (child.exitCode === 0) return;
      const said = await Bun.file(join(this.#ground.group.folder, 'runner.stderr')).text();
      throw new Error(`group run ended with ${child.exitCode}: ${said}`);
    }
  }

  #startRunner(): Bun.Subprocess {
    const { folder, root, groupId } = this.#ground.group;
    noteTried(root, this.#claude);
    const child = Bun.spawn([launcher, 'group', 'run', groupId, '--min-free-memory', '1', '--output', 'quiet'], {
      env: {
        ...{ PATH: process.env.PATH ?? '', HOME: folder, LANG: 'C.UTF-8', CLAUDE_CODE_AGENT_HOME: root },
        ...{ CLAUDE_CODE_AGENT_CLAUDE: this.#claude, ANTHROPIC_API_KEY: 'test-key' },
        CLAUDE_CODE_AGENT_FLEET: `redis://127.0.0.1:${this.#runnerProxy.port}`,
      },
      stdin: 'ignore',
      stdout: 'ignore',
      stderr: Bun.file(join(folder, 'runner.stderr')),
    });
    this.#runner = child;
    return child;
  }

  /** Resolves when the fault has healed. */
  async #happen({ kind, lastsMs, way }: ChaosFault): Promise<void> {
    const index = this.#busy();
    const machine = this.#machines[index] as HostFixture;
    const lasts = (): Promise<void> => Promise.race([Bun.sleep(lastsMs), this.#hurry.promise]);
    switch (kind) {
      case 'machine cut off':
      case 'runner cut off': {
        const proxy = kind === 'runner cut off' ? this.#runnerProxy : (this.#proxies[index] as CuttableProxy);
        proxy.cut(way);
        await lasts();
        proxy.heal();
        return;
      }
      case 'agent killed':
        await machine.killAgent();
        await lasts();
        machine.start();
        return;
      case 'guard killed':
        await machine.killGuard();
        return;
      case 'runner killed': {
        const back = Promise.withResolvers<void>();
        this.#runnerMayRun = back.promise;
        this.#runner?.kill('SIGKILL');
        await lasts();
        back.resolve();
        return;
      }
      case 'redis killed':
      case 'redis as it was': {
        const { server } = this.#ground;
        await server.kill();
        await lasts();
        if (kind === 'redis as it was') {
          rmSync(join(server.folder, 'appendonlydir'), { recursive: true });
          cpSync(join(this.#copy, 'appendonlydir'), join(server.folder, 'appendonlydir'), { recursive: true });
        }
        await server.restart();
        return;
      }
    }
  }

  #busy(): number {
    const working = [...this.#ground.group.state().sessions.values()].filter(({ state }) => state.status === 'running');
    return Number(working[0]?.host?.slice(1) ?? 1) - 1;
  }
}
