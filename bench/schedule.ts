/** What the scheduler adds to the work: beside xargs, GNU parallel and make, which start the very same program. */
import { writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createRealWorld } from '../src/system/real-world.ts';
import { noteTried } from '../tests/support/tried.ts';
import {
  atMost,
  type Benchmark,
  type Effort,
  type Figure,
  formatMs,
  formatRatio,
  measured,
  median,
  ratio,
} from './support/figures.ts';
import { makeFolder, makeGroup, memoryPlace } from './support/group-on-disk.ts';
import { type Contender, inTurns, type Standings } from './support/in-turns.ts';
import { randomGraph, shortestMs, type Task, tinyClaude } from './support/tasks.ts';

const launcher = join(import.meta.dir, '../bin/claude-code-agent');
/**
 * Was 1.1 until each attempt got a control group and a transcript on the disk, which a task of `xargs` has not: some
 * milliseconds of CPU a task, which show only because tasks of 100 ms fill both cores here. Sessions take minutes.
 */
const flat = { tasks: 120, quickTasks: 40, taskMs: 100, wide: 8, targetRatio: 1.35 };
const graph = { tasks: 300, quickTasks: 32, wide: 16, targetRatio: 1.05 };
const ours = 'group run';
const oursOnDisk = 'group run, files on this disk';

export const schedule: Benchmark = {
  about: ({ isQuick }) =>
    `${isQuick ? flat.quickTasks : flat.tasks} tasks of ${flat.taskMs} ms, ${flat.wide} at a time; and a random ` +
    'graph of ' +
    `${isQuick ? graph.quickTasks : graph.tasks} tasks of 200 to 1,000 ms, ${graph.wide} at a time. A task is ` +
    'bench/support/tiny-claude.sh, a shell script around `sleep`, for everyone; wall time of one whole command, from ' +
    'its start to its end. Ours reads a group made before, the others a list or a makefile made before; only ours ' +
    'asks for the login, writes a config dir for each session, follows and judges what it prints, ends it, looks for ' +
    'what it may have left running and fsyncs its log. Its files are in memory where that can be; what four fsyncs a ' +
    'session take on the disk of the temporary folder are rows of their own. It does not warm the prompt cache ' +
    '(--no-warm-cache), for these tasks have none.',
  async run(effort) {
    return [...(await measureFlat(effort)), ...(await measureGraph(effort))];
  },
};

async function measureFlat({ isQuick, rounds }: Effort): Promise<Figure[]> {
  const { taskMs, wide } = flat;
  const tasks = Array.from({ length: isQuick ? flat.quickTasks : flat.tasks }, (): Task => ({ ms: taskMs, after: [] }));
  const list = tasks.map((_, index) => String(index + 1)).join('\n');
  const fromList = (...command: string[]) => time(command, { env: { BENCH_STEP_SECONDS: seconds(taskMs) }, list });
  const standings = await inTurns(
    [
      contender('xargs -P', ['xargs'], () => fromList('xargs', '-P', String(wide), '-n', '1', tinyClaude)),
      // Whoever measures with it has read what it asks to be cited for; --will-cite keeps it from asking here.
      contender('GNU parallel', ['parallel'], () =>
        fromList('parallel', '--will-cite', '-j', String(wide), tinyClaude, '{}'),
      ),
      makeContender(tasks, wide),
      ourContender(ours, tasks, wide, memoryPlace()),
      ourContender(oursOnDisk, tasks, wide, tmpdir()),
    ],
    rounds,
  );
  const leastMs = shortestMs(tasks, wide);
  const peer = standings.taken.get('xargs -P');
  if (peer === undefined) return rows(standings, 'flat', leastMs, 'the sleeping alone', null, leastMs);
  return rows(standings, 'flat', median(peer), 'xargs -P', flat.targetRatio, leastMs);
}

