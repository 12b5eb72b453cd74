/** What one event costs the runner, in groups of ten to ten thousand sessions: the curve should be flat. */
import type { EventBody } from '../src/core/event.ts';
import { noUsage, type SessionId } from '../src/core/group.ts';
import { groupProgress } from '../src/core/progress.ts';
import { decide } from '../src/core/schedule.ts';
import { type GroupWriter, openGroupWriter } from '../src/store/group-writer.ts';
import { createRealWorld } from '../src/world/real-world.ts';
import { type CountingWorld, createCountingWorld } from './support/counting-world.ts';
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
import { inChains, makeFolder, makeGroup } from './support/group-on-disk.ts';

const sizes = [10, 100, 1_000, 10_000];
/** Sessions run through at each size; half of them with fsync. */
const livesAtEachSize = 1_000;
const inFlight = 8;
const circumstances = { preparingMax: 100 };

/** So much dearer than in the smallest group an event may be in the largest, for the curve to be called flat. */
const flatRatio = 1.5;

export const events: Benchmark = {
  about: () =>
    'One event written, folded and decided upon (checkLegal, log, reduce, plan, decide), each with its own append.',
  async run({ rounds }) {
    // The code is warm in a runner that has to do with many events.
    measureSize(100, livesAtEachSize);
    const taken = sizes.map((sessions) => ({ sessions, costs: [] as Costs[] }));
    for (let round = 0; round < rounds; round += 1) {
      for (const { sessions, costs } of taken) costs.push(measureSize(sessions, livesAtEachSize));
    }
    const of = (costs: readonly Costs[], name: keyof Costs) => costs.map((cost) => cost[name]);
    const [first, last] = [taken[0], taken.at(-1)] as [(typeof taken)[number], (typeof taken)[number]];
    const firstMs = median(of(first.costs, 'plainMs'));
    return taken.flatMap(({ sessions, costs }): Figure[] => {
      const rise = median(of(costs, 'plainMs')) / firstMs;
      const coalesced = [median(of(costs, 'showMs')), median(of(costs, 'snapshotMs'))].map(formatMs).join(' and ');
      return [
        {
          ...measured(`event at ${sessions} sessions`, of(costs, 'plainMs')),
          ratio: sessions === first.sessions ? '1' : `${formatRatio(rise)} that at ${first.sessions}`,
          ...(sessions === last.sessions ? { target: atMost(rise, flatRatio, formatRatio) } : {}),
          note: `with fsync ${formatMs(median(of(costs, 'syncedMs')))}; progress, snapshots: ${coalesced}`,
        },
      ];
    });
  },
};

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
      const shape = { sessions, after: inChains(inFlight), config: { maxConcurrentSessions: inFlight } };
      const { groupId } = makeGroup(world, folder, shape, number);
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

function mean(stories: readonly Story[], kind: 'plain' | 'synced'): number {
  const ms = stories.reduce((sum, story) => sum + story[kind].ms, 0);
  return ms / stories.reduce((sum, story) => sum + story[kind].events, 0);
}

/** The run of a group whose sessions do nothing: every event is recorded by itself and followed by a decision. */
class Story {
  readonly plain = { ms: 0, events: 0 };
  readonly synced = { ms: 0, events: 0 };
  readonly #world: CountingWorld;
  readonly #writer: GroupWriter;
  readonly #running: SessionId[] = [];
  #begun = 0;

  constructor(world: CountingWorld, writer: GroupWriter) {
    this.#world = world;
    this.#writer = writer;
    const runner = { pid: 1, startTime: '1', host: 'here', bootId: 'boot' };
    this.#writer.record([{ type: 'group_started', run: { id: 'bench', runner } }]);
    decide(this.#writer.state, circumstances);
  }

  live(lives: number): void {
    for (let life = 0; life < lives; life += 1) {
      const isSynced = life % 2 === 1;
      this.#world.syncs = isSynced;
      const time = isSynced ? this.synced : this.plain;
      time.ms += timed(() => {
        time.events += this.#step(life < lives - 1);
      });
    }
    this.#world.syncs = true;
  }

  /** Milliseconds of writing the snapshots when one more session has changed. */
  snapshotMs(): number {
    this.#writer.snapshot('now');
    const [sessionId = ''] = this.#writer.state.sessions.keys();
    const warning = { code: 'denied-tools', message: 'One tool call was denied.' } as const;
    this.#record({ type: 'session_warning', sessionId, warning });
    return timed(() => this.#writer.snapshot('now'));
  }

  /** Ends the oldest session when all slots are taken, and begins those that may; the number of events. */
  #step(goesOn: boolean): number {
    let count = 0;
    const oldest = this.#running.length >= inFlight || !goesOn ? this.#running.shift() : undefined;
    if (oldest !== undefined) count += this.#record({ type: 'session_completed', ...attempt(oldest), ...nothing });
    for (const decision of decide(this.#writer.state, circumstances)) {
      if (decision.do !== 'start') continue;
      count += this.#begin(decision.sessionId);
    }
    return count;
  }

  #begin(sessionId: SessionId): number {
    this.#begun += 1;
    const { attemptId } = attempt(sessionId);
    const process = { pid: this.#begun, startTime: '1', host: 'here', bootId: 'boot' };
    this.#running.push(sessionId);
    const intent = { id: attemptId, number: 1, kind: 'start', offset: 0 } as const;
    const claude = { claudeSessionId: sessionId.slice(4), model: 'claude-opus-4-8' };
    return (
      this.#record({ type: 'session_starting', sessionId, attempt: intent }) +
      this.#record({ type: 'session_started', ...attempt(sessionId), attempt: 1, process }) +
      this.#record({ type: 'session_identified', ...attempt(sessionId), ...claude })
    );
  }

  #record(body: EventBody): 1 {
    this.#writer.record([body]);
    decide(this.#writer.state, circumstances);
    return 1;
  }
}

const nothing = { result: 'Done.', usage: noUsage };

function attempt(sessionId: SessionId): { sessionId: SessionId; attemptId: string } {
  return { sessionId, attemptId: `attempt-${sessionId}` };
}
