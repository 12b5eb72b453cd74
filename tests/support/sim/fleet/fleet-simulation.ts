/**
 * A group that runs over several hosts, from its scenario to its end: all hosts share one clock and one engine, and
 * each has its own processes, files and uptime. `SIM_SEED=N sh scripts/bun.sh test
 * tests/system/sim/fleet/fleet.test.ts` replays one seed and prints its history.
 */
import { drainMicrotasks } from 'bun:jsc';
import { dirname, join } from 'node:path';
import type { GroupEvent } from '../../../../src/core/event.ts';
import type { GroupConfig, SessionDefinition } from '../../../../src/core/group.ts';
import { makeSessionId } from '../../../../src/core/id.ts';
import { unaskedMs as slotUnaskedMs } from '../../../../src/fleet/agent/attempt.ts';
import { newFleetKeys, Seal } from '../../../../src/fleet/seal.ts';
import { type RunResult, runGroup } from '../../../../src/runner/run-group.ts';
import { createGroup } from '../../../../src/store/group-store.ts';
import type { ClaudeBook } from '../books.ts';
import { SimulationChecks } from '../checks.ts';
import { callerEnv, newDefinition, simulatedGroup, simulatedPackageRoot } from '../group-setup.ts';
import type { Behaviour } from '../scenario.ts';
import { seededFor } from '../seeded.ts';
import { Timeline } from '../virtual-clock.ts';
import type { Violation } from '../virtual-machine.ts';
import { VirtualRunner } from '../virtual-runner.ts';
import { FleetChecks, fleetPromises } from './fleet-checks.ts';
import { FleetMachine, hostDataRoot } from './fleet-machine.ts';
import type { FleetPlace, FleetWrap } from './fleet-place.ts';
import { type FleetScenario, type HostFault, home, type TimedFault } from './fleet-scenario.ts';
import './loaded.ts';
import { VirtualEngine } from './virtual-engine.ts';
import type { Objects } from './virtual-git.ts';

const stepsMax = 150_000;
const project = '/projects/one';
const claude = '/opt/claude';
const lookMs = 1_000;
/** All is well for this long at the end, before the hosts are checked. */
const restMs = 120_000;
/** A finished runner tries this long to send its last messages. */
const closeMs = 12_000;
/** Everything ends within this time after the last fault. */
const longestMs = 45 * 60_000;
const createdMs = Date.UTC(2026, 0, 2, 3, 0, 0);
const keys = newFleetKeys();

const plain: Behaviour = {
  ...{ messages: 1, tools: false, ending: 'success', slowness: 1, interrupt: 'obeyed', term: 'obeyed', tool: 'tame' },
  ...{ pieces: false, forgets: false, nearLimit: false },
};

export interface FleetReport {
  readonly steps: number;
  readonly violation: Violation | null;
  readonly trace: readonly string[];
  /** How often each kind of event is in the log. */
  readonly events: ReadonlyMap<string, number>;
  readonly seconds: number;
}

export interface FleetSimulationOptions {
  readonly trace?: boolean;
  readonly wrap?: FleetWrap;
  /** The one promise to check; all of them by default. */
  readonly only?: string;
}

class FleetSimulation implements FleetPlace {
  readonly scenario: FleetScenario;
  readonly timeline = new Timeline();
  readonly objects: Objects = new Map();
  readonly engine: VirtualEngine;
  readonly checks: FleetChecks;
  readonly wrap: FleetWrap;
  readonly trace: string[] | null;
  readonly machines = new Map<string, FleetMachine>();
  violation: Violation | null = null;
  isDone = false;
  overSinceMs = Number.POSITIVE_INFINITY;
  readonly #used = new Map<string, number>();
  #runner: VirtualRunner | null = null;
  #startsAtMs = 0;
  #overrides: Partial<GroupConfig> = {};
  #isCompleted = false;

  readonly #only: string | undefined;

