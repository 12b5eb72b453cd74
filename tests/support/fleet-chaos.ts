/**
 * A group on three machines to which things happen: which, when and for how long is drawn by a seed. When is said by
 * the work that is done, how long in leases. All of it heals, and the group must come to its end.
 */
import { cpSync, existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { launcher } from './cli.ts';
import { type CuttableProxy, type CutWay, startProxy } from './cuttable-proxy.ts';
import { draw } from './draw.ts';
import { type FleetGround, type Machine, openGround } from './fleet-ground.ts';
import { type Noted, steppingClaude, stepsNoted } from './stepping-claude.ts';
import { noteTried } from './tried.ts';

export const leaseMs = 3_000;
/** A runner takes a machine for lost so long after its lease. */
const fenceMs = 20_000;
const shape = { machines: 3, sessions: 5, steps: 16, stepSeconds: 0.7 };
export const stepsOfEach = shape.steps;
/** By then none of them is done. */
const maxAt = 40;
const lookMs = 50;

const kinds = [
  'machine cut off',
  'runner cut off',
  'agent killed',
  'guard killed',
  'runner killed',
  'redis killed',
  'redis as it was',
  'machine burned',
] as const;

export interface Trouble {
  readonly kind: (typeof kinds)[number];
  /** Steps that were done in all by then. */
  readonly at: number;
  /** `busy`: one on which a session works by then. */
  readonly machine: number | 'busy';
  readonly lastsMs: number;
  readonly way: CutWay;
  /** Redis comes back as it was when so many steps were done. */
  readonly from: number;
}

/** Each by itself, long enough to be noticed where that is possible. */
export const singleTroubles: readonly Trouble[] = [
  { kind: 'machine cut off', way: 'both', lastsMs: 60_000 },
  { kind: 'machine cut off', way: 'up', lastsMs: 2 * leaseMs },
  { kind: 'machine cut off', way: 'down', lastsMs: 2 * leaseMs },
  { kind: 'runner cut off', way: 'both', lastsMs: 60_000 },
  { kind: 'agent killed', way: 'both', lastsMs: leaseMs + fenceMs + 5_000 },
  { kind: 'guard killed', way: 'both', lastsMs: 0 },
  { kind: 'runner killed', way: 'both', lastsMs: 60_000 },
  { kind: 'redis killed', way: 'both', lastsMs: 2 * leaseMs },
  { kind: 'redis as it was', way: 'both', lastsMs: 0 },
].map((one): Trouble => ({ ...(one as Pick<Trouble, 'kind' | 'way' | 'lastsMs'>), at: 8, machine: 'busy', from: 2 }));

/** Of what all machines need, not of one of them. */
export const isOfCenter = (kind: Trouble['kind']): boolean => /^(runner|redis)/.test(kind);

/** One to four, in the order in which they begin. */
export function drawTroubles(seed: number): readonly Trouble[] {
  let nth = 0;
  const next = (max: number): number => {
    nth += 1;
    return draw(seed, nth, max);
  };
  const all = Array.from({ length: 1 + next(4) }, (): Trouble => {
    const kind = kinds[next(kinds.length)] as Trouble['kind'];
    const at = 1 + next(maxAt);
    const lasts = [0, leaseMs / 2, 2 * leaseMs, leaseMs + fenceMs + 5_000];
    const ways = ['both', 'both', 'up', 'down'] as const;
    return {
      ...{ kind, at, machine: next(shape.machines), from: next(at) },
      ...{ lastsMs: lasts[next(lasts.length)] as number, way: ways[next(ways.length)] as CutWay },
    };
  });
  return all.flatMap((one) => guarded(one, all)).toSorted((a, b) => a.at - b.at);
}

/** Where agent and guard are both gone nobody is left to end anything, so each dies alone: elsewhere, if it can. */
function guarded(trouble: Trouble, all: readonly Trouble[]): readonly Trouble[] {
  if (trouble.kind !== 'guard killed') return [trouble];
  const agents = new Set(all.flatMap(({ kind, machine }) => (kind === 'agent killed' ? [machine] : [])));
  const first = Number(trouble.machine);
  const machines = Array.from({ length: shape.machines }, (_, index) => (first + index) % shape.machines);
  const machine = machines.find((one) => !agents.has(one));
  return machine === undefined ? [] : [{ ...trouble, machine }];
}

/** What is left in Redis but what lies there for good: the registry, and what the engine keeps of its queues. */
export function keysLeft({ server }: FleetGround): string[] {
  const ask = (...args: string[]): string => {
    const asked = Bun.spawnSync(['redis-cli', '-p', String(server.port), ...args]);
    return asked.stdout.toString().trim();
  };
  const keys = ask('keys', '*').split('\n');
  const isKept = (key: string): boolean =>
    /^cca:(hosts|drained|label-sets|slots-[^:]+:(id|meta|marker|events))$/.test(key);
  // What nobody needs any more goes by itself in time.
  return keys.filter((key) => !isKept(key) && Number(ask('ttl', key)) < 0);
}

/** What happened, for whoever has to find out why. */
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
  /** Those that came to pass before the group was over. */
  readonly troubles: readonly Trouble[];
  /** How often a runner was started. */
  readonly runs: number;
  readonly wallMs: number;
}

