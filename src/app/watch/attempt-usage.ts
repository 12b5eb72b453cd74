/** Usage of running attempts so far, read from their transcripts, so that it is available without a runner. */
import { parseLine } from '../../claude/messages.ts';
import type { EarlierSpending } from '../../claude/spending.ts';
import { type AttemptStream, emptyStream, foldMessage, usageOf } from '../../claude/stream.ts';
import type { SessionId, Usage } from '../../core/group.ts';
import { LineSplitter } from '../../core/line-splitter.ts';
import type { Attempt } from '../../core/session-state.ts';
import type { GroupState } from '../../core/state.ts';
import { type GroupPaths, sessionPaths } from '../../store/paths.ts';
import type { World } from '../../system/world.ts';
import { earlierThan } from '../../worker/attempt/worker-options.ts';
import { tryPath } from '../path-argument.ts';

const chunkBytes = 1024 * 1024;

/** One entry for each running session, except during acceptance. Times grow only with `hasRunner`. */
export function attemptUsages(
  world: World,
  paths: GroupPaths,
  state: GroupState,
  hasRunner = false,
): Map<SessionId, Usage> {
  return new AttemptUsages(world, paths).of(state, hasRunner);
}

/** For repeated calls: reads only what was added to a transcript. */
export class AttemptUsages {
  readonly #world: World;
  readonly #paths: GroupPaths;
  #readings = new Map<string, Reading>();

  constructor(world: World, paths: GroupPaths) {
    this.#world = world;
    this.#paths = paths;
  }

  of(state: GroupState, hasRunner = false): Map<SessionId, Usage> {
    const usages = new Map<SessionId, Usage>();
    const readings = new Map<string, Reading>();
    for (const id of state.running) {
      const record = state.sessions.get(id);
      const session = record?.state;
      if (record === undefined || session?.status !== 'running' || session.attempt.accepting !== undefined) continue;
      const { attempt } = session;
      const paths = sessionPaths(this.#paths, id);
      const { transcript } = paths;
      const earlier = earlierThan(attempt, this.#world, paths, record);
      const reading = this.#readings.get(attempt.id) ?? new Reading(attempt.offset, state, earlier);
      readings.set(attempt.id, reading);
      // Skip an unreadable transcript; the other sessions are still counted.
      tryPath(() => reading.readOn(this.#world, transcript));
      usages.set(id, usageOf(reading.stream, durationOf(this.#world, transcript, attempt, hasRunner)));
    }
    this.#readings = readings;
    return usages;
  }
}

/** Whole milliseconds. Without a live process or a runner, the attempt counts until its last output. */
function durationOf(world: World, transcript: string, { process, startedAt }: Attempt, hasRunner: boolean): number {
  const { clock, files, processes } = world;
  const isWatched = hasRunner && process !== undefined && processes.isAlive(process);
  const untilMs = isWatched ? clock.now() : (files.info(transcript)?.mtimeMs ?? 0);
  return Math.max(0, Math.round(untilMs - Date.parse(startedAt)));
}

class Reading {
  readonly stream: AttemptStream;
  readonly #splitter = new LineSplitter();
  #offset: number;

  constructor(offset: number, { group }: GroupState, earlier?: EarlierSpending) {
    this.#offset = offset;
    this.stream = emptyStream(group.config.prices, earlier);
  }

  readOn({ files }: World, transcript: string): void {
    for (;;) {
      const chunk = files.readBytes(transcript, this.#offset, chunkBytes);
      if (chunk.length === 0) return;
      this.#offset += chunk.length;
      for (const line of this.#splitter.push(chunk)) foldMessage(this.stream, parseLine(line));
    }
  }
}