  constructor(scenario: FleetScenario, { trace, wrap = {}, only }: FleetSimulationOptions) {
    this.#only = only;
    this.scenario = scenario;
    this.wrap = wrap;
    this.trace = trace === true ? [] : null;
    this.engine = new VirtualEngine(this.timeline, seededFor(scenario.seed, 'engine'));
    const { events } = simulatedGroup().paths;
    for (const name of [home, ...scenario.hosts.map((host) => host.name)]) {
      const machine = new FleetMachine(this, name, name === home ? events : '/none');
      machine.checks = new SimulationChecks(machine);
      this.machines.set(name, machine);
    }
    this.checks = new FleetChecks(this, this.machines);
    const seal = new Seal(keys.sealingKey, { uuid: () => '', fraction: () => 0 });
    this.engine.open = (stream, bytes) =>
      /{.*$/s.exec(Buffer.from(seal.open(stream, bytes) ?? []).toString('latin1'))?.[0].slice(0, 300) ?? '';
    this.#layOut();
    for (const { atMs, ...fault } of scenario.faults) {
      this.timeline.schedule(atMs, `fault: ${fault.do}`, null, () => this.#befall(fault as HostFault));
    }
    this.#lookLater();
  }

  get wasRunnerKilled(): boolean {
    return this.scenario.faults.some((fault) => fault.do === 'kill-runner');
  }

  get outOfReachSinceMs(): number | null {
    const reaches = (fault: TimedFault): boolean =>
      fault.do === 'restart-engine' || fault.do === 'kill-runner' || ('who' in fault && fault.who === home);
    const isNear = (fault: TimedFault): boolean =>
      fault.atMs <= this.overSinceMs && endOf(fault) + closeMs >= this.overSinceMs;
    const near = this.scenario.faults.filter((fault) => reaches(fault) && isNear(fault));
    return near.length === 0 ? null : Math.min(...near.map(({ atMs }) => atMs));
  }

  get #home(): FleetMachine {
    return this.machines.get(home) as FleetMachine;
  }

  nextBehaviour({ sessionId }: ClaudeBook): Behaviour {
    const index = this.#used.get(sessionId) ?? 0;
    this.#used.set(sessionId, index + 1);
    return this.scenario.group.sessions[Number.parseInt(sessionId, 10) - 1]?.behaviours[index] ?? plain;
  }

  say(line: string): void {
    this.trace?.push(`${(this.timeline.nowMs / 1_000).toFixed(3).padStart(9)}  ${line}`);
  }

  violate(invariant: string, message: string): void {
    if (this.#only !== undefined && this.#only !== invariant) return;
    if (this.violation === null) this.say(`BROKEN ${invariant}: ${message}`);
    this.violation ??= { invariant, message };
  }

  #layOut(): void {
    const { leaseMs, hosts, group, seed, where } = this.scenario;
    const address = { redis: 'redis://127.0.0.1:6379', sealingKey: keys.sealingKey, leaseMs };
    for (const machine of this.machines.values()) {
      for (const path of [join(hostDataRoot, 'limits'), join(hostDataRoot, 'fleet'), dirname(claude)])
        machine.makeOldFolder(path);
      machine.disk.createFile(claude, createdMs);
    }
    for (const { name, slots } of hosts) {
      const machine = this.machines.get(name) as FleetMachine;
      const codeUrl = `${name}:${join(hostDataRoot, 'fleet/repositories')}`;
      const config = { version: 1, ...address, runnerKeys: [keys.publicKey], name, slots, labels: [], codeUrl };
      machine.disk.createFile(join(hostDataRoot, 'fleet/host.json'), createdMs).append(bytes(config), createdMs);
      machine.disk.syncAll();
      machine.serve();
    }
    const machine = this.#home;
    const config = { version: 1, ...address, signingKey: keys.signingKey, publicKey: keys.publicKey };
    machine.disk.createFile(join(hostDataRoot, 'fleet/fleet.json'), createdMs).append(bytes(config), createdMs);
    machine.makeOldFolder(project);
    machine.git.found(project, new Map([['readme.txt', 'hello\n']]));
    const luck = seededFor(seed, 'ids');
    const ids = group.sessions.map((_, index) => makeSessionId(index + 1, luck.uuid()));
    const sessions = group.sessions.map((sketch, index): SessionDefinition => {
      const { dependsOn, behaviours: _, acceptance: _none, ...settings } = sketch;
      const dependencies = dependsOn.flatMap((other) => ids[other] ?? []);
      const own = { id: ids[index] as string, prompt: `do part ${index + 1}`, repository: join(project, '.git') };
      return { ...newDefinition(createdMs, dependencies), ...own, isolate: 'worktree', ...settings };
    });
    const maker = new VirtualRunner(machine);
    const definition = {
      ...{ id: simulatedGroup().groupId, name: 'Simulated', description: '', slug: 'simulated' },
      ...{ createdAt: new Date(createdMs).toISOString(), config: { ...group.config, where } },
    };
    const created = createGroup(maker.world, hostDataRoot, definition, sessions);
    if (!created.ok) throw new Error(created.failure.message);
    maker.exit();
    machine.disk.syncAll();
  }

  #befall(fault: HostFault): void {
    this.say(`FAULT ${JSON.stringify(fault)}`);
    switch (fault.do) {
      case 'cut': {
        const { link } = this.machines.get(fault.who) as FleetMachine;
        if (fault.up) link.up = false;
        if (fault.down) link.down = false;
        this.timeline.schedule(fault.forMs, `the link of ${fault.who} is whole`, null, () => {
          this.say(`the link of ${fault.who} is whole`);
          link.up = true;
          link.down = true;
        });
        return;
      }
      case 'restart-engine':
        // It is being started already, and there is nothing more to stop.
        if (this.engine.isDown) return;
        this.engine.stop();
        this.timeline.schedule(fault.downMs, 'the engine starts', null, () => {
          this.say('the engine is there again');
          this.engine.restart(fault.downMs + fault.forgetsMs);
        });
        return;
      case 'kill-runner':
        this.#runner?.die('kill -9');
        this.#startsAtMs = this.timeline.nowMs + fault.downMs;
        return;
      default: {
        const machine = this.machines.get(fault.who) as FleetMachine;
        if (fault.do === 'crash') machine.crash(fault.downMs);
        else if (fault.do === 'kill-agent') machine.killAgent();
        else if (fault.do === 'kill-guard') machine.killGuard();
        else if (fault.do === 'suspend') machine.suspend(fault.forMs);
      }
    }
  }