async function measureGraph({ isQuick, rounds }: Effort): Promise<Figure[]> {
  const tasks = randomGraph(isQuick ? graph.quickTasks : graph.tasks);
  const { wide } = graph;
  const contenders = [
    makeContender(tasks, wide),
    ourContender(ours, tasks, wide, memoryPlace()),
    ourContender(oursOnDisk, tasks, wide, tmpdir()),
  ];
  const standings = await inTurns(contenders, rounds);
  const leastMs = shortestMs(tasks, graph.wide);
  const figures = rows(standings, 'graph', leastMs, 'the least there can be', graph.targetRatio, leastMs);
  const note = 'the longest chain, or all work divided by the slots';
  return [...figures, { what: 'graph: the least there can be', value: formatMs(leastMs), note }];
}

function rows(
  { taken, absent }: Standings,
  what: string,
  baseMs: number,
  base: string,
  targetRatio: number | null,
  leastMs: number,
): Figure[] {
  const figures = [...taken].map(([name, values]): Figure => {
    const compared = median(values) / baseMs;
    const held = targetRatio === null ? undefined : atMost(compared, targetRatio, formatRatio);
    return {
      ...measured(`${what}: ${name}`, values),
      ratio: name === base ? '1' : `${formatRatio(compared)} ${base}`,
      ...(held !== undefined && name === ours ? { target: held } : {}),
      ...(held !== undefined && name === oursOnDisk ? { aside: held } : {}),
      ...(base === 'xargs -P' ? { note: `${ratio(median(values), leastMs)} the sleeping alone` } : {}),
    };
  });
  return [...figures, ...absent.map((figure) => ({ ...figure, what: `${what}: ${figure.what}` }))];
}

function contender(name: string, needs: readonly string[], run: () => number): Contender {
  return { name, needs, run };
}

/** A makefile with a target for each task. */
function makeContender(tasks: readonly Task[], wide: number): Contender {
  return contender('make -j', ['make'], () => {
    const folder = makeFolder();
    try {
      const names = tasks.map((_, index) => `task-${index}`);
      const rules = tasks.map(({ ms, after }, index) => {
        const needs = after.map((other) => names[other]).join(' ');
        return `${names[index]}: ${needs}\n\t@BENCH_STEP_SECONDS=${seconds(ms)} ${tinyClaude} </dev/null\n`;
      });
      writeFileSync(
        join(folder.path, 'Makefile'),
        `all: ${names.join(' ')}\n.PHONY: all ${names.join(' ')}\n${rules.join('')}`,
      );
      return time(['make', '-j', String(wide), '-C', folder.path, 'all'], { env: {} });
    } finally {
      folder.remove();
    }
  });
}

/** A group in `place` with a session for each task; made anew for each run and not counted. */
function ourContender(name: string, tasks: readonly Task[], wide: number, place: string): Contender {
  return contender(name, [], () => {
    const folder = makeFolder(place);
    try {
      const { groupId, env } = makeGroup(createRealWorld(), folder, {
        sessions: tasks.length,
        after: (index) => tasks[index]?.after ?? [],
        session: (index) => ({ prompt: `Work: seconds=${seconds(tasks[index]?.ms ?? 0)};` }),
      });
      noteTried(folder.root, tinyClaude);
      const shape = ['--concurrent', String(wide), '--min-free-memory', '1', '--no-warm-cache'];
      const workers = { CLAUDE_CODE_AGENT_CLAUDE: tinyClaude, ANTHROPIC_API_KEY: 'test-key' };
      return time([launcher, 'group', 'run', groupId, ...shape, '--output', 'quiet'], { env: { ...env, ...workers } });
    } finally {
      folder.removeFromMemory();
    }
  });
}

function seconds(ms: number): string {
  return (ms / 1000).toFixed(3);
}

/** Milliseconds of a command from start to end; throws when it fails. `list` is its input. */
function time(command: readonly string[], given: { env: Readonly<Record<string, string>>; list?: string }): number {
  const env = { PATH: process.env.PATH ?? '', HOME: '/nonexistent', LANG: 'C.UTF-8', ...given.env };
  const stdin = given.list === undefined ? 'ignore' : Buffer.from(`${given.list}\n`);
  const begin = performance.now();
  const { exitCode, stderr } = Bun.spawnSync([...command], { env, stdin, stdout: 'ignore', stderr: 'pipe' });
  const ms = performance.now() - begin;
  if (exitCode !== 0) throw new Error(`${command.slice(0, 4).join(' ')} … ended with ${exitCode}: ${stderr}`);
  return ms;
}
