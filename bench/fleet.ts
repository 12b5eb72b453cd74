/**
 * Sessions on four machines, all of them on this one: what a session costs at each end, how close the whole comes to
 * the least there can be while its runner is killed, and how fast a transcript comes here.
 */
import { availableParallelism } from 'node:os';
import { type Cpu, runAtScale, type ScaleResult, type ScaleShape } from '../tests/support/fleet-scale.ts';
import { shipTranscript } from '../tests/support/fleet-shipping.ts';
import {
  atLeast,
  atMost,
  type Benchmark,
  type Figure,
  formatMs,
  formatRate,
  formatRatio,
  lacking,
  measured,
  median,
  mib,
  missing,
} from './support/figures.ts';

const full: ScaleShape = { sessions: 1_000, machines: 4, slots: 25, seconds: 1, kills: 5 };
const small: ScaleShape = { sessions: 60, machines: 4, slots: 5, seconds: 1, kills: 2 };
/** The cores of one machine do here what those of five would; in a minute they get further than in a second. */
const fullLong: ScaleShape = { sessions: 200, machines: 4, slots: 25, seconds: 60, kills: 2 };
const smallLong: ScaleShape = { sessions: 20, machines: 4, slots: 5, seconds: 5, kills: 1 };
const shipped = { bytes: 64 * mib, quickBytes: 8 * mib };
/** Of the rows that take minutes. */
const roundsMax = 1;
const targetRatio = 1.1;
const targetRate = 50e6;

type Result = Omit<ScaleResult, 'ground'>;

const shapesOf = (isQuick: boolean): [short: ScaleShape, long: ScaleShape] =>
  isQuick ? [small, smallLong] : [full, fullLong];

export const fleet: Benchmark = {
  about({ isQuick }) {
    const [{ sessions, machines, slots, seconds, kills }, long] = shapesOf(isQuick);
    return (
      `${sessions} sessions of ${seconds} s on ${machines} machines with ${slots} slots each, all on this one with a ` +
      `redis-server of their own; the runner is killed ${kills} times. Each session has a worktree at both ends and ` +
      `makes a file. The same with ${long.sessions} sessions of ${long.seconds} s, whose runner is killed ` +
      `${long.kills} times. Then one transcript, from the file of a machine through Redis to the file here.`
    );
  },
  async run({ isQuick, rounds }) {
    const absent = lacking(['redis-server', 'git']);
    if (absent.length > 0) return [missing('sessions on other machines', absent)];
    const [short, long] = shapesOf(isQuick);
    const times = Math.min(rounds, roundsMax);
    const ofShort = await resultsOf(short, times);
    const ofLong = await resultsOf(long, times);
    const { target: aside, ...longer } = wallRow(long, ofLong);
    const rates: { readonly ms: number; readonly cpu: Cpu }[] = [];
    const bytes = isQuick ? shipped.quickBytes : shipped.bytes;
    for (let round = 0; round < rounds; round += 1) rates.push(await shipTranscript(bytes));
    return [
      ...scaleRows(short, ofShort),
      { ...longer, aside, what: `wall time of ${long.sessions} sessions of ${long.seconds} s` },
      twiceRow(ofLong),
      ...shippingRows(bytes, rates),
    ];
  },
};

async function resultsOf(shape: ScaleShape, rounds: number): Promise<Result[]> {
  const results: Result[] = [];
  for (let round = 0; round < rounds; round += 1) {
    const { ground, ...result } = await runAtScale(shape);
    await ground.close();
    results.push(result);
  }
  return results;
}

function wallRow({ sessions, machines, slots, seconds }: ScaleShape, results: readonly Result[]) {
  const boundMs = Math.ceil(sessions / (machines * slots)) * seconds * 1000;
  const wallMs = results.map((result) => result.wallMs);
  return {
    ...measured('wall time of all', wallMs),
    ratio: `${formatRatio(median(wallMs) / boundMs)} the least`,
    target: atMost(median(wallMs), boundMs * targetRatio),
    note: `the least is ${formatMs(boundMs)}: all work divided by the slots`,
  } satisfies Figure;
}

function twiceRow(results: readonly Result[]): Figure {
  const repeated = results.map(({ starts }) => [...starts.values()].reduce((sum, count) => sum + count - 1, 0));
  return {
    what: 'sessions that were told their task twice',
    value: String(median(repeated)),
    target: atMost(median(repeated), 0, String),
  };
}

function scaleRows(shape: ScaleShape, results: readonly Result[]): Figure[] {
  const { sessions } = shape;
  const of = (read: (result: Result) => number) => results.map(read);
  const each = (what: string, read: (result: Result) => Cpu, note: string): Figure => ({
    ...measured(
      what,
      of((result) => (read(result).own + read(result).started) / sessions),
    ),
    note: `${note}; ${formatMs(median(of((result) => read(result).started / sessions)))} of it is git`,
  });
  const cpuMs = of(({ runner, agents, redis }) =>
    [runner, agents, redis].reduce((sum, { own, started }) => sum + own + started, 0),
  );
  const cores = availableParallelism();
  return [
    wallRow(shape, results),
    {
      ...measured('CPU of both ends', cpuMs),
      note: `takes ${formatMs(median(cpuMs) / cores)} on ${cores} cores, however many slots there are`,
    },
    each('runner’s CPU a session', ({ runner }) => runner, 'without what it took after the last look before it died'),
    each('agents’ CPU a session', ({ agents }) => agents, 'all of them, without what they start for claude'),
    {
      ...measured(
        'CPU of Redis a session',
        of(({ redis }) => redis.own / sessions),
      ),
    },
    twiceRow(results),
  ];
}

function shippingRows(bytes: number, rates: readonly { readonly ms: number; readonly cpu: Cpu }[]): Figure[] {
  const ms = rates.map((one) => one.ms);
  const rate = (one: number) => formatRate(bytes, one);
  return [
    {
      ...measured('transcript, machine to runner', ms, rate),
      target: atLeast((bytes / median(ms)) * 1000, targetRate, rate((bytes / targetRate) * 1000)),
    },
    {
      ...measured(
        'CPU of both ends for that',
        rates.map(({ cpu }) => cpu.own),
      ),
      note: 'agent, runner’s end and Redis',
    },
  ];
}
