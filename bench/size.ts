/** A group of a thousand sessions, a hundred at a time, with a claude that costs next to nothing. */
import { join } from 'node:path';
import { readLog } from '../src/store/event-log.ts';
import { groupPaths } from '../src/store/paths.ts';
import { createRealWorld } from '../src/world/real-world.ts';
import { type Benchmark, type Figure, formatMs, median } from './support/figures.ts';
import { type BenchFolder, makeFolder, makeGroup } from './support/group-on-disk.ts';
import { measureRun, runnerRows } from './support/runner-process.ts';

const sessions = 1_000;
const concurrent = 100;
/** Long enough for a hundred of them to be there at once, however slowly processes start here. */
const workSeconds = 9;
const tinyClaude = join(import.meta.dir, 'support', 'tiny-claude.sh');

export const size: Benchmark = {
  about: `${sessions} sessions, ${concurrent} at a time, with a fake claude that works for ${workSeconds} s each.`,
  async run() {
    const folder = makeFolder();
    try {
      const fakeMs = costOfFake();
      const world = createRealWorld();
      const group = makeGroup(world, folder, { sessions });
      const env = {
        CLAUDE_CODE_AGENT_CLAUDE: tinyClaude,
        ANTHROPIC_API_KEY: 'test-key',
        BENCH_WORK_SECONDS: String(workSeconds),
      };
      const figures = await measureRun(group, env, concurrent);
      return [
        ...runnerRows(figures, sessions, 'target ≤ 150 MB'),
        mostAtOnce(folder, group.groupId),
        { what: 'CPU of one fake itself', value: formatMs(fakeMs), beside: 'not in the figures above' },
      ];
    } finally {
      folder.remove();
    }
  },
};

function mostAtOnce(folder: BenchFolder, groupId: string): Figure {
  const log = readLog(createRealWorld(), groupPaths(folder.root, groupId).events);
  if (!log.ok) throw new Error(log.failure.message);
  let running = 0;
  let most = 0;
  for (const { type } of log.value) {
    if (type === 'session_starting') running += 1;
    if (type === 'session_completed' || type === 'session_failed' || type === 'session_paused') running -= 1;
    most = Math.max(most, running);
  }
  return { what: 'most workers at once', value: String(most), beside: `${log.value.length} events` };
}

/** CPU milliseconds of a whole life of the fake, its own children included. */
function costOfFake(): number {
  const lives = Array.from({ length: 11 }, () => {
    const env = { PATH: process.env.PATH ?? '', BENCH_WORK_SECONDS: '0' };
    const { resourceUsage } = Bun.spawnSync([tinyClaude], { env, stdin: Buffer.from('{}\n'), stdout: 'ignore' });
    return Number(resourceUsage?.cpuTime.total ?? 0) / 1000;
  });
  return median(lives);
}
