/**
 * One of several hosts: the runner's, or one that runs sessions of others with the real agent and guard, which are
 * restarted when they are gone.
 */
import { join } from 'node:path';
import { serveHost } from '../../../../src/app/fleet/serve.ts';
import { ok } from '../../../../src/core/failure.ts';
import { serveGuard } from '../../../../src/fleet/agent/guard.ts';
import type { OpenEngine } from '../../../../src/fleet/redis.ts';
import { projectSlug } from '../../../../src/fleet/wire.ts';
import type { CommandOptions, RunOutput, SpawnOptions, World } from '../../../../src/system/world.ts';
import type { ClaudeBook } from '../books.ts';
import { callerEnv, simulatedPackageRoot } from '../group-setup.ts';
import type { Behaviour } from '../scenario.ts';
import { seededFor } from '../seeded.ts';
import { VirtualMachine } from '../virtual-machine.ts';
import type { VirtualProcess } from '../virtual-processes.ts';
import { VirtualRunner } from '../virtual-runner.ts';
import { EngineClient } from './engine-client.ts';
import type { FleetPlace, FleetWrap } from './fleet-place.ts';
import type { Link } from './virtual-engine.ts';
import { VirtualGit } from './virtual-git.ts';

export const hostDataRoot = '/data';
const claudeProgram = '/opt/claude';
/** The system restarts an agent after this time. */
const restartMs = 2_000;
/** Uptime at the start of the scenario. */
const bootedMs = 100_000;

/** Promises of one machine that also hold among several. */
const watched: ReadonlySet<string> = new Set([
  'the log is the state',
  'one writer',
  'nothing throws',
  'nothing shows what is secret',
  'ends are final',
  'no start before its dependencies',
]);

export class FleetMachine extends VirtualMachine {
  readonly name: string;
  readonly link: Link = { up: true, down: true };
  readonly git: VirtualGit;
  readonly #place: FleetPlace;
  agent: VirtualRunner | null = null;
  guards: VirtualRunner[] = [];
  /** Nothing runs there. */
  isDown = false;
  isSuspended = false;
  #bootMs = -bootedMs;

  constructor(place: FleetPlace, name: string, eventsPath: string) {
    super(place.scenario.group, eventsPath, place.trace, { timeline: place.timeline, host: name });
    this.name = name;
    this.#place = place;
    this.git = new VirtualGit(this.disk, place.objects);
  }

  get uptimeMs(): number {
    return this.timeline.nowMs - this.#bootMs;
  }

  override violate(invariant: string, message: string): void {
    if (watched.has(invariant)) this.#place.violate(invariant, `${this.name}: ${message}`);
  }

