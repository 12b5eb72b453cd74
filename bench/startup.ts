/** How long a user waits for the commands that only look: with no group, many groups, and one large group. */
import { mkdirSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import { planOf } from '../src/core/plan/plan.ts';
import { loadGroup } from '../src/store/group-store.ts';
import { openGroupWriter } from '../src/store/group-writer.ts';
import { groupPaths, groupsFolder } from '../src/store/paths.ts';
import { createRealWorld } from '../src/system/real-world.ts';
import type { World } from '../src/system/world.ts';
import { type CountingWorld, createCountingWorld } from './support/counting-world.ts';
import {
  atMost,
  type Benchmark,
  type Effort,
  type Figure,
  formatMs,
  measured,
  median,
  ratio,
  timed,
} from './support/figures.ts';
import { type BenchFolder, inChains, makeFolder, makeGroup } from './support/group-on-disk.ts';
import { inFlight, Story } from './support/story.ts';
import { tinyClaude } from './support/tasks.ts';

const launcher = join(import.meta.dir, '../bin/claude-code-agent');
/** Groups of one user, and sessions of one group. */
const many = 10_000;
const quickMany = 300;
const startTargetMs = 60;
const listTargetMs = 300;
const largeTargetMs = 1_000;
/** A start takes so little time that more of them are taken together. */
const startsInRound = 4;
/** createGroup looks through its data root, so many groups are made in small roots and moved together. */
const groupsAtOnce = 100;

export const startup: Benchmark = {
  about: () => 'Commands by the launcher, from the start to the end of the process; beside it a Bun that does nothing.',
  async run(effort) {
    const folder = makeFolder();
    try {
      return [...measureStart(folder, effort), ...measureMany(folder, effort), ...measureLargeGroups(effort)];
    } finally {
      folder.remove();
    }
  },
};

/** Short commands and a bare Bun, in turns. */
function measureStart(folder: BenchFolder, { isQuick, rounds }: Effort): Figure[] {
  const created = makeGroup(fastWorld(), folder, { sessions: 1 }, isQuick ? quickMany : many).groupId;
  const commands = new Map<string, readonly string[]>([
    ['bun -e 0', [process.execPath, '-e', '0']],
    ['--version', [launcher, '--version']],
    ['group list', [launcher, 'group', 'list']],
    ['group show', [launcher, 'group', 'show', created]],
    ['group create', [launcher, 'group', 'create', 'another']],
    ['session add', [launcher, 'session', 'add', created, '--project', folder.project, '--prompt', 'Do it.']],
  ]);
  const taken = new Map([...commands.keys()].map((name) => [name, [] as Taken[]]));
  for (let round = 0; round < rounds * startsInRound; round += 1) {
    for (const [name, command] of commands) taken.get(name)?.push(timeOf(command, folder));
  }
  const bareMs = median(taken.get('bun -e 0')?.map(({ wallMs }) => wallMs) ?? []);
  return [...taken].map(([name, values]): Figure => {
    const wall = values.map(({ wallMs }) => wallMs);
    const isTarget = name === 'group list';
    return {
      ...measured(isTarget ? 'group list, one group' : name, wall),
      ratio: name === 'bun -e 0' ? '1' : `${ratio(median(wall), bareMs)} bare Bun`,
      ...(isTarget ? { target: atMost(median(wall), startTargetMs) } : {}),
      note: `${formatMs(median(values.map(({ cpuMs }) => cpuMs)))} of CPU`,
    };
  });
}

function measureMany(folder: BenchFolder, { isQuick, rounds }: Effort): Figure[] {
  const groups = isQuick ? quickMany : many;
  for (let made = 0; made < groups; made += groupsAtOnce) addGroups(folder, made);
  const files = ['(', '-name', 'meta.json', '-o', '-name', 'events.jsonl', ')'];
  const reader = ['find', groupsFolder(folder.root), ...files, '-exec', 'cat', '{}', '+'];
  const [lists, readers]: [Taken[], Taken[]] = [[], []];
  for (let round = 0; round < rounds; round += 1) {
    readers.push(timeOf(reader, folder));
    lists.push(timeOf([launcher, 'group', 'list'], folder));
  }
  const row = (what: string, taken: readonly Taken[]): Figure => ({
    ...measured(
      what,
      taken.map(({ wallMs }) => wallMs),
    ),
    note: `${formatMs(median(taken.map(({ cpuMs }) => cpuMs)))} of CPU`,
  });
  const [listMs, readMs] = [lists, readers].map((taken) => median(taken.map(({ wallMs }) => wallMs))) as [
    number,
    number,
  ];
  return [
    { ...row(`find -exec cat, the files of ${groups} groups`, readers), ratio: '1' },
    {
      ...row(`group list, ${groups} groups`, lists),
      ratio: `${ratio(listMs, readMs)} cat`,
      ...(isQuick ? {} : { target: atMost(listMs, listTargetMs) }),
    },
  ];
}

function measureLargeGroup({ isQuick, rounds }: Effort, hasRun: boolean): Figure[] {
  const sessions = isQuick ? quickMany : many;
  const folder = makeFolder();
  try {
    const world = fastWorld();
    const shape = { sessions, after: inChains(inFlight), config: { maxConcurrentSessions: inFlight } };
    const { groupId } = makeGroup(world, folder, shape);
    if (hasRun) runThrough(world, folder, groupId, sessions);
    const which = hasRun ? `${sessions} sessions that have run` : `${sessions} new sessions`;
    const times = (action: () => void) => Array.from({ length: rounds }, () => timed(action));
    const load = times(() => loaded(world, folder, groupId));
    const plan = Array.from({ length: rounds }, () => {
      const state = loaded(world, folder, groupId);
      return timed(() => planOf(state));
    });
    const command = (word: string) =>
      Array.from({ length: rounds }, () => timeOf([launcher, 'group', word, groupId], folder).wallMs);
    const [show, shownPlan] = [command('show'), command('plan')];
    const whole = show.map((ms, round) => ms + (shownPlan[round] ?? 0));
    const { events } = groupPaths(folder.root, groupId);
    const bytes = `${((world.files.info(events)?.size ?? 0) / 1e6).toFixed(1)} MB of log`;
    return [
      {
        ...measured(`load, plan and show ${which}`, whole),
        ...(isQuick ? {} : { target: atMost(median(whole), largeTargetMs) }),
        note: 'group show and group plan as commands; each loads by itself',
      },
      measured('  group show', show),
      { ...measured('  group plan', shownPlan), note: 'asks claude who is logged in; here the fake answers' },
      { ...measured('  of each: load', load), note: `in this process; ${bytes}` },
      { ...measured('  of these: the plan from scratch', plan), note: 'in this process' },
      measured(`group graph, ${which}`, command('graph')),
    ];
  } finally {
    folder.remove();
  }
}

/** One in which nothing has happened yet, and one whose log holds all of a run but its last session. */
function measureLargeGroups(effort: Effort): Figure[] {
  return [false, true].flatMap((hasRun) => measureLargeGroup(effort, hasRun));
}

function runThrough(world: CountingWorld, folder: BenchFolder, groupId: string, sessions: number): void {
  const opened = openGroupWriter(world, folder.root, groupId, 'bench');
  if (!opened.ok) throw new Error(opened.failure.message);
  new Story(world, opened.value).live(sessions, false);
  opened.value.close();
}

function loaded(world: World, folder: BenchFolder, groupId: string) {
  const state = loadGroup(world, folder.root, groupId);
  if (!state.ok) throw new Error(state.failure.message);
  return state.value;
}

/** A world that does not wait for the disk: making ten thousand groups is not what is measured. */
function fastWorld(): CountingWorld {
  const world = createCountingWorld(createRealWorld());
  world.syncs = false;
  return Object.assign(world, { files: { ...world.files, rename: renameSync } });
}

/** Groups `first` and up, with a session each. */
function addGroups(folder: BenchFolder, first: number): void {
  const world = fastWorld();
  const root = join(folder.path, `part-${first}`);
  mkdirSync(root);
  for (let number = first; number < first + groupsAtOnce; number += 1) {
    const { groupId } = makeGroup(world, { ...folder, root }, { sessions: 1 }, number);
    mkdirSync(groupsFolder(folder.root), { recursive: true });
    renameSync(groupPaths(root, groupId).folder, groupPaths(folder.root, groupId).folder);
  }
}

interface Taken {
  readonly wallMs: number;
  readonly cpuMs: number;
}

/** A command from start to end; throws when it fails. */
function timeOf(command: readonly string[], folder: BenchFolder): Taken {
  const begin = performance.now();
  const { exitCode, stderr, resourceUsage } = Bun.spawnSync([...command], {
    env: { ...folder.env, CLAUDE_CODE_AGENT_CLAUDE: tinyClaude, ANTHROPIC_API_KEY: 'test-key' },
    stdin: 'ignore',
    stdout: 'ignore',
  });
  const wallMs = performance.now() - begin;
  if (exitCode !== 0) throw new Error(`${command.join(' ')} ended with ${exitCode}: ${stderr}`);
  return { wallMs, cpuMs: Number(resourceUsage?.cpuTime.total ?? 0) / 1000 };
}