  #lookLater(): void {
    this.timeline.schedule(lookMs, 'a check runs', null, () => {
      this.#look();
      if (!this.isDone) this.#lookLater();
    });
  }

  #look(): void {
    const { nowMs } = this.timeline;
    if (nowMs > longestMs) {
      const { state } = this.checks;
      const left = [...(state?.sessions ?? [])].map(
        ([
          id,
          {
            state: { status },
          },
        ]) => `${id.slice(0, 3)} ${status}`,
      );
      this.violate(
        fleetPromises.settled,
        `the group is ${state?.status} after ${longestMs / 60_000} min: ${left.join(', ')}`,
      );
      this.isDone = true;
      return;
    }
    if (this.#isCompleted || this.#home.isSuspended || nowMs < this.#startsAtMs || this.#runner?.alive) return;
    this.#start();
  }

  #start(): void {
    const machine = this.#home;
    const runner = new VirtualRunner(machine);
    this.#runner = runner;
    this.say(`${runner.process.name} starts`);
    const overrides = this.#overrides;
    this.#overrides = {};
    const work = runGroup(machine.worldOf(runner, this.wrap.world), {
      ...{
        root: hostDataRoot,
        groupId: simulatedGroup().groupId,
        callerEnv,
        packageRoot: simulatedPackageRoot,
        overrides,
        retryFailed: true,
      },
      openEngine: machine.opener(runner),
      reporter: {
        event: (event, state) => {
          this.say(describeEvent(event));
          machine.checks.knows(runner, state);
        },
        progress() {},
        waiting: (reason, message) => this.say(`waits: ${reason} ${message}`),
        summarize() {},
      },
      onSignal: () => () => {},
    });
    work.then(
      (result) => {
        if (!runner.alive) return;
        machine.checks.ended(runner);
        runner.exit();
        this.#onResult(result);
      },
      (error: unknown) => {
        if (runner.alive)
          this.violate(fleetPromises.exceptions, error instanceof Error ? `${error.stack}` : String(error));
      },
    );
  }

  #onResult(result: RunResult): void {
    const how = result.kind === 'refused' ? JSON.stringify(result.failure) : '';
    this.say(`group run: ${result.kind} ${result.kind === 'settled' ? result.status : how}`);
    this.#startsAtMs = this.timeline.nowMs + 3_000;
    if (result.kind !== 'settled' && result.kind !== 'already-completed') return;
    const { maxBudgetUsd } = result.state.group.config;
    if (result.kind === 'settled' && result.status !== 'completed') {
      // A cap below what is spent and held is refused.
      const leastUsd = Math.max(maxBudgetUsd ?? 0, result.state.usage.costUsd);
      if (maxBudgetUsd !== undefined) this.#overrides = { maxBudgetUsd: leastUsd + 0.5 };
      return;
    }
    this.#isCompleted = true;
    this.overSinceMs = this.timeline.nowMs;
    const healedMs = Math.max(0, ...this.scenario.faults.map(endOf));
    const unaskedMs = this.outOfReachSinceMs !== null ? slotUnaskedMs : 0;
    const waitMs = Math.max(0, healedMs - this.timeline.nowMs) + this.scenario.leaseMs + unaskedMs + restMs;
    this.#finish(waitMs, unaskedMs > 0);
  }

  #finish(waitMs: number, isUnasked: boolean): void {
    this.timeline.schedule(waitMs, 'all is over', null, () => {
      // A release that the engine has forgotten is not repeated.
      if (this.engine.hasForgotten && !isUnasked) return this.#finish(slotUnaskedMs, true);
      this.isDone = true;
      this.checks.settled();
    });
  }
}

