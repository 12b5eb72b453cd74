/** What a worker is told of its session: the same for a new one, an adopted one and one that is only to be stopped. */
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
  /** Begin of the attempt, ms since 1970; later by as long as it was silent while no runner watched it. */
  readonly startedAtMs: number;
  /** A successful SessionStart hook must show in the stream, else the session is flagged. */
  readonly expectHook: boolean;
  /** The managed settings that turn our hooks off. */
  readonly managedHooks?: string;
  readonly expectStructured: boolean;
  /** What the user wants since the attempt began. */
  readonly model?: string;
  readonly prices: PriceTable;
  readonly earlier?: EarlierSpending;
  /** What the model said last is missing in the conversation that claude has kept. */
  readonly isCutOff: (stream: AttemptStream) => boolean;
  readonly isDiskFull: () => boolean;
  /** claude's totals, where it has ended in good order since this attempt began. */
  readonly totalsAtEnd: (stream: AttemptStream) => ReportedTotals | null;
  /** What appeared in the session's repository and is not ours. */
  readonly branchWarnings?: () => Promise<readonly Warning[]>;
  /** What earlier runners said to this attempt, besides its prompt. */
  readonly told: readonly string[];
  readonly emit: (fact: Fact) => void;
}

/** Absent for the first attempt: there is no conversation to go on with. */
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
    // Where the disk was full it never said which conversation it is.
    totalsAtEnd: ({ claudeSessionId = conversationId(record) }) =>
      totalsAtEnd(world, ours.config, claudeSessionId, Date.parse(attempt.startedAt)),
    kept: (ids) =>
      keptMessages(world, ours.config, new Set([...record.claudeSessionIds, conversationId(record), ...ids]), prices),
  };
}

/** What a worker takes of its own, measured (docs/claude-contract.md): 110 MB and some for what it starts. */
const workerBytes = 120 * 1024 ** 2;
/** Nothing starts with less. */
const minFreeDiskBytes = 500 * 1000 ** 2;
/** What runs is stopped with less: claude needs some of it to write its conversation down, and we to log that. */
const lowDiskBytes = 250 * 1000 ** 2;
const lookMs = 1_000;

export interface MemoryRoom {
  /** How many more workers may start; `starting` have been spawned but not grown yet. */
  forStarts(config: GroupConfig, starting: number): SchedulingContext['room'];
  /** What running workers write may soon get lost. */
  isDiskLow(): boolean;
  /** It gets lost now. */
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