  override say(line: string): void {
    // Its runner reports the log.
    if (!/^ *#\d/.test(line)) this.#place.say(`${this.name}: ${line}`);
  }

  override slugOf(cwd: string): string {
    return projectSlug(cwd);
  }

  override nextBehaviour(book: ClaudeBook): Behaviour {
    return this.#place.nextBehaviour(book);
  }

  override worked(book: ClaudeBook, cwd: string): void {
    const line = `${book.attemptId} ${this.timeline.nowMs}\n`;
    this.appendQuietly(join(cwd, 'work.txt'), Buffer.from(line), true);
    this.disk.place(join(cwd, 'work.txt'))?.folder.sync();
    this.#place.checks.worked(book, line);
  }

  override startClaude(runner: VirtualProcess, options: SpawnOptions): VirtualProcess {
    const process = super.startClaude(runner, options);
    this.say(`${process.name} starts`);
    this.#place.checks.spawned(this, this.claudes.at(-1) as ClaudeBook);
    return process;
  }

  /** The world of a process here, with the calls that only hosts of a fleet make. */
  worldOf(runner: VirtualRunner, wrap: FleetWrap['world'] = (world) => world): World {
    const { world } = runner;
    const { luck } = this;
    return wrap(
      {
        ...world,
        files: {
          ...world.files,
          readText: (path, what) =>
            path === '/proc/uptime' ? `${(this.uptimeMs / 1_000).toFixed(2)} 0.00` : world.files.readText(path, what),
        },
        processes: {
          ...world.processes,
          run: (options) =>
            isOwnProgram(options) ? this.#run(runner, options, luck.delay(30, 800)) : world.processes.run(options),
        },
      },
      this,
    );
    function isOwnProgram({ program }: CommandOptions): boolean {
      return program === 'git' || program === 'sync';
    }
  }

  #run({ process }: VirtualRunner, options: CommandOptions, delayMs: number): ReturnType<World['processes']['run']> {
    const { promise, resolve } = Promise.withResolvers<Awaited<ReturnType<World['processes']['run']>>>();
    if (!process.alive) return promise;
    this.timeline.schedule(delayMs, `runs ${options.program}`, process, () => {
      resolve(ok(options.program === 'git' ? this.#runGit(options) : { exitCode: 0, stdout: '', stderr: '' }));
    });
    return promise;
  }

  #runGit(options: CommandOptions): RunOutput {
    const [, name = '', path = ''] = options.args.map((arg) => /^([\w-]+):(\/.*)$/.exec(arg)).find(Boolean) ?? [];
    if (!options.args.some((arg) => arg === 'push' || arg === 'fetch')) return this.git.run(options);
    const other = this.#place.machines.get(name) as FleetMachine;
    const isReached = [this, other].every(
      ({ link, isDown, isSuspended }) => link.up && link.down && !isDown && !isSuspended,
    );
    if (isReached) return this.git.transfer(options, other.git, path);
    const stderr = `ssh: connect to host ${name} port 22: timed out
fatal: Could not read from remote repository.
`;
    return { exitCode: 128, stdout: '', stderr };
  }

  opener(runner: VirtualRunner): OpenEngine {
    return async (world, { sealingKey }) => {
      const luck = seededFor(this.scenario.seed, `${runner.process.name} link`);
      const client = new EngineClient(this.#place.engine, {
        ...{ world, owner: runner.process, link: this.link, luck, sealingKey },
      });
      return ok(this.#place.wrap.engine?.(client, this) ?? client);
    };
  }

  // Agent and guard.

  /** From now on the system restarts the agent. */
  serve(): void {
    this.timeline.schedule(this.luck.delay(20, restartMs), `${this.name} starts its agent`, null, () =>
      this.#startAgent(),
    );
  }

  #startAgent(): void {
    if (this.isDown || this.agent?.alive) return;
    const runner = new VirtualRunner(this);
    this.agent = runner;
    const served = serveHost(this.worldOf(runner, this.#place.wrap.world), {
      root: hostDataRoot,
      callerEnv,
      packageRoot: simulatedPackageRoot,
      version: '1.0.0',
      claude: async () => ok({ program: claudeProgram, version: '2.1.332' }),
      claudeVersion: async () => '2.1.332',
      checkLogin: async () => undefined,
      startGuard: () => this.#startGuard(),
      onSignal: () => {},
      openEngine: this.opener(runner),
      tell: (line) => this.say(`agent: ${line}`),
    });
    this.#whenOver(runner, served, () => this.#againLater());
  }

  #againLater(): void {
    this.timeline.schedule(restartMs, `${this.name} starts its agent again`, null, () => this.#startAgent());
  }

  #startGuard(): void {
    this.timeline.schedule(this.luck.delay(200, 900), `${this.name} starts a guard`, null, () => {
      if (this.isDown || this.isSuspended) return;
      const runner = new VirtualRunner(this);
      this.guards = [...this.guards.filter(({ alive }) => alive), runner];
      const served = serveGuard(this.worldOf(runner, this.#place.wrap.world), {
        root: hostDataRoot,
        onSignal: () => {},
        startShell: () => {},
        tell: (line) => this.say(`guard: ${line}`),
      });
      this.#whenOver(runner, served, () => {});
    });
  }

  #whenOver(runner: VirtualRunner, work: Promise<unknown>, then: () => void): void {
    work.then(
      (result) => {
        if (!runner.alive) return;
        this.say(`${runner.process.name} ends: ${JSON.stringify(result)}`);
        runner.exit();
        then();
      },
      (error: unknown) => {
        if (!runner.alive) return;
        this.#place.violate('nothing throws', `${this.name}: ${error instanceof Error ? error.stack : error}`);
      },
    );
  }

  killAgent(): void {
    this.agent?.die('kill -9');
    this.#againLater();
  }

  killGuard(): void {
    for (const guard of this.guards) guard.die('kill -9');
  }

  /** Everything there dies at once, and restarts after a while. */
  crash(downMs: number): void {
    this.say('crashes');
    this.isDown = true;
    this.isSuspended = false;
    this.cutPower();
    this.timeline.schedule(downMs, `${this.name} is started`, null, () => {
      this.say('is started again');
      this.isDown = false;
      this.#bootMs = this.timeline.nowMs;
      this.#startAgent();
    });
  }

  /** Nothing happens there for a while, and time passes. */
  suspend(forMs: number): void {
    if (this.isDown || this.isSuspended) return;
    this.say('is suspended');
    this.isSuspended = true;
    const own = [...this.table.living.values()].filter(({ halted }) => !halted);
    for (const process of own) process.halted = true;
    this.timeline.schedule(forMs, `${this.name} wakes`, null, () => {
      if (!this.isSuspended) return;
      this.say('wakes');
      this.isSuspended = false;
      for (const process of own) if (process.alive) this.timeline.goOn(process);
      this.#place.checks.woke(this);
    });
  }
}
