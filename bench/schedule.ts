/** What the scheduler adds to the work: beside xargs, which starts the very same program. */
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createRealWorld } from '../src/system/real-world.ts';
import { noteTried } from '../tests/support/tried.ts';
import { atMost, type Benchmark, type Figure, formatRatio, measured, median, ratio } from './support/figures.ts';
import { makeFolder, makeGroupOnDisk, memoryPlace } from './support/group-on-disk.ts';
import { type Contender, inTurns, type Standings } from './support/in-turns.ts';
import { tinyClaude } from './support/places.ts';

const launcher = join(import.meta.dir, '../bin/claude-code-agent');
const [fullTasks, quickTasks, taskSeconds, wide] = [120, 40, 0.1, 8];
/**
 * Each attempt gets a control group and a transcript on the disk, which a task of `xargs` has not: some milliseconds of
 * CPU, which show only because tasks of 100 ms fill both cores here. Sessions take minutes.
 */
const targetRatio = 1.35;
const peer = 'xargs -P';
const ours = 'group run';
const oursOnDisk = 'group run, files on this disk';

const tasksOf = (isQuick: boolean): number => (isQuick ? quickTasks : fullTasks);

export const scheduling: Benchmark = {
  about: ({ isQuick }) =>
    `${tasksOf(isQuick)} tasks of 100 ms, ${wide} at a time. A task is bench/support/tiny-claude.sh, a shell script ` +
    'around `sleep`, for everyone; wall time of one whole command, from its start to its end. Ours reads a group ' +
    'made before, xargs a list; only ours asks for the login, writes a config dir for each session, follows and ' +
    'judges what it prints, ends it, looks for what it may have left running and fsyncs its log. Its files are in ' +
    'memory where that can be; what four fsyncs a session take on the disk of the temporary folder is a row of its ' +
    'own. It does not warm the prompt cache (--no-warm-cache), for these tasks have none.',
  async run({ isQuick, rounds }) {
    const tasks = tasksOf(isQuick);
    const contenders = [xargs(tasks), group(ours, tasks, memoryPlace()), group(oursOnDisk, tasks, tmpdir())];
    return rows(await inTurns(contenders, rounds), (tasks * taskSeconds * 1000) / wide);
  },
};

function rows({ taken, absent }: Standings, leastMs: number): Figure[] {
  const peerMs = median(taken.get(peer) ?? []);
  const figures = [...taken].map(([name, values]): Figure => {
    const compared = median(values) / peerMs;
    const held = Number.isNaN(peerMs) ? undefined : atMost(compared, targetRatio, formatRatio);
    return {
      ...measured(name, values),
      ...(held === undefined ? {} : { ratio: name === peer ? '1' : `${formatRatio(compared)} ${peer}` }),
      ...(held !== undefined && name === ours ? { target: held } : {}),
      ...(held !== undefined && name === oursOnDisk ? { aside: held } : {}),
      note: `${ratio(median(values), leastMs)} the sleeping alone`,
    };
  });
  return [...figures, ...absent];
}

function xargs(tasks: number): Contender {
  const list = Array.from({ length: tasks }, (_, index) => `${index + 1}\n`).join('');
  const command = ['xargs', '-P', String(wide), '-n', '1', tinyClaude];
  const env = { BENCH_STEP_SECONDS: String(taskSeconds) };
  return { name: peer, needs: ['xargs'], run: () => time(command, env, list) };
}

/** A group in `place` with a session for each task; created again for each run and not measured. */
function group(name: string, tasks: number, place: string): Contender {
  const run = (): number => {
    const folder = makeFolder(place);
    try {
      const { groupId, env } = makeGroupOnDisk(createRealWorld(), folder, { sessions: tasks });
      noteTried(folder.root, tinyClaude);
      const shape = ['--concurrent', String(wide), '--min-free-memory', '1', '--no-warm-cache'];
      const workers = { CLAUDE_CODE_AGENT_CLAUDE: tinyClaude, ANTHROPIC_API_KEY: 'test-key' };
      return time([launcher, 'group', 'run', groupId, ...shape, '--output', 'quiet'], {
        ...env,
        ...workers,
        BENCH_STEP_SECONDS: String(taskSeconds),
      });
    } finally {
      folder.removeFromMemory();
    }
  };
  return { name, run };
}

/** Milliseconds of a command from start to end; throws when it fails. */
function time(command: readonly string[], given: Readonly<Record<string, string>>, stdin = ''): number {
  const env = { PATH: process.env.PATH ?? '', HOME: '/nonexistent', LANG: 'C.UTF-8', ...given };
  const begin = performance.now();
  const { exitCode, stderr } = Bun.spawnSync([...command], { env, stdin: Buffer.from(stdin), stdout: 'ignore' });
  const ms = performance.now() - begin;
  if (exitCode !== 0) throw new Error(`${command.slice(0, 4).join(' ')} … ended with ${exitCode}: ${stderr}`);
  return ms;
}
