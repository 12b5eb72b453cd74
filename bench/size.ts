/** A group of a thousand sessions, a hundred at a time, with a claude that costs next to nothing. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { readLog } from '../src/store/event-log.ts';
import { groupPaths } from '../src/store/paths.ts';
import { createRealWorld } from '../src/world/real-world.ts';
import { type Benchmark, type Figure, formatMs, median } from './support/figures.ts';
import { makeFolder, makeGroup, memoryPlace } from './support/group-on-disk.ts';
import { measureRun, type RunnerFigures, runnerRows } from './support/runner-process.ts';
import { tinyClaude } from './support/tasks.ts';

const full = { sessions: 1_000, concurrent: 100 };
const small = { sessions: 100, concurrent: 20 };
/** Long enough for all of them to be there at once, however slowly processes start here. */
const workSeconds = '6';
const filesMade = 200;
const targets = { peakBytes: 150e6, cpuMsEach: 3, syncsEach: 8 };

export const size: Benchmark = {
  about({ isQuick }) {
    const { sessions, concurrent } = isQuick ? small : full;
    return (
      `${sessions} sessions, ${concurrent} at a time, with a fake claude that works for ${workSeconds} s each. The ` +
      'files are in memory where that can be; what the disk of the temporary folder adds is told below.'
    );
  },
  async run({ isQuick, rounds }) {
    const shape = isQuick ? small : full;
    const runs: (RunnerFigures & { most: number })[] = [];
    for (let round = 0; round < rounds; round += 1) runs.push(await runOnce(shape));
    const most = { what: 'most workers at once', value: String(median(runs.map((run) => run.most))) };
    const disk = { what: 'CPU of a new file on disk', value: formatMs(costOfFile()), note: 'about ten a session' };
    const fake = { what: 'CPU of one fake itself', value: formatMs(costOfFake()), note: 'not in the figures above' };
    return [...runnerRows(runs, shape.sessions, targets), most, disk, fake] satisfies Figure[];
  },
};

async function runOnce({ sessions, concurrent }: typeof full): Promise<RunnerFigures & { most: number }> {
  const folder = makeFolder(memoryPlace());
  try {
    const group = makeGroup(createRealWorld(), folder, { sessions });
    const env = {
      CLAUDE_CODE_AGENT_CLAUDE: tinyClaude,
      ANTHROPIC_API_KEY: 'test-key',
      BENCH_STEPS: '3',
      BENCH_STEP_SECONDS: String(Number(workSeconds) / 3),
    };
    const figures = await measureRun(group, env, concurrent);
    return { ...figures, most: mostAtOnce(groupPaths(folder.root, group.groupId).events) };
  } finally {
    folder.remove();
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

/** CPU milliseconds of making a file where the groups are: disks differ in it a hundredfold. */
function costOfFile(): number {
  const folder = makeFolder();
  try {
    const { user, system } = process.cpuUsage();
    for (let number = 0; number < filesMade; number += 1) writeFileSync(join(folder.path, String(number)), 'x');
    const after = process.cpuUsage({ user, system });
    return (after.user + after.system) / 1000 / filesMade;
  } finally {
    folder.remove();
  }
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