/** For the history of a seed. */
function describeEvent({ type, ...rest }: GroupEvent): string {
  return `LOG ${type} ${JSON.stringify(rest).slice(0, 160)}`;
}

function endOf(fault: TimedFault): number {
  return fault.atMs + ('forMs' in fault ? fault.forMs : 'downMs' in fault ? fault.downMs : 0);
}

function bytes(value: object): Uint8Array {
  return new TextEncoder().encode(JSON.stringify(value));
}

/** The same scenario always gives the same report. */
export function simulateFleet(scenario: FleetScenario, options: FleetSimulationOptions = {}): FleetReport {
  const simulation = new FleetSimulation(scenario, options);
  let steps = 0;
  while (simulation.violation === null && !simulation.isDone) {
    const next = simulation.timeline.next();
    if (next === null || steps === stepsMax) {
      simulation.violate(fleetPromises.settled, next === null ? 'nothing is left to happen' : `${steps} steps`);
      break;
    }
    steps += 1;
    try {
      next.action();
      // All pending promises run until they wait for a host again.
      drainMicrotasks();
      simulation.checks.step();
    } catch (error) {
      simulation.violate(fleetPromises.exceptions, error instanceof Error ? `${error.stack}` : String(error));
    }
  }
  const { violation, trace, checks, timeline } = simulation;
  return { steps, violation, trace: trace ?? [], events: checks.events, seconds: timeline.nowMs / 1_000 };
}
