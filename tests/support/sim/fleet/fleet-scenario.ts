/** The scenario of a seed: a group, the hosts of its fleet, and their faults until all is well again. */
import type { Behaviour, Scenario, SimulatedSession, VirtualEnding } from '../scenario.ts';
import { type Seeded, seededFor } from '../seeded.ts';

export type HostFault =
  /** The link of a host to the engine is cut, in both directions or in one. */
  | { readonly do: 'cut'; readonly who: string; readonly up: boolean; readonly down: boolean; readonly forMs: number }
  | { readonly do: 'restart-engine'; readonly downMs: number; readonly forgetsMs: number }
  | { readonly do: 'crash'; readonly who: string; readonly downMs: number }
  | { readonly do: 'kill-agent' | 'kill-guard'; readonly who: string }
  | { readonly do: 'suspend'; readonly who: string; readonly forMs: number }
  /** The runner dies, and the next one is started after a while. */
  | { readonly do: 'kill-runner'; readonly downMs: number };

export type TimedFault = { readonly atMs: number } & HostFault;

export interface FleetScenario {
  readonly seed: number;
  readonly group: Scenario;
  readonly leaseMs: number;
  readonly hosts: readonly { readonly name: string; readonly slots: number }[];
  readonly faults: readonly TimedFault[];
  /** Of the runner's host; it runs no session itself where it is `fleet`. */
  readonly where: 'fleet' | 'any';
}

/** The host of the runner. */
export const home = 'home';

const endings: readonly VirtualEnding[] = [
  'success',
  'success',
  'success',
  'killed',
  'silent',
  'overloaded',
  'exit-code',
];

function behaviourOf(luck: Seeded, isFirst: boolean): Behaviour {
  return {
    messages: luck.int(1, isFirst ? 12 : 4),
    tools: luck.chance(0.8),
    ending: luck.chance(0.75) ? 'success' : luck.pick(endings),
    slowness: luck.pick([0.5, 1, 2, 4, 8]),
    interrupt: luck.pick(['obeyed', 'slow', 'ignored']),
    term: luck.pick(['obeyed', 'obeyed', 'slow', 'ignored']),
    tool: luck.pick(['tame', 'tame', 'marked', 'stubborn']),
    pieces: luck.chance(0.2),
    forgets: false,
    nearLimit: false,
  };
}

function sessionsOf(luck: Seeded): SimulatedSession[] {
  const count = luck.int(2, 5);
  return Array.from({ length: count }, (_, index) => ({
    dependsOn: index > 0 && luck.chance(0.3) ? [luck.int(0, index - 1)] : [],
    retries: 5,
    behaviours: Array.from({ length: luck.int(1, 3) }, (_unused, turn) => behaviourOf(luck, turn === 0)),
  }));
}

function faultOf(luck: Seeded, hosts: readonly string[], leaseMs: number): HostFault {
  const who = luck.pick(hosts);
  const long = luck.pick([1_500, 5_000, leaseMs, leaseMs + 15_000, leaseMs + 45_000, 2 * leaseMs + 90_000]);
  const forMs = Math.round(long * (0.6 + luck.next() * 0.8));
  switch (luck.int(0, 7)) {
    case 0:
    case 1: {
      const one = luck.int(0, 2);
      const target = luck.chance(0.25) ? home : who;
      return { do: 'cut', who: target, up: one !== 1, down: one !== 2, forMs };
    }
    case 2:
      return {
        do: 'restart-engine',
        downMs: luck.int(100, 8_000),
        forgetsMs: luck.chance(0.25) ? luck.int(1_000, leaseMs) : luck.int(0, 1_000),
      };
    case 3:
      return { do: 'crash', who, downMs: forMs };
    case 4:
      return { do: 'kill-agent', who };
    case 5:
      return { do: 'kill-guard', who };
    case 6:
      return { do: 'suspend', who: luck.chance(0.2) ? home : who, forMs };
    default:
      return { do: 'kill-runner', downMs: luck.pick([500, 4_000, leaseMs + 30_000]) };
  }
}

export function fleetScenarioOf(seed: number): FleetScenario {
  const luck = seededFor(seed, 'fleet');
  const hosts = ['one', 'two', 'three'].slice(0, luck.int(2, 3)).map((name) => ({ name, slots: luck.int(1, 2) }));
  const leaseMs = luck.pick([8_000, 12_000, 30_000]);
  const sessions = sessionsOf(luck);
  const names = hosts.map(({ name }) => name);
  const faults = Array.from({ length: luck.int(1, 7) }, () => ({
    atMs: luck.int(1_000, luck.chance(0.6) ? 60_000 : 200_000),
    ...faultOf(luck, names, leaseMs),
  }));
  // Protocols break at faults of a disconnected host.
  const [first] = faults;
  if (first?.do === 'cut' && luck.chance(0.7)) {
    const atMs = first.atMs + luck.int(0, Math.min(first.forMs, 30_000));
    faults.push({ atMs, ...faultOf(luck, [first.who === home ? (names[0] as string) : first.who], leaseMs) });
  }
  const maxBudgetUsd = luck.chance(0.7) ? luck.pick([0.1, 0.3, 1, 5]) : undefined;
  const group: Scenario = {
    seed,
    cuts: [],
    config: {
      onBudgetExceeded: 'pause',
      warningThreshold: 0.8,
      maxConcurrentSessions: luck.int(1, 4),
      respectDependencies: true,
      pauseOnError: false,
      errorThreshold: 20,
      warmCache: false,
      ...(maxBudgetUsd === undefined ? {} : { maxBudgetUsd }),
    },
    sessions,
    acts: [],
    crashes: [],
    logins: [],
  };
  return {
    ...{ seed, group, leaseMs, hosts },
    faults: faults.toSorted((a, b) => a.atMs - b.atMs),
    where: luck.chance(0.15) ? 'any' : 'fleet',
  };
}
