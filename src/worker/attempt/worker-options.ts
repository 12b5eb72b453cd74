/** Options of a worker, whether it is new, adopted or only stopped. */
import { isBlank, isCutOff, keptMessages, totalsAtEnd, totalsBefore } from '../../claude/conversation.ts';
import type { EndedAttempt } from '../../claude/final-usage.ts';
import { managedHooks } from '../../claude/managed.ts';
import { type EarlierSpending, noTotals, type ReportedTotals } from '../../claude/spending.ts';
import type { AttemptStream } from '../../claude/stream.ts';
import { defined } from '../../core/defined.ts';
import type { Warning } from '../../core/event.ts';
import { defaultMinFreeMemoryBytes, type GroupConfig, type PriceTable, type SessionId } from '../../core/group.ts';
import type { SchedulingContext } from '../../core/plan/decision.ts';
import { type Attempt, conversationId, type SessionRecord } from '../../core/session-state.ts';
import type { GroupState } from '../../core/state.ts';
import { type GroupPaths, type SessionPaths, sessionPaths } from '../../store/paths.ts';
import { fullDiskBytes, isDiskFull } from '../../store/system-failure.ts';
import type { World } from '../../system/world.ts';
import type { Fact } from '../facts.ts';

export interface WorkerOptions extends Omit<EndedAttempt, 'stream'> {
  readonly sessionId: SessionId;
  readonly attemptId: string;
  readonly paths: SessionPaths;
  /** Bytes of the transcript before this attempt. */
  readonly offset: number;
  /** Start of the attempt, ms since 1970, plus the time it was silent without a runner. */
  readonly startedAtMs: number;
  /** The stream must show a successful SessionStart hook. */
  readonly expectHook: boolean;
  /** Managed settings that disable our hooks. */
  readonly managedHooks?: string;
  readonly expectStructured: boolean;
  readonly model?: string;
  readonly prices: PriceTable;
  readonly earlier?: EarlierSpending;
  /** The model's last message is missing in claude's conversation file. */
  readonly isCutOff: (stream: AttemptStream) => boolean;
  readonly isDiskFull: () => boolean;
  /** claude's final totals, if it exited cleanly. */
  readonly totalsAtEnd: (stream: AttemptStream) => ReportedTotals | null;
  readonly branchWarnings?: () => Promise<readonly Warning[]>;
  /** Messages that earlier runners sent to this attempt after its prompt. */
  readonly told: readonly string[];
  readonly emit: (fact: Fact) => void;
}

/** Undefined for the first attempt. */
export function earlierThan(
  { number, startedAt }: Pick<Attempt, 'number' | 'startedAt'>,
  world: World,
  { config }: SessionPaths,
  { claudeSessionIds, usage: booked }: Pick<SessionRecord, 'claudeSessionIds' | 'usage'>,
): EarlierSpending | undefined {
  if (number === 1) return undefined;
  const findBase = (): ReportedTotals =>
    totalsBefore(world, config, claudeSessionIds, Date.parse(startedAt)) ?? noTotals;
  return { findBase, booked };
}

export function workerOptions(
  world: World,
  paths: GroupPaths,
  { group }: GroupState,
  record: SessionRecord,
  attempt: Attempt,
): Omit<WorkerOptions, 'emit' | 'expectHook'> {
  const { definition, told = [] } = record;
  const ours = sessionPaths(paths, definition.id);
  const earlier = earlierThan(attempt, world, ours, record);
  const { reservedUsd, model } = attempt;
  const prices = group.config.prices ?? {};
  const managed = managedHooks(world);
  return {
    sessionId: definition.id,
    attemptId: attempt.id,
    paths: ours,
    ...defined({ earlier, managedHooks: managed }),
    offset: attempt.offset,
    startedAtMs: Date.parse(attempt.startedAt),
    expectStructured: definition.outputSchema !== undefined,
    told,
    prices,
    hasBegun: attempt.identified,
    ...defined({ reservedUsd, model }),
    isCutOff: (stream) => isCutOff(world, [ours.config], stream),
    isDiskFull: () => isDiskFull(world, ours.folder),
    isBlank: ({ claudeSessionId = conversationId(record) }) => isBlank(world, [ours.config], claudeSessionId),
    // On a full disk claude reports no conversation id.
    totalsAtEnd: ({ claudeSessionId = conversationId(record) }) =>
      totalsAtEnd(world, ours.config, claudeSessionId, Date.parse(attempt.startedAt)),
    kept: (ids) =>
      keptMessages(world, ours.config, new Set([...record.claudeSessionIds, conversationId(record), ...ids]), prices),
  };
}

/** Memory of one worker: 110 MB measured (docs/claude-contract.md), plus its child processes. */
const workerBytes = 120 * 1024 ** 2;
/** Sessions start only with at least this much free space. */
const minFreeDiskBytes = 500 * 1000 ** 2;
/** Running sessions are stopped below this, while claude can still write its conversation and we can log the end. */
const lowDiskBytes = 250 * 1000 ** 2;
const lookMs = 1_000;

export interface MemoryRoom {
  /** How many more workers may start. `starting`: workers that have not reached their full size. */
  forStarts(config: GroupConfig, starting: number): SchedulingContext['room'];
  isDiskLow(): boolean;
  isDiskFull(): boolean;
}

export function watchRoom(world: World, root: string): MemoryRoom {
  const memoryBytes = watched(world, () => world.machine.freeMemoryBytes());
  const diskBytes = watched(world, () => world.files.freeBytes(root));
  return {
    forStarts(config, starting) {
      const disk = diskBytes();
      if (disk < minFreeDiskBytes) {
        const message = `Only ${megabytes(disk)} MB are free on the disk of ${root}; waiting for 500 MB.`;
        return { starts: 0, reason: 'disk', message };
      }
      const memory = memoryBytes();
      const keep = config.minFreeMemoryBytes ?? defaultMinFreeMemoryBytes;
      const starts = Math.floor((memory - keep) / workerBytes) - starting;
      const message = `Only ${megabytes(memory)} MB of memory are free, of which ${megabytes(keep)} MB are kept free.`;
      return { starts: Math.max(0, starts), reason: 'memory', message };
    },
    isDiskLow: () => diskBytes() < lowDiskBytes && diskBytes() >= fullDiskBytes,
    isDiskFull: () => diskBytes() < fullDiskBytes,
  };
}

function watched(world: World, look: () => number): () => number {
  let lookedAtMs = Number.NEGATIVE_INFINITY;
  let seen = 0;
  return () => {
    const now = world.clock.now();
    if (Math.abs(now - lookedAtMs) >= lookMs) {
      seen = look();
      lookedAtMs = now;
    }
    return seen;
  };
}

function megabytes(bytes: number): number {
  return Math.floor(bytes / 1000 ** 2);
}
