/** How long a user waits for the commands that only look: with no group, many groups, and one large group. */
import { mkdirSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import { planOf } from '../src/core/plan.ts';
import { loadGroup } from '../src/store/group-store.ts';
import { groupPaths, groupsFolder } from '../src/store/paths.ts';
import { createRealWorld } from '../src/world/real-world.ts';
import type { World } from '../src/world/world.ts';
import { createCountingWorld } from './support/counting-world.ts';
import { type Benchmark, type Figure, formatMs, median, quantile, ratio, timed } from './support/figures.ts';
import { type BenchFolder, makeFolder, makeGroup } from './support/group-on-disk.ts';

const launcher = join(import.meta.dir, '..', 'bin', 'claude-code-agent');
const groupCounts = [0, 100, 10_000];
const largeGroup = 10_000;
const rounds = 20;
const largeRounds = 5;
/** createGroup looks through its data root, so many groups are made in small roots and moved together. */
const groupsAtOnce = 100;

export const startup: Benchmark = {
  about: 'Commands by the launcher, from the start to the end of the process; beside it a Bun that does nothing.',
  async run() {
    const folder = makeFolder();
    try {
      const bareMs = median(Array.from({ length: rounds }, () => timeOf([process.execPath, '-e', '0'], folder)));
      const figures: Figure[] = [{ what: 'bun -e 0', value: formatMs(bareMs), beside: 'the least there can be' }];
      let made = 0;
      for (const count of groupCounts) {
        for (; made < count; made += groupsAtOnce) addGroups(folder, made);
        figures.push(measureList(folder, count, bareMs));
      }
      return [...figures, ...measureLargeGroup()];
    } finally {
      folder.remove();
    }
  },
};

function measureList(folder: BenchFolder, groups: number, bareMs: number): Figure {
  const times = Array.from({ length: groups > 1_000 ? largeRounds : rounds }, () =>
    timeOf([launcher, 'group', 'list'], folder),
  );
  const spread = `${formatMs(quantile(times, 0.9))} at the 9th decile; ${ratio(median(times), bareMs)} bare Bun`;
  const target = groups === 0 ? 'target ≤ 80 ms; ' : '';
  return { what: `group list, ${groups} groups`, value: formatMs(median(times)), beside: target + spread };
}

function measureLargeGroup(): Figure[] {
  const folder = makeFolder();
  try {
    const world = fastWorld();
    const { groupId } = makeGroup(world, folder, { sessions: largeGroup, chains: 100 });
    const load = Array.from({ length: largeRounds }, () => timed(() => loaded(world, folder, groupId)));
    const plan = Array.from({ length: largeRounds }, () => {
      const state = loaded(world, folder, groupId);
      return timed(() => planOf(state));
    });
    const command = (...args: string[]): Figure => {
      const times = Array.from({ length: largeRounds }, () => timeOf([launcher, ...args, groupId], folder));
      return { what: `${args.join(' ')}, ${largeGroup} sessions`, value: formatMs(median(times)) };
    };
    const { events } = groupPaths(folder.root, groupId);
    const bytes = `${((world.files.info(events)?.size ?? 0) / 1e6).toFixed(1)} MB of log`;
    return [
      { what: `load of ${largeGroup} sessions`, value: formatMs(median(load)), beside: `in this process; ${bytes}` },
      { what: 'plan made from scratch', value: formatMs(median(plan)), beside: 'in this process' },
      command('group', 'show'),
      command('group', 'graph'),
    ];
  } finally {
    folder.remove();
  }
}

function loaded(world: World, folder: BenchFolder, groupId: string) {
  const state = loadGroup(world, folder.root, groupId);
  if (!state.ok) throw new Error(state.failure.message);
  return state.value;
}

/** A world that does not wait for the disk: making ten thousand groups is not what is measured. */
function fastWorld(): World {
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

/** Milliseconds of a command from start to end; throws when it fails. */
function timeOf(command: readonly string[], folder: BenchFolder): number {
  const begin = performance.now();
  const { exitCode, stderr } = Bun.spawnSync([...command], { env: folder.env, stdin: 'ignore', stdout: 'ignore' });
  const ms = performance.now() - begin;
  if (exitCode !== 0) throw new Error(`${command.join(' ')} ended with ${exitCode}: ${stderr}`);
  return ms;
}