export function describe({ kind, at, machine, lastsMs, way, from }: Trouble): string {
  const on = /machine|agent|guard/.test(kind) ? ` ${machine === 'busy' ? machine : `m${machine + 1}`}` : '';
  const how = kind.endsWith('cut off') ? ` ${way}` : kind === 'redis as it was' ? ` at ${from}` : '';
  return `${kind}${on}${how} @${at} ${lastsMs / 1_000}s`;
}

/** `opened` gets the ground and what closes it. Throws when the group does not complete. */
/** Each waits a moment for machines that were started a moment ago. */
const bookingsMax = 6;

export async function runChaos(
  troubles: readonly Trouble[],
  opened: (ground: FleetGround, close: () => Promise<void>) => void,
): Promise<ChaosResult> {
  const chaos = await Chaos.open(opened);
  return chaos.run(troubles);
}

class Chaos {
  readonly #ground: FleetGround;
  readonly #claude: string;
  readonly #proxies: readonly CuttableProxy[];
  readonly #runnerProxy: CuttableProxy;
  readonly #machines: readonly Machine[];
  readonly #healings = new Set<Promise<void>>();
  /** Sooner than they would by themselves, once the group is over. */
  readonly #hurry = Promise.withResolvers<void>();
  #runner: Bun.Subprocess | null = null;
  #runnerMayRun: Promise<void> = Promise.resolve();
  #redisBack: Promise<void> = Promise.resolve();
  #runs = 0;

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
      await Promise.all(chaos.#healings);
      chaos.#runner?.kill('SIGKILL');
      await chaos.#runner?.exited;
      await ground.close();
      for (const proxy of proxies) proxy.close();
    });
    return chaos;
  }

  async run(troubles: readonly Trouble[]): Promise<ChaosResult> {
    const begin = performance.now();
    const { folder } = this.#ground.group;
    const steps = (): number => stepsNoted(folder).filter(({ word }) => word === 'did').length;
    const left = [...troubles];
    const snapshots = troubles.filter(({ kind }) => kind === 'redis as it was').map(({ from }) => from);
    let isOver = false;
    const running = this.#runToEnd().finally(() => {
      isOver = true;
    });
    // It is awaited below; until then nothing is lost.
    running.catch(() => {});
    while (!isOver) {
      const done = steps();
      for (const from of snapshots.filter((one) => done >= one)) {
        snapshots.splice(snapshots.indexOf(from), 1);
        await this.#redisBack;
        cpSync(this.#ground.server.folder, this.#snapshot(from), { recursive: true });
      }
      while (left[0] !== undefined && done >= left[0].at) this.#begin(left.shift() as Trouble);
      await Bun.sleep(lookMs);
    }
    this.#hurry.resolve();
    await Promise.all(this.#healings);
    await running;
    // What a machine that was lost when all was done has to tell is booked by the next command.
    for (let more = 0; more < bookingsMax && this.#isHeld; more += 1) await this.#runToEnd();
    return {
      ground: this.#ground,
      noted: stepsNoted(folder),
      troubles: troubles.filter((one) => !left.includes(one)),
      runs: this.#runs,
      wallMs: performance.now() - begin,
    };
  }

  get #isHeld(): boolean {
    return this.#ground.group.state().usage.heldUsd !== undefined;
  }

  #snapshot(from: number): string {
    return join(this.#ground.group.folder, `redis at ${from}`);
  }

  /** Starts a runner again for each that was killed. */
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
    this.#runs += 1;
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

  #begin(trouble: Trouble): void {
    const healing = this.#happen(trouble).finally(() => this.#healings.delete(healing));
    this.#healings.add(healing);
  }

  /** Resolves when it has healed. */
  async #happen({ kind, machine: which, lastsMs, way, from }: Trouble): Promise<void> {
    const index = which === 'busy' ? this.#busy() : which;
    const machine = this.#machines[index] as Machine;
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
      case 'machine burned':
        await machine.burn(this.#attemptsOn(`m${index + 1}`));
        await lasts();
        machine.start();
        return;
      case 'runner killed': {
        const back = Promise.withResolvers<void>();
        this.#runnerMayRun = Promise.all([this.#runnerMayRun, back.promise]).then(() => {});
        this.#runner?.kill('SIGKILL');
        await lasts();
        back.resolve();
        return;
      }
      case 'redis killed':
      case 'redis as it was': {
        const before = this.#redisBack;
        this.#redisBack = before.then(async () => {
          const { server } = this.#ground;
          await server.kill();
          await lasts();
          const kept = this.#snapshot(from);
          if (kind === 'redis as it was' && existsSync(kept)) {
            rmSync(join(server.folder, 'appendonlydir'), { recursive: true });
            cpSync(join(kept, 'appendonlydir'), join(server.folder, 'appendonlydir'), { recursive: true });
          }
          await server.restart();
        });
        await this.#redisBack;
        return;
      }
    }
  }

  #busy(): number {
    const working = [...this.#ground.group.state().sessions.values()].filter(({ state }) => state.status === 'running');
    return Number(working[0]?.host?.slice(1) ?? 1) - 1;
  }

  #attemptsOn(host: string): string[] {
    const events = this.#ground.group.events();
    const begun = events.flatMap((event) => (event.type === 'session_starting' ? [event.attempt] : []));
    return begun.flatMap(({ id, place }) => (place?.host === host ? [id] : []));
  }
}
