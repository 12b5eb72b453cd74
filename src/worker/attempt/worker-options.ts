/** What a worker is told of its session: the same for a new one, an adopted one and one that is only to be stopped. */

import {
  agentsAsking,
  isCutOff,
  keptMessages,
  totalsAtEnd,
  totalsBefore,
  unwrittenLoops,
} from '../../claude/conversation.ts';
import { printedMessages } from '../../claude/printed-lines.ts';
import { type Claim, type Earlier, noClaim } from '../../claude/spending.ts';
import type { AttemptStream } from '../../claude/stream.ts';
import type { BrokenOff } from '../../claude/unseen-cost.ts';
import { defined } from '../../core/defined.ts';
import type { Warning } from '../../core/event.ts';
import type { PriceTable, SessionId } from '../../core/group.ts';
import { type Attempt, conversationId, type SessionRecord } from '../../core/session-state.ts';
import type { GroupState } from '../../core/state.ts';
import { type GroupPaths, type SessionPaths, sessionPaths } from '../../store/paths.ts';
import type { World } from '../../system/world.ts';
import type { Fact } from '../facts.ts';
import { isDiskFull } from '../room.ts';

export interface WorkerOptions extends Omit<BrokenOff, 'stream'> {
  readonly sessionId: SessionId;
  readonly attemptId: string;
  readonly paths: SessionPaths;
  /** Bytes of the transcript before this attempt. */
  readonly offset: number;
  /** Begin of the attempt, ms since 1970; later by as long as it was silent while nobody watched it. */
  readonly startedAtMs: number;
  /** A successful SessionStart hook must show in the stream, else the session is flagged. */
  readonly expectHook: boolean;
  /** The session's result must come in the form of its output schema. */
  readonly expectStructured: boolean;
  readonly prices: PriceTable;
  readonly earlier?: Earlier;
  /** What the model said last is missing in the conversation that claude has kept. */
  readonly isCutOff: (stream: AttemptStream) => boolean;
  /** Nothing more can be written down for it. */
  readonly isDiskFull: () => boolean;
  /** claude's totals, where it has ended in good order since this attempt began. */
  readonly totalsAtEnd: (stream: AttemptStream) => Claim | null;
  /** What appeared in the session's repository and is not ours. */
  readonly branchWarnings?: () => Promise<readonly Warning[]>;
  /** What earlier runners said to this attempt, besides its prompt. */
  readonly told: readonly string[];
  /** Contract: only enqueues. */
  readonly emit: (fact: Fact) => void;
}

/** Absent for the first attempt: there is no conversation to go on with. */
export function earlierThan(
  { number, startedAt }: Pick<Attempt, 'number' | 'startedAt'>,
  world: World,
  { config }: SessionPaths,
  { claudeSessionIds, usage: booked }: Pick<SessionRecord, 'claudeSessionIds' | 'usage'>,
): Earlier | undefined {
  if (number === 1) return undefined;
  const findBase = (): Claim => totalsBefore(world, config, claudeSessionIds, Date.parse(startedAt)) ?? noClaim;
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
  const { process, reservedUsd } = attempt;
  const prices = group.config.prices ?? {};
  return {
    sessionId: definition.id,
    attemptId: attempt.id,
    paths: ours,
    ...defined({ earlier }),
    offset: attempt.offset,
    startedAtMs: Date.parse(attempt.startedAt),
    expectStructured: definition.outputSchema !== undefined,
    told,
    prices,
    machineWentDown: process !== undefined && process.bootId !== world.machine.bootId,
    hasBegun: attempt.identified,
    ...defined({ reservedUsd }),
    isCutOff: (stream) => isCutOff(world, [ours.config], stream),
    isDiskFull: () => isDiskFull(world, ours.folder),
    unwritten: (stream) =>
      unwrittenLoops(world, [ours.config], stream.claudeSessionId ?? conversationId(record), stream),
    agentsAsking: (stream) =>
      agentsAsking(world, [ours.config], stream.claudeSessionIds, Date.parse(attempt.startedAt)),
    // Where the disk was full it never said which conversation it is.
    totalsAtEnd: ({ claudeSessionId = conversationId(record) }) =>
      totalsAtEnd(world, ours.config, claudeSessionId, Date.parse(attempt.startedAt)),
    toldBefore: () => printedMessages(world, ours.transcript, attempt.offset),
    kept: (ids) =>
      keptMessages(world, ours.config, new Set([...record.claudeSessionIds, conversationId(record), ...ids]), prices),
  };
}
