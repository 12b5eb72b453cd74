/** A group of a thousand sessions, a hundred at a time, with a claude that costs next to nothing. */
import { tmpdir } from 'node:os';
import { readLog } from '../src/store/event-log.ts';
import { groupPaths } from '../src/store/paths.ts';
import { createRealWorld } from '../src/system/real-world.ts';
import { type Benchmark, type Figure, formatMs, measured, median, ratio } from './support/figures.ts';
import { makeFolder, makeGroupOnDisk, memoryPlace } from './support/group-on-disk.ts';
import { type Contender, inTurns } from './support/in-turns.ts';
import { tinyClaude } from './support/places.ts';
import { measureRun, type RunnerFigures, runnerRows } from './support/runner-process.ts';

/** Six seconds are long enough for all of them to be there at once, however slowly processes start here. */
const full: Shape = { sessions: 1_000, concurrent: 100, workSeconds: 6 };
const small: Shape = { sessions: 40, concurrent: 20, workSeconds: 1.5 };
/** For what the disk adds, so many that what a start takes does not hide it. */
const onDisk: Shape = { sessions: 300, concurrent: 100, workSeconds: 1.5 };
const smallOnDisk: Shape = { sessions: 40, concurrent: 20, workSeconds: 0.6 };
/**
 * Of CPU, 3 ms until each attempt got a control group and a transcript that is on the disk before more is asked
 * of the model. A night of a thousand sessions takes eight seconds of it.
 */
const targets = { peakBytes: 150e6, cpuMsEach: 8, syncsEach: 8 };

interface Shape {
  readonly sessions: number;
  readonly concurrent: number;
  /** How long each of them works. */
  readonly workSeconds: number;
}

export const size: Benchmark = {
  about({ isQuick }) {
    const { sessions, concurrent, workSeconds } = isQuick ? small : full;
    const short = isQuick ? smallOnDisk : onDisk;
    return (
      `${sessions} sessions, ${concurrent} at a time, with a fake claude that works for ${workSeconds} s each. The ` +
      `files are in memory where that can be. What the disk of the temporary folder adds is measured with ` +
      `${short.sessions} sessions of ${short.workSeconds} s, in turns with the same in memory.`
    );
  },
  async run({ isQuick, rounds }) {
    const shape = isQuick ? small : full;
    const runs: (RunnerFigures & { most: number })[] = [];
    for (let round = 0; round < rounds; round += 1) runs.push(await runOnce(shape, memoryPlace()));
    const most = { what: 'most workers at once', value: String(median(runs.map((run) => run.most))) };
    const fake = { what: 'CPU of one fake itself', value: formatMs(costOfFake()), note: 'not in the figures above' };
    // The targets are about a thousand sessions: a start counts for more with fewer.
    const rows = runnerRows(runs, shape.sessions, isQuick ? {} : targets);
    return [...rows, most, ...(await diskRows(isQuick ? smallOnDisk : onDisk, rounds)), fake] satisfies Figure[];
  },
};

/** The runner's CPU with its files in memory and on the disk of the temporary folder. */
async function diskRows(shape: Shape, rounds: number): Promise<Figure[]> {
  const contender = (name: string, place: string): Contender => ({
    name: `runner’s CPU a session, ${name}`,
    run: async () => (await runOnce(shape, place)).cpuMs / shape.sessions,
  });
  const contenders = [contender('short ones in memory', memoryPlace()), contender('short ones on this disk', tmpdir())];
  const taken = [...(await inTurns(contenders, rounds)).taken];
  const inMemoryMs = median(taken[0]?.[1] ?? []);
  return taken.map(([name, values], place) => ({
    ...measured(name, values),
    ratio: place === 0 ? '1' : `${ratio(median(values), inMemoryMs)} in memory`,
  }));
}

async function runOnce(
  { sessions, concurrent, workSeconds }: Shape,
  place: string,
): Promise<RunnerFigures & { most: number }> {
  const folder = makeFolder(place);
  try {
    const group = makeGroupOnDisk(createRealWorld(), folder, { sessions });
    const env = {
      CLAUDE_CODE_AGENT_CLAUDE: tinyClaude,
      ANTHROPIC_API_KEY: 'test-key',
      BENCH_STEPS: '3',
      BENCH_STEP_SECONDS: String(workSeconds / 3),
    };
    const figures = await measureRun(group, env, concurrent);
    return { ...figures, most: mostAtOnce(groupPaths(folder.root, group.groupId).events) };
  } finally {
    folder.removeFromMemory();
  }
}

function mostAtOnce(path: string): number {
  const log = readLog(createRealWorld(), path);
  if (!log.ok) throw new Error(log.failure.message);
  let running = 0;
  let most = 0;
  for (const { type } of log.value) {
    if (type === 'session_starting') running += 1;
    if (type === 'session_completed' || type === 'session_failed' || type === 'session_paused') running -= 1;
    most = Math.max(most, running);
  }
  return most;
}

/** CPU milliseconds of a whole life of the fake, its own children included. */
function costOfFake(): number {
  const lives = Array.from({ length: 11 }, () => {
    const env = { PATH: process.env.PATH ?? '', BENCH_STEPS: '3', BENCH_STEP_SECONDS: '0' };
    const { resourceUsage } = Bun.spawnSync([tinyClaude], { env, stdin: Buffer.from('{}\n'), stdout: 'ignore' });
    return Number(resourceUsage?.cpuTime.total ?? 0) / 1000;
  });
  return median(lives);
}
