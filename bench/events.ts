/** What one event costs the runner, in groups of ten to ten thousand sessions: the curve should be flat. */
import { groupProgress } from '../src/core/progress.ts';
import { openGroupWriter, progressDelayMs } from '../src/store/group-writer.ts';
import { snapshotDelayMs } from '../src/store/snapshots.ts';
import { createRealWorld } from '../src/system/real-world.ts';
import { createCountingWorld } from './support/counting-world.ts';
import {
  atMost,
  type Benchmark,
  type Figure,
  formatMs,
  formatRatio,
  measured,
  median,
  timed,
} from './support/figures.ts';
import { type GroupShape, inChains, makeFolder, makeGroup } from './support/group-on-disk.ts';
import { inFlight, Story } from './support/story.ts';

const sizes = [10, 100, 1_000, 10_000];
/** Sessions run through at each size; half of them with fsync. */
const livesAtEachSize = 1_000;
const quickLives = 200;

/** So much dearer than in the smallest group an event may be in the largest, for the curve to be called flat. */
const flatRatio = 1.5;

export const events: Benchmark = {
  about: () =>
    'One event checked, written, folded into the state and followed by a decision on what to start, each with its ' +
    'own append; all sessions in one repository. Below each: what is written of the whole group at once.',
  async run({ isQuick, rounds }) {
    const lives = isQuick ? quickLives : livesAtEachSize;
    // The code is warm in a runner that has to do with many events.
    measureSize(100, lives);
    const taken = sizes.map((sessions) => ({ sessions, costs: [] as Costs[] }));
    for (let round = 0; round < rounds; round += 1) {
      for (const { sessions, costs } of taken) costs.push(measureSize(sessions, lives));
    }
    const of = (costs: readonly Costs[], name: keyof Costs) => costs.map((cost) => cost[name]);
    const [first, last] = [taken[0], taken.at(-1)] as [(typeof taken)[number], (typeof taken)[number]];
    const firstMs = median(of(first.costs, 'plainMs'));
    return taken.flatMap(({ sessions, costs }): Figure[] => {
      const rise = median(of(costs, 'plainMs')) / firstMs;
      return [
        {
          ...measured(`event at ${sessions} sessions`, of(costs, 'plainMs')),
          ratio: sessions === first.sessions ? '1' : `${formatRatio(rise)} that at ${first.sessions}`,
          ...(sessions === last.sessions ? { target: atMost(rise, flatRatio, formatRatio) } : {}),
          note: `with fsync ${formatMs(median(of(costs, 'syncedMs')))}`,
        },
        wholeGroup(sessions, costs),
      ];
    });
  },
};

/** Not a part of an event: what is written anew of all sessions, ever less often the more there are. */
function wholeGroup(sessions: number, costs: readonly Costs[]): Figure {
  const [showMs, snapshotMs] = (['showMs', 'snapshotMs'] as const).map((name) =>
    median(costs.map((cost) => cost[name])),
  );
  const delays = [progressDelayMs(sessions), snapshotDelayMs(sessions)] as const;
  const share = (showMs ?? 0) / delays[0] + (snapshotMs ?? 0) / delays[1];
  return {
    ...measured(
      `  progress and snapshots of ${sessions}`,
      costs.map((cost) => cost.showMs + cost.snapshotMs),
    ),
    note: `at most every ${delays.map(formatMs).join(' and ')}: ${(100 * share).toFixed(1)} % of a core`,
  };
}

interface Costs {
  /** One event without waiting for the disk, milliseconds. */
  readonly plainMs: number;
  readonly syncedMs: number;
  /** Making the text of the progress once. */
  readonly showMs: number;
  /** Writing the snapshots when one session has changed. */
  readonly snapshotMs: number;
}

function measureSize(sessions: number, lives: number): Costs {
  const folder = makeFolder();
  const world = createCountingWorld(createRealWorld());
  try {
    const stories: Story[] = [];
    const groups = Math.max(1, Math.ceil(lives / sessions));
    let showMs = 0;
    let snapshotMs = 0;
    for (let number = 0; number < groups; number += 1) {
      const { groupId } = makeGroup(world, folder, shapeOf(sessions), number);
      const opened = openGroupWriter(world, folder.root, groupId, 'bench');
      if (!opened.ok) throw new Error(opened.failure.message);
      const story = new Story(world, opened.value);
      story.live(Math.min(lives, sessions));
      stories.push(story);
      const { value: writer } = opened;
      if (number === 0) showMs = timed(() => JSON.stringify(groupProgress(writer.state, new Map(), Date.now())));
      snapshotMs = story.snapshotMs();
      writer.close();
    }
    return { plainMs: mean(stories, 'plain'), syncedMs: mean(stories, 'synced'), showMs, snapshotMs };
  } finally {
    folder.remove();
  }
}

/** Chains side by side in one repository, so that each start is also a decision on where the session works. */
function shapeOf(sessions: number): GroupShape {
  return {
    sessions,
    after: inChains(inFlight),
    config: { maxConcurrentSessions: inFlight },
    session: () => ({ repository: '/repository/.git' }),
  };
}

function mean(stories: readonly Story[], kind: 'plain' | 'synced'): number {
  const ms = stories.reduce((sum, story) => sum + story[kind].ms, 0);
  return ms / stories.reduce((sum, story) => sum + story[kind].events, 0);
}
