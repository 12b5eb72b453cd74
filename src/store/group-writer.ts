/**
 * The one writer of a group: holds runner.lock, converts event bodies to logged events and keeps the snapshots current.
 * Events are logged before they are reduced, and reduced before they are shown.
 */
import { advise } from '../core/advice.ts';
import type { EventBody, GroupEvent, ProcessIdentity } from '../core/event.ts';
import { assert, type Failure, fail, ok, type Result } from '../core/failure.ts';
import type { GroupId, SessionId } from '../core/group.ts';
import { isGroupId } from '../core/id.ts';
import type { GroupProgress } from '../core/progress.ts';
import { reduce } from '../core/reduce.ts';
import type { SessionRecord } from '../core/session-state.ts';
import type { GroupState } from '../core/state.ts';
import type { Lock, LockHolder, World } from '../system/world.ts';
import { type EventLog, readForWriting } from './event-log.ts';
import { foldLog, isFolder, isGroupGone, noSuchGroup } from './group-store.ts';
import { type GroupPaths, groupPaths } from './paths.ts';
import { createSnapshots, delayedAction } from './snapshots.ts';
import type { LogLost } from './system-failure.ts';
import { systemFailure } from './system-failure.ts';

/** Longest delay of progress.json in large groups, milliseconds. */
const longestProgressDelayMs = 2_000;

export type GroupWriter = Readonly<ReturnType<typeof groupWriter>>;

/** `survivor`: a live runner that cannot receive requests. */
export interface OpenFailure extends Failure {
  readonly survivor?: ProcessIdentity;
}

/**
 * Opens the group for writing: locks it (or uses `taken`, its lock), cuts a partial line off the end of its log,
 * repairs its snapshots. Fails with `not-found`, `busy` (naming the holder), `corrupt-file`, `newer-version`,
 * `older-version` or `write-failed`; nothing stays locked then.
 */
export function openGroupWriter(
  world: World,
  root: string,
  id: GroupId,
  runId: string,
  taken: Lock | null = null,
): Result<GroupWriter, OpenFailure> {
  if (!isGroupId(id)) return noSuchGroup(id);
  const paths = groupPaths(root, id);
  if (!isFolder(world, paths.folder)) return noSuchGroup(id);
  let lock = taken;
  try {
    lock ??= world.locks.tryLock(paths.lock, { identity: world.machine.self, runId });
    if (lock === null) return busy(id, world.locks.holder(paths.lock));
    const writer = openLocked(world, paths, id, lock);
    if (!writer.ok) lock.release();
    return !writer.ok && isGroupGone(world, paths) ? noSuchGroup(id) : writer;
  } catch (error) {
    const place = lock === null ? paths.lock : paths.folder;
    lock?.release();
    // It may have been deleted between our check and the lock.
    return isGroupGone(world, paths) ? noSuchGroup(id) : { ok: false, failure: systemFailure(place, error) };
  }
}

function openLocked(world: World, paths: GroupPaths, id: GroupId, lock: Lock): Result<GroupWriter> {
  const read = readForWriting(world, paths.events);
  if (!read.ok) return read;
  const state = foldLog(paths.events, id, read.value.events);
  if (!state.ok) return state;
  return ok(groupWriter(world, paths, state.value, read.value.open(), lock));
}

function groupWriter(world: World, paths: GroupPaths, state: GroupState, log: EventLog, lock: Lock) {
  const snapshots = createSnapshots(world, paths, state);
  // Missing ones are written with the next update: a run must not wait until all were checked.
  snapshots.mark(state.sessions.keys());
  let latest: (() => GroupProgress) | null = null;
  let isOpen = true;
  const writeProgress = (): void => {
    if (latest === null) return;
    writeQuietly(world, paths.progress, `${JSON.stringify(latest())}\n`);
    latest = null;
  };
  const laterProgress = delayedAction(world, state, longestProgressDelayMs, writeProgress);
  return {
    paths,
    state,
    /** Set when the log was removed or replaced: `record` throws it. */
    get lost(): LogLost | null {
      return log.lost;
    },
    /**
     * Logs the bodies as events (one append, one fsync), then reduces them; returns the events. Throws the system's
     * error when they cannot be logged (nothing is recorded then), IllegalEvent when one may not happen now.
     */
    record(bodies: readonly EventBody[]): GroupEvent[] {
      assert(isOpen, `the writer of ${paths.folder} is closed`);
      if (bodies.length === 0) return [];
      const events = bodies.map((body, index) => eventOf(world, state, body, index));
      // Tried before it is written: a log with an event that cannot be reduced would never load again.
      const draft = copyOf(state);
      for (const event of events) reduce(draft, event);
      assert(Number.isFinite(draft.usage.costUsd), 'the cost of the group is not a number');
      log.append(events);
      for (const event of events) reduce(state, event);
      snapshots.mark(sessionsOf(events));
      return events;
    },
    /** Writes progress.json at most 4 times a second, the last time on `close`. */
    progress(now: () => GroupProgress): void {
      latest = now;
      if (isOpen) laterProgress.request();
    },
    /** Writes what is pending and releases the group. Nothing may be recorded afterwards. */
    close(): void {
      if (!isOpen) return;
      isOpen = false;
      laterProgress.cancel();
      try {
        snapshots.flush();
        writeProgress();
      } finally {
        log.close();
        lock.release();
      }
    },
  };
}

/** A copy in which events are tried: `reduce` may change it in the same way as the state. */
function copyOf(state: GroupState): GroupState {
  return {
    ...state,
    sessions: new Map([...state.sessions].map(([id, record]) => [id, copyOfRecord(record)])),
    running: new Set(state.running),
    failed: new Set(state.failed),
    takenOver: new Set(state.takenOver),
    counts: { ...state.counts },
    endedMs: new Map(state.endedMs),
    bases: new Map(state.bases),
    waves: { ...state.waves },
  };
}

function copyOfRecord(record: SessionRecord): SessionRecord {
  const { state, messages, claudeSessionIds, warnings, takenOver } = record;
  return {
    ...record,
    ...(takenOver === undefined ? {} : { takenOver: { ...takenOver } }),
    state: state.status === 'running' ? { ...state, attempt: { ...state.attempt } } : state,
    messages: [...messages],
    claudeSessionIds: [...claudeSessionIds],
    warnings: [...warnings],
  };
}

function eventOf(world: World, state: GroupState, body: EventBody, index: number): GroupEvent {
  const at = new Date(world.clock.now()).toISOString();
  return { seq: state.lastSeq + 1 + index, at, groupId: state.group.id, ...body };
}

function sessionsOf(events: readonly GroupEvent[]): SessionId[] {
  return events.flatMap((event) => ('sessionId' in event && event.sessionId !== undefined ? [event.sessionId] : []));
}

/** Progress is only for watchers; a full disk must not end a run because of it. */
function writeQuietly(world: World, path: string, text: string): void {
  try {
    world.files.writeAtomic(path, text);
  } catch {}
}

function busy(id: GroupId, holder: LockHolder | null): Result<never> {
  const { pid, host } = holder?.identity ?? { pid: 0, host: '' };
  const who = pid === 0 ? 'another process' : `process ${pid} on ${host}`;
  return fail(
    'busy',
    `The group ${id} is in use by ${who}.`,
    advise('Watch it or pause it, or wait', ['group', 'watch', id], ['group', 'pause', id]),
  );
}
