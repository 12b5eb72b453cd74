/** What the parts of a simulated fleet know of each other. */
import type { FleetEngine } from '../../../../src/fleet/redis.ts';
import type { World } from '../../../../src/system/world.ts';
import type { ClaudeBook } from '../books.ts';
import type { Behaviour } from '../scenario.ts';
import type { Timeline } from '../virtual-clock.ts';
import type { FleetChecks } from './fleet-checks.ts';
import type { FleetMachine } from './fleet-machine.ts';
import type { FleetScenario } from './fleet-scenario.ts';
import type { VirtualEngine } from './virtual-engine.ts';
import type { Objects } from './virtual-git.ts';

/** What a planted bug inserts between the program and its surroundings. */
export interface FleetWrap {
  readonly world?: (world: World, machine: FleetMachine) => World;
  readonly engine?: (engine: FleetEngine, machine: FleetMachine) => FleetEngine;
}

export interface FleetPlace {
  readonly scenario: FleetScenario;
  readonly timeline: Timeline;
  readonly objects: Objects;
  readonly engine: VirtualEngine;
  readonly machines: ReadonlyMap<string, FleetMachine>;
  readonly checks: FleetChecks;
  readonly wrap: FleetWrap;
  readonly trace: string[] | null;
  /** When the last run ended, milliseconds. */
  readonly overSinceMs: number;
  readonly wasRunnerKilled: boolean;
  /** It may have been disconnected or killed by then, so that it received nothing and could not release slots. */
  readonly outOfReachSinceMs: number | null;
  nextBehaviour(book: ClaudeBook): Behaviour;
  say(line: string): void;
  violate(invariant: string, message: string): void;
}
