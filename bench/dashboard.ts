/** What a dashboard costs: itself, at the full rate of progress.json, and the runner when many watch. */
import { readFileSync } from 'node:fs';
import type { EventBody } from '../src/core/event.ts';
import { noUsage, type SessionId } from '../src/core/group.ts';
import { groupProgress, type LiveSession } from '../src/core/progress.ts';
import { type GroupWriter, openGroupWriter } from '../src/store/group-writer.ts';
import { createRealWorld } from '../src/system/real-world.ts';
import {
  atMost,
  type Benchmark,
  type Effort,
  type Figure,
  formatBytes,
  measured,
  median,
  mib,
  ratio,
} from './support/figures.ts';
import { type BenchGroup, makeFolder, makeGroup } from './support/group-on-disk.ts';
import { type Contender, inTurns } from './support/in-turns.ts';
import { installedCommand } from './support/installed.ts';
import { measureRun } from './support/runner-process.ts';
import { tinyClaude } from './support/tasks.ts';

const sessions = 300;
/** Sessions that do something else with every progress. */
const busy = 40;
const visibleRows = 40;
/** Head, titles of the columns and keys. */
const otherRows = 5;
/** Wide enough for details beside the list. */
const columns = 120;
/** As often as the runner writes progress.json of so many sessions, see runner/live-board.ts. */
const progressMs = (100 * sessions) / 200;
const eventsPerSecond = 20;
const warmUpMs = 4_000;
const quickWarmUpMs = 1_000;
/** Of each of the runs, which follow one another. */
const measuredMs = 5_000;
const quickMeasuredMs = 2_000;
const shareTarget = 0.1;
const peakTarget = 120 * mib;
const ticksPerSecond = 100;

const watchers = [0, 1, 5, 20];
/** The run that is watched. */
const longRun = { sessions: 30, workSeconds: 9 };
const quickRun = { sessions: 10, workSeconds: 1.5 };

export const dashboard: Benchmark = {
  about: ({ isQuick }) => {
    const shown = `progress.json ${(1000 / progressMs).toFixed(1)} times a second, ${visibleRows} visible rows`;
    const watched = `a run of ${(isQuick ? quickRun : longRun).sessions} sessions that is watched`;
    const busily = `${sessions} running sessions, ${busy} of them busy, ${eventsPerSecond} events a second`;
    return `${busily}, ${shown}; and ${watched}.`;
  },
  async run(effort) {
    return [...(await measureDashboard(effort)), ...(await measureRunners(effort))];
  },
};

async function measureDashboard({ isQuick, rounds }: Effort): Promise<Figure[]> {
  const partMs = isQuick ? quickMeasuredMs : measuredMs;
  const folder = makeFolder();
  const world = createRealWorld();
  const group = makeGroup(world, folder, { sessions });
  const opened = openGroupWriter(world, folder.root, group.groupId, 'bench');
  if (!opened.ok) throw new Error(opened.failure.message);
  const writer = opened.value;
  begin(writer);
  let round = 0;
  const show = setInterval(() => {
    round += 1;
    world.files.writeAtomic(writer.paths.progress, JSON.stringify(progressOf(writer, round)));
  }, progressMs);
  const events = happenings(writer);
  const happen = setInterval(() => {
    const { value } = events.next();
    if (value !== undefined) writer.record([value]);
  }, 1000 / eventsPerSecond);
  const watcher = watch(group);
  try {
    await watcher.isDrawn;
    await Bun.sleep(isQuick ? quickWarmUpMs : warmUpMs);
    const shares: number[] = [];
    const rates: number[] = [];
    for (let part = 0; part < rounds; part += 1) {
      const before = lookAt(watcher.pid);
      const bytes = watcher.bytes();
      await Bun.sleep(partMs);
      shares.push((lookAt(watcher.pid).cpuMs - before.cpuMs) / partMs);
      rates.push(((watcher.bytes() - bytes) / partMs) * 1000);
    }
    const percent = (share: number) => `${(share * 100).toFixed(1)} %`;
    const { peakBytes } = lookAt(watcher.pid);
    const memory = { what: 'dashboard: peak memory', value: formatBytes(peakBytes) };
    return [
      {
        ...measured('dashboard: share of one core', shares, percent),
        target: atMost(median(shares), shareTarget, percent),
      },
      { ...memory, target: atMost(peakBytes, peakTarget, formatBytes) },
      measured('dashboard: sent to the terminal', rates, (rate) => `${formatBytes(rate)}/s`),
    ];
  } finally {
    clearInterval(show);
    clearInterval(happen);
    watcher.end();
    writer.close();
    folder.remove();
  }
}

/** All sessions work. */
function begin(writer: GroupWriter): void {
  const runner = createRealWorld().machine.self;
  writer.record([{ type: 'group_started', run: { id: 'bench', runner } }]);
  for (const [sessionId] of writer.state.sessions) {
    const attemptId = `attempt-${sessionId}`;
    const attempt = { id: attemptId, number: 1, kind: 'start', offset: 0 } as const;
    writer.record([
      { type: 'session_starting', sessionId, attempt },
      { type: 'session_started', sessionId, attemptId, attempt: 1, process: runner },
      { type: 'session_identified', sessionId, attemptId, claudeSessionId: sessionId.slice(4) },
    ]);
  }
}

