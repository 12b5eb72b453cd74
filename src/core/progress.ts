/** GroupProgress, made from the state and from what running workers reported last. */

import { adviceText } from './advice.ts';
import { defined } from './defined.ts';
import { addUsage, noUsage, type SessionId, type Tokens, type Usage } from './group.ts';
import { type SlotWait, slotReason, slotSentence } from './plan/command-slot.ts';
import { endingText, loggedContext, type Verdicts, type WaitReason } from './plan/decision.ts';
import { unmetOf } from './plan/plan.ts';
import { verdictsOf } from './plan/verdicts.ts';
import type { Attempt, SessionRecord } from './session-state.ts';
import type { GroupState } from './state.ts';
import type { SessionStatus } from './status.ts';

/** claude asked the API in vain, and asks again after a while. */
export interface ApiRetry {
  readonly attempt: number;
  /** After so many it gives up; absent = it did not say. */
  readonly attemptsMax?: number;
  /** claude's code for the trouble, such as `overloaded`. */
  readonly error: string;
  readonly errorStatus: number | null;
}

/** Tool calls of an attempt that its permissions did not allow. */
export interface DenialSummary {
  readonly calls: number;
  /** Their names, each once, the first of them. */
  readonly tools: readonly string[];
  /** The first of them with what it was to work on. */
  readonly first?: string;
}

/** `1 tool call was denied: Bash rm -rf x.`, `3 tool calls were denied: Bash, Write; first Bash rm -rf x.` */
export function deniedSentence({ calls, tools, first }: DenialSummary): string {
  if (calls === 1 && first !== undefined) return `1 tool call was denied: ${first}.`;
  const names = tools.length === 0 ? '' : `: ${tools.join(', ')}`;
  const example = first === undefined ? '' : `; first ${first}`;
  return `${calls === 1 ? '1 tool call was' : `${calls} tool calls were`} denied${names}${example}.`;
}

/** Of a session that works on another host. */
export function silenceSentence(host: string, silentMs: number): string {
  return `Host ${host} has not responded for ${Math.round(silentMs / 1_000)} s.`;
}

/** What a running attempt looks like right now; never logged, may be dropped. */
export interface LiveSession {
  readonly currentTool?: string;
  /** Tool calls begun since this was shown last, oldest first; short ones are over before anybody looks. */
  readonly recentTools?: readonly string[];
  readonly lastText?: string;
  /** The last try, as long as the model has not answered since. */
  readonly retry?: ApiRetry;
  readonly denied?: DenialSummary;
  /** Its host was heard of last so many milliseconds ago, which is too long. */
  readonly silentMs?: number;
  /** A command of it that cannot begin yet. */
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

export interface SessionProgress extends SessionFigures {
  readonly id: SessionId;
  readonly name?: string;
  readonly projectPath: string;
  readonly status: SessionStatus;
  /** Of one that is not running: the code of its verdict. */
  readonly reason?: string;
  /** What became of it, where something did; else why it does not run. */
  readonly message?: string;
  /** Why it does not run, where the message tells what became of it. */
  readonly why?: string;
  readonly phase?: 'preparing' | 'working' | 'accepting';
  readonly dependsOn?: readonly SessionId[];
  /** The machine of its last attempt, or of the next; absent when no other one ever had to do with it. */
  readonly host?: string;
  readonly waitsFor?: readonly SessionId[];
  /** Whom its verdict names, unless that is whom it waits for. */
  readonly on?: readonly string[];
  /** ISO 8601: it goes on by itself, but not before. */
  readonly retryAt?: string;
  readonly currentTool?: string;
  readonly lastText?: string;
  readonly retry?: ApiRetry;
  /** Of the running attempt; a warning of the session tells it of those that ended. */
  readonly denied?: DenialSummary;
  readonly silentMs?: number;
  readonly slot?: SlotWait;
  readonly startedAt?: string;
  readonly endedAt?: string;
}

/** How the machines of a fleet stand, those that sessions of all groups use; each is counted once. */
export interface FleetStanding {
  /** They take sessions, or will as soon as a slot is free. */
  readonly up: number;
  readonly drained: number;
  /** They live and take nothing: no claude or login that may be used, no guard, no room on the disk. */
  readonly refusing: number;
  readonly lost: number;
  /** Milliseconds since a host was heard of, of those that have missed two heartbeats of late. */
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
  /** Absent where the group has nothing to do with a fleet, or nothing is known of that. */
  readonly fleet?: FleetStanding;
}

/** The progress at `atMs` (ms since 1970). `verdicts`: as the runner finds, where one is there to be asked. */
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
  const current = state.runStartedAt === undefined ? 0 : Math.max(0, atMs - Date.parse(state.runStartedAt));
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
    elapsedTime: state.elapsedBeforeMs + current,
  };
}

/** What all attempts of a session used together, with `now` of the one that runs and is not counted yet. */
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
  return {
    id: definition.id,
    ...defined({ name: definition.name }),
    projectPath: definition.projectPath,
    status: record.state.status,
    ...(record.state.status === 'running'
      ? { phase: phaseOf(record.state.attempt) }
      : verdictFields(state, record, verdicts(record))),
    ...(now?.slot === undefined ? {} : slotExplanation(state, now.slot)),
    ...(definition.dependsOn.length > 0 ? { dependsOn: definition.dependsOn } : {}),
    ...defined({
      host: record.host,
      currentTool: now?.currentTool,
      lastText: now?.lastText,
      retry: now?.retry,
      denied: now?.denied,
      silentMs: now?.silentMs,
    }),
    ...sessionFigures(record, now?.usage),
    ...defined({ startedAt: record.startedAt, endedAt: record.endedAt }),
  };
}

function slotExplanation(state: GroupState, slot: SlotWait) {
  return { reason: slotReason, message: slotSentence(state, slot), slot };
}

type VerdictFields = Pick<SessionProgress, 'reason' | 'message' | 'why' | 'waitsFor' | 'on' | 'retryAt'>;

/** As programs read it, in progress.json and elsewhere. */
export function verdictFields(state: GroupState, record: SessionRecord, verdict: WaitReason | null): VerdictFields {
  if (verdict === null) return {};
  const { reason, message, advice, until, on } = verdict;
  const told = `${message} ${advice === undefined ? '' : adviceText(advice)}`.trim();
  // In the words that scripts have always found there.
  const blocked = reason === 'blocked' ? `${message} Retry with: group run --retry-failed.` : told;
  const ending = endingText(record) ?? blocked;
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
