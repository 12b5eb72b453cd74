/** GroupProgress, computed from the state and the last reports of running workers. */

import { adviceText } from './advice.ts';
import { defined } from './defined.ts';
import { addUsage, noUsage, type SessionId, type Tokens, type Usage } from './group.ts';
import { type SlotWait, slotReason, slotSentence } from './plan/command-slot.ts';
import { endingText, loggedContext, type Verdicts, type WaitReason } from './plan/decision.ts';
import { unmetOf } from './plan/plan.ts';
import { verdictsOf } from './plan/verdicts.ts';
import type { Attempt, SessionRecord } from './session-state.ts';
import { elapsedMs, type GroupState } from './state.ts';
import type { SessionStatus } from './status.ts';

/** A failed API request that claude will retry. */
export interface ApiRetry {
  readonly attempt: number;
  /** claude gives up after this many; absent = unknown. */
  readonly attemptsMax?: number;
  /** claude's error code, such as `overloaded`. */
  readonly error: string;
  readonly errorStatus: number | null;
}

/** Tool calls of an attempt that its permissions denied. */
export interface DenialSummary {
  readonly calls: number;
  /** The first of their names, each once. */
  readonly tools: readonly string[];
  /** The first call with its target. */
  readonly first?: string;
}

/** `1 tool call was denied: Bash rm -rf x.`, `3 tool calls were denied: Bash, Write; first Bash rm -rf x.` */
export function deniedSentence({ calls, tools, first }: DenialSummary): string {
  if (calls === 1 && first !== undefined) return `1 tool call was denied: ${first}.`;
  const names = tools.length === 0 ? '' : `: ${tools.join(', ')}`;
  const example = first === undefined ? '' : `; first ${first}`;
  return `${calls === 1 ? '1 tool call was' : `${calls} tool calls were`} denied${names}${example}.`;
}

/** Of a session on another host. */
export function silenceSentence(host: string, silentMs: number): string {
  return `Host ${host} has not responded for ${Math.round(silentMs / 1_000)} s.`;
}

export interface TaskCounts {
  readonly done: number;
  readonly total: number;
}

/** The present activity of a running attempt; never logged, may be dropped. */
export interface LiveSession {
  readonly currentTool?: string;
  /** Tool calls started since the last update, oldest first; short ones are over before the next. */
  readonly recentTools?: readonly string[];
  readonly lastText?: string;
  /** The last retry, until the model answers. */
  readonly retry?: ApiRetry;
  readonly denied?: DenialSummary;
  /** From claude's own task list. */
  readonly tasks?: TaskCounts;
  /** Milliseconds since its host last reported, if too long. */
  readonly silentMs?: number;
  /** Its command that waits for a slot. */
  readonly slot?: SlotWait;
  readonly usage: Usage;
}

export interface SessionFigures {
  /** US dollars. */
  readonly cost: number;
  readonly estimated?: true;
  readonly tokens: Tokens;
  readonly attempts: number;
}

/** Of a running session with the activity of its attempt. */
export interface SessionProgress extends SessionFigures, Omit<LiveSession, 'recentTools' | 'usage'> {
  readonly id: SessionId;
  readonly name?: string;
  readonly projectPath: string;
  readonly status: SessionStatus;
  /** The reason code of a waiting session. */
  readonly reason?: string;
  /** Its outcome, if it has one; otherwise why it does not run. */
  readonly message?: string;
  /** Why it does not run, if the message is its outcome. */
  readonly why?: string;
  readonly phase?: 'preparing' | 'working' | 'accepting';
  readonly dependsOn?: readonly SessionId[];
  /** The host of its last attempt, or of the next; absent when only this machine was involved. */
  readonly host?: string;
  readonly waitsFor?: readonly SessionId[];
  /** The sessions or groups that its verdict names, if they differ from its dependencies. */
  readonly on?: readonly string[];
  /** ISO 8601: it resumes by itself, but not before. */
  readonly retryAt?: string;
  readonly startedAt?: string;
  readonly endedAt?: string;
}

/** The state of the fleet's hosts, shared by all groups; each host is counted once. */
export interface FleetStanding {
  /** They take sessions, or will once a slot is free. */
  readonly up: number;
  readonly drained: number;
  /** They are alive but take no sessions: no usable claude or login, no guard, no disk space. */
  readonly refusing: number;
  readonly lost: number;
  /** Milliseconds since the last report, of hosts that have missed two heartbeats. */
  readonly silent: Readonly<Record<string, number>>;
  /** Milliseconds for which Redis has not answered; absent = it answers. */
  readonly redisSilentMs?: number;
  readonly used: number;
  readonly slots: number;
}

