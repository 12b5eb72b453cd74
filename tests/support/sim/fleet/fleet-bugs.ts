/**
 * Fleet bugs to be found: each breaks one promise, by a world or an engine that returns wrong results or does less than
 * requested. The program itself is unchanged.
 */

import { ok } from '../../../../src/core/failure.ts';
import type { FleetEngine, SlotLeases } from '../../../../src/fleet/redis.ts';
import type { Processes, World } from '../../../../src/system/world.ts';
import { findsNothing } from '../bug-wraps.ts';
import { fleetPromises } from './fleet-checks.ts';
import type { FleetWrap } from './fleet-place.ts';
import { type FleetScenario, home, type TimedFault } from './fleet-scenario.ts';

export interface FleetBug {
  readonly name: string;
  readonly promise: string;
  readonly wrap: FleetWrap;
  /** Other faults of the hosts, if the bug would show too rarely. */
  readonly faults?: (scenario: FleetScenario) => readonly TimedFault[];
  /** Long leases, and no claude obeys SIGTERM. */
  readonly stubbornLeaseMs?: number;
}

/** Changes the result of a method's promise. */
function withEngine(engine: FleetEngine, changes: Partial<FleetEngine>): FleetEngine {
  return new Proxy(engine, {
    get: (target, name) => {
      const value = changes[name as keyof FleetEngine] ?? target[name as keyof FleetEngine];
      return typeof value === 'function' && !(name in changes) ? (value as () => unknown).bind(target) : value;
    },
  });
}

function withLeases(engine: FleetEngine, change: (leases: SlotLeases) => Partial<SlotLeases>): FleetEngine {
  return withEngine(engine, {
    leases: (leaseMs) => {
      const leases = engine.leases(leaseMs);
      return { ...leases, ...change(leases) };
    },
  });
}

function onHosts(change: (engine: FleetEngine) => FleetEngine): FleetWrap {
  return { engine: (engine, { name }) => (name === home ? engine : change(engine)) };
}

function atHome(change: (engine: FleetEngine) => FleetEngine): FleetWrap {
  return { engine: (engine, { name }) => (name === home ? change(engine) : engine) };
}

function reading(isMeant: (path: string) => boolean, change: (text: string) => string): FleetWrap {
  return {
    world: (world) => ({
      ...world,
      files: {
        ...world.files,
        readText: (path, what) => {
          const text = world.files.readText(path, what);
          return text !== null && isMeant(path) ? change(text) : text;
        },
      },
    }),
  };
}

function withProcesses(change: (processes: Processes, world: World) => Partial<Processes>): FleetWrap {
  return { world: (world) => ({ ...world, processes: { ...world.processes, ...change(world.processes, world) } }) };
}

/** All hosts are disconnected one after another, each for long. */
const cuts = ({ hosts, leaseMs }: FleetScenario): TimedFault[] =>
  hosts.map(({ name }, index) => ({
    ...{ atMs: 6_000 + index * 15_000, do: 'cut' as const, who: name, up: true, down: true },
    forMs: 2 * leaseMs + 60_000,
  }));
/** One host alone. */
const cutOne = (scenario: FleetScenario): TimedFault[] => cuts(scenario).slice(0, 1);
const kills =
  (what: 'kill-agent' | 'kill-guard', atMs: number) =>
  ({ hosts }: FleetScenario): TimedFault[] =>
    hosts.map(({ name }) => ({ atMs, do: what, who: name }));
const isLater = (text: string, byMs: number): string =>
  text.replace(/"renewedAt":(\d+)/g, (_, at: string) => `"renewedAt":${Number(at) + byMs}`);

