/**
 * One simulation from its scenario to its end: one pending action after another runs, and everything is checked.
 * `SIM_SEED=N sh scripts/bun.sh test tests/unit/sim/simulation.test.ts` replays one seed alone and prints its history.
 */
// Loaded only when needed, but nothing real is waited for here.
import '../../../src/worker/attempt/checks.ts';
import { drainMicrotasks } from 'bun:jsc';
import { invariants, SimulationChecks } from './checks.ts';
import type { Coverage } from './coverage.ts';
import { createVirtualGroup, simulatedGroup } from './group-setup.ts';
import type { Scenario } from './scenario.ts';
import { type Listen, SimulatedUser, type Wrap } from './user.ts';
import { type Violation, VirtualMachine } from './virtual-machine.ts';

/** More steps than any scenario needs; a longer simulation does not end. */
const stepsMax = 60_000;

export interface Report {
  readonly steps: number;
  readonly coverage: Coverage;
  readonly violation: Violation | null;
  /** Readable lines of what happened; empty unless requested. */
  readonly trace: readonly string[];
}

export interface SimulationOptions {
  readonly trace?: boolean;
  /** Inserts a planted bug between the program and the machine. */
  readonly wrap?: Wrap;
  /** Receives what the run's own reporter receives. */
  readonly listen?: Listen;
  /** The one promise to check; all of them by default. */
  readonly only?: string;
}

/** The same scenario always gives the same report. */
export function simulate(scenario: Scenario, options: SimulationOptions = {}): Report {
  const group = simulatedGroup();
  const machine = new VirtualMachine(scenario, group.paths.events, options.trace === true ? [] : null);
  machine.only = options.only ?? null;
  machine.checks = new SimulationChecks(machine);
  createVirtualGroup(machine, scenario);
  const user = new SimulatedUser(machine, group, options);
  let steps = 0;
  while (machine.violation === null && !user.isDone) {
    const next = machine.timeline.next();
    if (next === null || steps === stepsMax) {
      machine.violate(
        invariants.liveness,
        next === null ? 'nothing is left to happen' : `${stepsMax} steps were not enough`,
      );
      break;
    }
    steps += 1;
    takeStep(machine, next.action);
  }
  if (machine.violation === null) machine.checks.settled();
  return { steps, coverage: machine.coverage, violation: machine.violation, trace: machine.trace ?? [] };
}

function takeStep(machine: VirtualMachine, action: () => void): void {
  try {
    action();
    // All pending promises run until they wait for the machine again.
    drainMicrotasks();
    machine.checks.step();
  } catch (error) {
    machine.violate(invariants.exceptions, error instanceof Error ? (error.stack ?? error.message) : String(error));
  }
}