export interface GroupProgress {
  readonly groupId: string;
  readonly seq: number;
  readonly status: string;
  readonly totalSessions: number;
  readonly completed: number;
  readonly running: number;
  readonly pending: number;
  readonly failed: number;
  readonly paused: number;
  readonly sessions: readonly SessionProgress[];
  /** US dollars over all sessions and attempts. */
  readonly totalCost: number;
  readonly totalTokens: Tokens;
  /** Milliseconds in which the group was running. */
  readonly elapsedTime: number;
  /** Absent when the group uses no fleet, or its state is unknown. */
  readonly fleet?: FleetStanding;
}

/** The progress at `atMs` (ms since 1970). `verdicts`: from the runner, if there is one. */
export function groupProgress(
  state: GroupState,
  live: ReadonlyMap<SessionId, LiveSession>,
  atMs: number,
  verdicts: Verdicts = verdictsOf(state, loggedContext(state, atMs)),
): GroupProgress {
  let usage = state.usage;
  for (const id of state.running) {
    const now = live.get(id);
    if (now) usage = addUsage(usage, now.usage);
  }
  return {
    groupId: state.group.id,
    seq: state.lastSeq,
    status: state.status,
    totalSessions: state.sessions.size,
    completed: state.counts.completed,
    running: state.counts.running,
    pending: state.counts.pending,
    failed: state.counts.failed,
    paused: state.counts.paused,
    sessions: [...state.sessions.values()].map((record) => sessionProgress(state, record, live, verdicts)),
    totalCost: usage.costUsd,
    totalTokens: usage.tokens,
    elapsedTime: elapsedMs(state, atMs),
  };
}

/** The usage of all attempts of a session, with `now` of the running one. */
export function sessionFigures(record: SessionRecord, now: Usage = noUsage): SessionFigures {
  const { costUsd, tokens, estimated } = addUsage(record.usage, now);
  return { cost: costUsd, ...(estimated ? { estimated } : {}), tokens, attempts: record.attempts };
}

function sessionProgress(
  state: GroupState,
  record: SessionRecord,
  live: ReadonlyMap<SessionId, LiveSession>,
  verdicts: Verdicts,
): SessionProgress {
  const { definition } = record;
  const now = record.state.status === 'running' ? live.get(definition.id) : undefined;
  const { usage, recentTools: _, ...activity } = now ?? {};
  return {
    id: definition.id,
    ...defined({ name: definition.name }),
    projectPath: definition.projectPath,
    status: record.state.status,
    ...(record.state.status === 'running'
      ? { phase: phaseOf(record.state.attempt) }
      : verdictFields(state, record, verdicts(record))),
    ...(now?.slot === undefined ? {} : { reason: slotReason, message: slotSentence(state, now.slot) }),
    ...(definition.dependsOn.length > 0 ? { dependsOn: definition.dependsOn } : {}),
    ...defined({ host: record.host }),
    ...activity,
    ...sessionFigures(record, usage),
    ...defined({ startedAt: record.startedAt, endedAt: record.endedAt }),
  };
}

type VerdictFields = Pick<SessionProgress, 'reason' | 'message' | 'why' | 'waitsFor' | 'on' | 'retryAt'>;

/** For programs, in progress.json and elsewhere. */
export function verdictFields(state: GroupState, record: SessionRecord, verdict: WaitReason | null): VerdictFields {
  if (verdict === null) return {};
  const { reason, message, advice, until, on } = verdict;
  const told = `${message} ${advice === undefined ? '' : adviceText(advice)}`.trim();
  const ending = endingText(record) ?? told;
  const unmet = record.state.status === 'pending' ? unmetOf(state, record) : [];
  return {
    reason,
    message: ending,
    ...(ending === told ? {} : { why: told }),
    ...(unmet.length === 0 ? {} : { waitsFor: unmet }),
    ...(on === undefined || reason === 'waiting' || reason === 'held' ? {} : { on }),
    ...(until === undefined ? {} : { retryAt: new Date(until).toISOString() }),
  };
}

export function phaseOf({ accepting, identified }: Attempt): 'preparing' | 'working' | 'accepting' {
  if (accepting) return 'accepting';
  return identified ? 'working' : 'preparing';
}