/** Session after session is paused and goes on; how that is logged, event by event, without an end. */
function* happenings(writer: GroupWriter): Generator<EventBody> {
  const process = createRealWorld().machine.self;
  for (let round = 2; ; round += 1) {
    for (const sessionId of [...writer.state.sessions.keys()]) {
      const [before, attemptId] = [round - 1, round].map(
        (number) => `attempt-${sessionId}${number === 1 ? '' : `-${number}`}`,
      );
      if (before === undefined || attemptId === undefined) return;
      const message = 'Paused by the user.';
      yield { type: 'session_paused', sessionId, attemptId: before, reason: 'user', message, usage: noUsage };
      yield { type: 'session_queued', sessionId, queued: true };
      yield {
        type: 'session_starting',
        sessionId,
        attempt: { id: attemptId, number: round, kind: 'resume', offset: 0 },
      };
      yield { type: 'session_resumed', sessionId, attemptId, attempt: round, process };
      yield { type: 'session_identified', sessionId, attemptId, claudeSessionId: sessionId.slice(4) };
    }
  }
}

function progressOf({ state }: GroupWriter, round: number) {
  const live = new Map<SessionId, LiveSession>();
  let index = 0;
  for (const id of state.sessions.keys()) {
    // The busy ones are those that are visible.
    const step = index < busy ? round : 0;
    const usage = { ...noUsage, costUsd: 0.01 * (step + 1), tokens: { ...noUsage.tokens, input: 1000 * step } };
    const currentTool = `Bash npm run test -- --watch=false packages/part-${index}/step-${step}`;
    live.set(id, { currentTool, lastText: `Step ${step} of the work is done, now the next one.`, usage });
    index += 1;
  }
  return groupProgress(state, live, Date.now());
}

interface Watcher {
  readonly pid: number;
  /** Resolves when the first rows are on the screen. */
  readonly isDrawn: Promise<void>;
  /** Sent to the terminal so far. */
  bytes(): number;
  end(): void;
}

function watch({ groupId, env }: BenchGroup): Watcher {
  const { promise, resolve } = Promise.withResolvers<void>();
  let bytes = 0;
  const decoder = new TextDecoder();
  let seen = '';
  const child = Bun.spawn([...installedCommand('main').words, 'group', 'watch', groupId], {
    env: { ...env, TERM: 'xterm-256color' },
    terminal: {
      cols: columns,
      rows: visibleRows + otherRows,
      data: (_terminal, data) => {
        bytes += data.length;
        if (seen.includes('session-2')) return;
        seen += decoder.decode(data, { stream: true });
        if (seen.includes('session-2')) resolve();
      },
    },
  });
  return {
    pid: child.pid,
    isDrawn: promise,
    bytes: () => bytes,
    end() {
      child.kill();
      child.terminal?.close();
    },
  };
}

/** Peak memory and CPU so far. Throws where there is no /proc. */
function lookAt(pid: number): { readonly peakBytes: number; readonly cpuMs: number } {
  const peak = /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  // After the name, which may hold anything: state is the third field, user and system time are 14 and 15.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const ticks = Number(fields[11]) + Number(fields[12]);
  return { peakBytes: Number(peak) * 1024, cpuMs: (ticks / ticksPerSecond) * 1000 };
}

async function measureRunners({ isQuick, rounds }: Effort): Promise<Figure[]> {
  const contenders = (isQuick ? watchers.slice(0, 2) : watchers).map((count): Contender => {
    return { name: `runner’s CPU, ${count} watching`, run: () => measureWatched(count, isQuick ? quickRun : longRun) };
  });
  const { taken } = await inTurns(contenders, rounds);
  const [alone = []] = taken.values();
  return [...taken].map(([name, values]) => {
    const compared = values === alone ? '1' : `${ratio(median(values), median(alone))} that without`;
    return { ...measured(name, values), ratio: compared };
  });
}

/** Milliseconds of CPU that the runner takes while so many watch. */
async function measureWatched(count: number, { sessions, workSeconds }: typeof longRun): Promise<number> {
  const folder = makeFolder();
  const group = makeGroup(createRealWorld(), folder, { sessions });
  const watching = Array.from({ length: count }, () => watch(group));
  try {
    await Promise.all(watching.map(({ isDrawn }) => isDrawn));
    const env = {
      CLAUDE_CODE_AGENT_CLAUDE: tinyClaude,
      ANTHROPIC_API_KEY: 'test-key',
      BENCH_STEPS: '3',
      BENCH_STEP_SECONDS: String(workSeconds / 3),
    };
    return (await measureRun(group, env, sessions)).cpuMs;
  } finally {
    for (const watcher of watching) watcher.end();
    folder.remove();
  }
}
