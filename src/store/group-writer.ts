/**
 * The one writer of a group: holds runner.lock, turns event bodies into logged events and keeps the snapshots fresh.
 * Logged before reduced, reduced before shown; the cost of an event does not depend on the size of the group.
 */
import { advise } from '../core/advice.ts';
import { draftOf } from '../core/draft.ts';
import type { EventBody, GroupEvent, ProcessIdentity } from '../core/event.ts';
import { assert, type Failure, fail, ok, type Result } from '../core/failure.ts';
import type { GroupId, SessionId } from '../core/group.ts';
import { isGroupId } from '../core/id.ts';
import { isOutOfSight } from '../core/out-of-sight.ts';
import type { GroupProgress } from '../core/progress.ts';
import { reduce } from '../core/reduce.ts';
import type { GroupState } from '../core/state.ts';
import { delay as wait } from '../system/clock.ts';
import type { Lock, LockHolder, World } from '../system/world.ts';
import { delay } from './delayed.ts';
import { type EventLog, readForWriting } from './event-log.ts';
import { foldLog } from './fold.ts';
import { foreignPath } from './foreign-bytes.ts';
import { isFolder, isGone, noSuchGroup } from './group-store.ts';
import { survivingRunner } from './living-runner.ts';
import type { LogLost } from './log-lost.ts';
import { type GroupPaths, groupPaths } from './paths.ts';
import { standInOf } from './regular-file.ts';
import { createSnapshots, type Snapshots } from './snapshots.ts';
import { systemFailure } from './system-failure.ts';

const shortestProgressDelayMs = 250;
const longestProgressDelayMs = 2_000;
/** How long a runner without its lock is given to end, and how often it is looked at. */
const survivorPatienceMs = 2_000;
const survivorLookMs = 20;
/** Larger groups write progress.json less often, because all of it is written each time. */
const sessionsAtShortestDelay = 100;

export interface GroupWriter {
  readonly paths: GroupPaths;
  /** The fold of all events recorded so far; changed in place by `record`. */
  readonly state: GroupState;
  /** Why the last snapshots could not be written; null when they could. The log is not concerned. */
  readonly snapshotProblem: Failure | null;
  /**
   * Logs the bodies as events (one append, one fsync), then reduces them; returns the events. Throws the system's
   * error when they cannot be logged (nothing is recorded then), IllegalEvent when one may not happen now.
   */
  record(bodies: readonly EventBody[]): GroupEvent[];
  /** Set when somebody took the log away: `record` throws it, and nothing can be resumed any more. */
  readonly lost: LogLost | null;
  /** Brings every meta.json up to date, soon or `now`. `record` asks for the former by itself. */
  snapshot(when?: 'now'): void;
  /**
   * There is progress to show to watchers: asked for and written to progress.json at most 4 times a second, the last
   * time on `close`.
   */
  progress(now: () => GroupProgress): void;
  /** Writes what is held back and lets go of the group. Nothing may be recorded afterwards. */
  close(): void;
}

/** `survivor`: who is in the way without holding the lock, as far as that can be told. */
export interface OpenFailure extends Failure {
  readonly survivor?: ProcessIdentity | 'somebody';
}

/**
 * Takes the group for writing: locks it (`taken` is its lock, where that was done before), cuts a torn end off its log,
 * repairs its snapshots. Fails with `not-found`, `busy` (naming the holder, or the last runner when that lives without
 * its lock), `corrupt-file`, `newer-version` or `write-failed`; nothing stays locked then. `warn` is told of lines of
 * others that were moved out of the log, where no session is running whose warning that could be; a full sentence, at
 * the latest on `close`.
 */