export const fleetBugs: readonly FleetBug[] = [
  {
    name: 'the fence counts from long after the last renewal was sent',
    promise: fleetPromises.alone,
    wrap: reading(
      (path) => path.endsWith('/leases.json'),
      (text) => isLater(text, 60_000),
    ),
    faults: cuts,
  },
  {
    name: 'a host is lost when its lease is nearly over, and not 20 seconds after',
    promise: fleetPromises.alone,
    wrap: atHome((engine) =>
      withLeases(engine, (leases) => ({
        look: async (places) => {
          const seen = await leases.look(places);
          return seen.ok ? ok(seen.value.map((left) => (left === null || left < 24_000 ? null : left - 24_000))) : seen;
        },
      })),
    ),
    faults: cutOne,
    stubbornLeaseMs: 30_000,
  },
  {
    name: 'a renewal counts that was not answered',
    promise: fleetPromises.alone,
    wrap: onHosts((engine) =>
      withLeases(engine, (leases) => ({
        renew: async (all) => {
          await leases.renew(all);
          return ok(new Set());
        },
      })),
    ),
    faults: cuts,
  },
  {
    name: 'that the guard is gone is overlooked',
    promise: fleetPromises.alone,
    wrap: reading(
      (path) => path.endsWith('/guard.json'),
      (text) => text.replace(/"uptime":\d+/, '"uptime":99999999'),
    ),
    faults: (scenario) => [...kills('kill-guard', 4_000)(scenario), ...cuts(scenario)],
  },
  {
    name: 'that something was begun is forgotten with the agent',
    promise: fleetPromises.once,
    wrap: reading(
      (path) => path.endsWith('/slot.json'),
      (text) => text.replace(/"startedAt":"[^"]*",?/, ''),
    ),
    faults: kills('kill-agent', 12_000),
  },
  {
    name: 'a claude elsewhere gets no cap',
    promise: fleetPromises.money,
    wrap: withProcesses((processes) => ({
      spawn: (options) => {
        const at = options.args.indexOf('--max-budget-usd');
        return processes.spawn(at < 0 ? options : { ...options, args: options.args.toSpliced(at, 2) });
      },
    })),
  },
  {
    name: 'what a host says counts as sent, and some of it never comes',
    promise: fleetPromises.settled,
    wrap: onHosts((engine) => {
      let count = 0;
      return withEngine(engine, {
        send: async (stream, messages) => {
          count += 1;
          return count % 5 === 0 ? ok(['0']) : engine.send(stream, messages);
        },
      });
    }),
  },
  {
    name: 'what a lost attempt tells late is put behind what the next one printed',
    promise: fleetPromises.books,
    wrap: {
      world: (world, { name }) => {
        const aside = (path: string): string =>
          name === home ? path.replace(/transcript\.late-[^/]*/, 'transcript.jsonl') : path;
        return {
          ...world,
          files: {
            ...world.files,
            openAppend: (path) => world.files.openAppend(aside(path)),
            info: (path) => world.files.info(aside(path)),
            readBytes: (path, at, most) => world.files.readBytes(aside(path), at, most),
          },
        };
      },
    },
    faults: cuts,
  },
  {
    name: 'a slot is not given back',
    promise: fleetPromises.engine,
    wrap: atHome((engine) =>
      withEngine(engine, {
        send: (stream, messages) =>
          engine.send(
            stream,
            messages.filter((bytes) => !Buffer.from(bytes).includes('"do":"release"')),
          ),
      }),
    ),
  },
  {
    name: 'only what bears no mark is ended',
    promise: fleetPromises.leftovers,
    wrap: withProcesses(() => findsNothing),
  },
  {
    name: 'what came back of the work is not kept',
    promise: fleetPromises.work,
    wrap: withProcesses((processes, world) => ({
      run: (options) => {
        const isOurs = world.machine.host === home && options.args.includes('fetch');
        if (!isOurs || !options.args.some((arg) => arg.endsWith('/checkpoint'))) return processes.run(options);
        return Promise.resolve(ok({ exitCode: 0, stdout: '', stderr: '' }));
      },
    })),
  },
];

/** The scenario in which the bug is searched. */
export function withBug(scenario: FleetScenario, { faults, stubbornLeaseMs }: FleetBug): FleetScenario {
  const { group } = scenario;
  const leaseMs = stubbornLeaseMs ?? scenario.leaseMs;
  const stubborn = group.sessions.map((session) => ({
    ...session,
    behaviours: session.behaviours.map((behaviour) => ({
      ...behaviour,
      term: 'ignored' as const,
      messages: 12,
      slowness: 4,
    })),
  }));
  const sessions = stubbornLeaseMs === undefined ? group.sessions : stubborn;
  const story = { ...scenario, leaseMs, group: { ...group, sessions } };
  return faults === undefined ? story : { ...story, faults: [...faults(story)] };
}