export function openGroupWriter(
  world: World,
  root: string,
  id: GroupId,
  runId: string,
  warn: (message: string) => void = () => {},
  taken: Lock | null = null,
): Result<GroupWriter, OpenFailure> {
  if (!isGroupId(id)) return noSuchGroup(id);
  const paths = groupPaths(root, id);
  if (!isFolder(world, paths.folder)) return noSuchGroup(id);
  let lock = taken;
  try {
    lock ??= world.locks.tryLock(paths.lock, { identity: world.machine.self, runId });
    if (lock === null) return busy(id, world.locks.holder(paths.lock));
    const writer = openLocked(world, paths, id, { lock, warn });
    if (!writer.ok) giveBack(lock);
    return !writer.ok && isGone(world, paths) ? noSuchGroup(id) : writer;
  } catch (error) {
    if (lock !== null) giveBack(lock);
    const place = lock === null ? paths.lock : paths.folder;
    // It may have been deleted between our look and the lock.
    if (isGone(world, paths)) return noSuchGroup(id);
    return { ok: false, failure: foreignLock(world, paths.lock) ?? systemFailure(place, error) };
  }
}

/** As it was found: who could not open the group does not vouch for it either. */
export function giveBack(lock: Lock): void {
  if (lock.wasReleased) lock.release();
  else lock.abandon();
}

/**
 * The same for who may wait: a runner that was killed or has just left lives for some milliseconds more, so a surviving
 * one gets two seconds to end before the group counts as held.
 */
export async function takeGroup(
  world: World,
  root: string,
  id: GroupId,
  runId: string,
  warn?: (message: string) => void,
  taken: Lock | null = null,
): Promise<Result<GroupWriter, OpenFailure>> {
  const deadline = world.clock.now() + survivorPatienceMs;
  for (let held = taken; ; held = null) {
    const opened = openGroupWriter(world, root, id, runId, warn, held);
    const survivor = opened.ok ? undefined : opened.failure.survivor;
    if (survivor === undefined || world.clock.now() >= deadline) return opened;
    const isThere = (): boolean => survivor !== 'somebody' && world.processes.isAlive(survivor);
    do await wait(world.clock, survivorLookMs);
    while (isThere() && world.clock.now() < deadline);
  }
}

/** What stands in the place of the lock file and can never be locked; null when it is a file, or nothing. */
function foreignLock({ files }: World, path: string): Failure | null {
  const what = standInOf(files, path);
  if (what === null) return null;
  const message = `The lock file ${path} is ${what}.`;
  return fail('write-failed', message, 'Look at it and move it away, then run the command again.').failure;
}

function openLocked(
  world: World,
  paths: GroupPaths,
  id: GroupId,
  { lock, warn }: Pick<Parts, 'lock' | 'warn'>,
): Result<GroupWriter, OpenFailure> {
  const read = readForWriting(world, paths.events);
  if (!read.ok) return read;
  let isOpened = false;
  try {
    const state = foldLog(paths.events, id, read.value.events);
    if (!state.ok) return state;
    const survivor = lock.wasReleased ? null : survivingRunner(world, state.value);
    if (survivor !== null) return lockRemoved(id, survivor);
    if (read.value.isHeld) return logHeld(id, world.machine.self, state.value);
    const snapshots = createSnapshots(world, paths, state.value);
    // Lost ones come back with the next write: a run must not wait until all of them were looked at.
    snapshots.check(state.value.sessions.keys());
    const log = read.value.open();
    isOpened = true;
    return ok(groupWriter(world, paths, state.value, { log, lock, warn, snapshots }));
  } finally {
    if (!isOpened) read.value.close();
  }
}

interface Parts {
  readonly log: EventLog;
  readonly lock: Lock;
  readonly warn: (message: string) => void;
  readonly snapshots: Snapshots;
}

function groupWriter(world: World, paths: GroupPaths, state: GroupState, parts: Parts): GroupWriter {
  const { log, lock, warn, snapshots } = parts;
  let latest: (() => GroupProgress) | null = null;
  let isOpen = true;
  const writeProgress = (): void => {
    // Where the folder was moved away there may be one again, made by a session that works on for a moment.
    if (latest === null || log.lost !== null) return;
    writeQuietly(world, paths.progress, `${JSON.stringify(latest())}\n`);
    latest = null;
  };
  const laterProgress = delay(world, () => progressDelayMs(state.sessions.size), writeProgress);
  return {
    paths,
    state,
    get snapshotProblem() {
      return snapshots.problem;
    },
    get lost() {
      return log.lost;
    },
    record(bodies) {
      assert(isOpen, `the writer of ${paths.folder} is closed`);
      if (bodies.length === 0) return [];
      const foreign = log.takeForeign();
      if (foreign > 0 && state.running.size === 0) warn(foreignMessage(paths, foreign));
      const told = foreign === 0 ? bodies : [...foreignWarnings(state, paths, foreign), ...bodies];
      const events = told.map((body, index) => eventOf(world, state, body, index));
      // Tried before it is written: a log with one event that cannot be folded would never load again.
      const draft = draftOf(state);
      for (const event of events) reduce(draft, event);
      log.append(events);
      for (const event of events) reduce(state, event);
      snapshots.mark(sessionsOf(events));
      return events;
    },
    snapshot: (when) => (when === 'now' ? snapshots.flush() : snapshots.request()),
    progress(now) {
      latest = now;
      if (isOpen) laterProgress.request();
    },
    close() {
      if (!isOpen) return;
      isOpen = false;
      laterProgress.cancel();
      try {
        snapshots.flush();
        writeProgress();
        const foreign = log.close();
        if (foreign > 0) warn(foreignMessage(paths, foreign));
      } finally {
        snapshots.cancel();
        lock.release();
      }
    },
  };
}

/** Whoever ran meanwhile may have done it. */
function foreignWarnings({ running }: GroupState, paths: GroupPaths, bytes: number): EventBody[] {
  const warning = { code: 'foreign-bytes', message: foreignMessage(paths, bytes) } as const;
  return [...running].map((sessionId) => ({ type: 'session_warning', sessionId, warning }));
}

function foreignMessage({ events }: GroupPaths, bytes: number): string {
  const amount = bytes === 1 ? '1 byte' : `${bytes} bytes`;
  return `Something else wrote ${amount} into the event log ${events}; moved to ${foreignPath(events)}.`;
}

/** How long progress is held back in a group of so many sessions, milliseconds. */
export function progressDelayMs(sessions: number): number {
  return Math.min(longestProgressDelayMs, shortestProgressDelayMs * Math.max(1, sessions / sessionsAtShortestDelay));
}

function eventOf(world: World, state: GroupState, body: EventBody, index: number): GroupEvent {
  const at = new Date(world.clock.now()).toISOString();
  return { seq: state.lastSeq + 1 + index, at, groupId: state.group.id, ...body };
}

function sessionsOf(events: readonly GroupEvent[]): SessionId[] {
  return events.flatMap((event) => ('sessionId' in event && event.sessionId !== undefined ? [event.sessionId] : []));
}

/** Progress is for watchers only; a full disk must not end a run because of it. */
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
    `The group ${id} is held by ${who}.`,
    advise('Watch it or pause it, or wait', ['group', 'watch', id], ['group', 'pause', id]),
  );
}

function lockRemoved(id: GroupId, survivor: ProcessIdentity): Result<never, OpenFailure> {
  const { pid } = survivor;
  const message = `The group ${id} is still run by process ${pid}, although its lock file was removed.`;
  const next = advise('Wait until it has ended, or stop it with', ['group', 'pause', id]);
  return { ok: false, failure: { reason: 'busy', message, next, survivor } };
}

/** The log is open elsewhere, and what holds it cannot be seen from here, or is no runner. */
function logHeld(id: GroupId, self: ProcessIdentity, { run, runStartedAt }: GroupState): Result<never, OpenFailure> {
  const isHidden = runStartedAt !== undefined && run !== undefined && isOutOfSight(run.runner, self);
  const who = isHidden ? `process ${run.runner.pid} of another container (pid namespace)` : 'another process';
  const message = `The group ${id} is still held by ${who}, although its lock file was removed.`;
  const there = isHidden ? ', or pause the group there with "kill -TERM" of that process' : '';
  const next = advise(`Wait until it has ended${there}; then run the command again.`);
  return { ok: false, failure: { reason: 'busy', message, next, survivor: 'somebody' } };
}
