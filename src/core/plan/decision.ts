/** Inputs of `decide` (schedule.ts) besides the state, and its results. */
import type { Advice } from '../advice.ts';
import type { AttemptKind, EventBody, SlotLease, StopReason } from '../event.ts';
import type { GroupId, SessionDefinition, SessionId, SessionSet } from '../group.ts';
import type { SessionRecord } from '../session-state.ts';
import { type GroupState, isThrottled } from '../state.ts';

export type Decision =
  /** Start the session's next attempt in a free slot. `reserveUsd` becomes its `--max-budget-usd`. */
  | {
      readonly do: 'start';
      readonly sessionId: SessionId;
      readonly kind: AttemptKind;
      readonly reserveUsd?: number;
      /** In a git worktree of its own. */
      readonly isolated?: true;
      /** Absent = on this machine. */
      readonly place?: SlotLease;
    }
  /** The session wants a slot of another host. The decisions of one step are all such requests. */
  | {
      readonly do: 'wish';
      readonly sessionId: SessionId;
      readonly needs: Needs;
      /** The preferred host. */
      readonly prefer?: string;
    }
  | { readonly do: 'stop'; readonly sessionId: SessionId; readonly reason: StopReason }
  /** A notice about the budget, the end of a wave, or the next wave by the group's rule. */
  | { readonly do: 'record'; readonly event: EventBody }
  /** Ask the user. */
  | { readonly do: 'ask-wave'; readonly wave: number; readonly text: string }
  /** Nothing can be started for this reason: until a time, or until something outside changes. */
  | ({ readonly do: 'wait' } & GroupHold)
  | { readonly do: 'settle'; readonly status: 'completed' }
  | {
      readonly do: 'settle';
      readonly status: 'failed' | 'paused';
      readonly reason: string;
      readonly message: string;
    };

export type Needs = Pick<SessionDefinition, 'requires' | 'host'>;

export type SlotWish = Extract<Decision, { do: 'wish' }>;

export type Start = Extract<Decision, { do: 'start' }>;

export interface GroupHold extends WaitReason {
  readonly reason: HoldReason;
}

type HoldReason =
  | 'limit'
  | 'backoff'
  | 'memory'
  | 'disk'
  | 'frozen'
  | 'money'
  | 'slot'
  | 'starting'
  | 'checkout'
  | 'other-group'
  | 'attached'
  | 'cache'
  /** The daily cap of all groups is spent. */
  | 'day-budget'
  /** Waiting for a slot of another host, which may be free at any time. */
  | 'host'
  /** No host can run it. */
  | 'no-host';

/** Reasons that only the runner sees (machine, model answers) and that are not in the log. */
export const seenByRunner: ReadonlySet<string> = new Set<GroupHold['reason']>([
  ...([
    'backoff',
    'memory',
    'disk',
    'slot',
    'starting',
    'other-group',
    'cache',
    'host',
    'no-host',
    'day-budget',
  ] as const),
]);

/** The gate of the login: while it is closed nothing starts. The runner that may `probe` starts one session first. */
export interface Gate {
  /** ms since 1970. */
  readonly untilMs: number;
  /** The reset is over and this run may send the first session. */
  readonly mayProbe: boolean;
  /** This is no usage limit: the server asks for fewer requests. */
  readonly isThrottled?: boolean;
}

export interface OtherGroups {
  /** The group with a running session in the repository's checkouts, without a worktree. */
  workingIn(repository: string): GroupId | undefined;
}

/** The state of the hosts that could run a session. */
export interface HostSlots {
  /** The rest of a sentence about what it waits for, without a full stop. */
  readonly text: string;
  /** No host fits, or none can be used: how to fix that. */
  readonly cure?: Advice;
  readonly isUnknown?: true;
}

export interface FleetView {
  /** Granted slots that are not used yet, by session. */
  readonly granted: ReadonlyMap<SessionId, SlotLease>;
  /** Slot requests so old that others no longer wait for them. */
  readonly staleSlotRequests: SessionSet;
  /** Sessions that may run here at once while others could go to other hosts. */
  readonly localSlots: number;
  describe(needs: Needs): HostSlots;
  /** All hosts that could run such a session, when the login was refused on each of them; empty otherwise. */
  withoutLogin(needs: Needs): readonly string[];
}

/** The user's cap over all groups, US dollars. */
export interface DayBudget {
  readonly capUsd: number;
  /** By attempts of all groups that ended since midnight. */
  readonly spentUsd: number;
  /** By running attempts of other groups. */
  readonly othersReservedUsd: number;
}

/** Inputs of the decision besides the state: facts of the machine and the moment, collected by the runner. */
export interface SchedulingContext {
  /** Maximum number of workers that start up at once (nothing printed yet). */
  readonly preparingMax: number;
  /** Running sessions that wait for a command slot and so are not starting up; absent = none. */
  readonly inQueue?: SessionSet;
  /** ms since 1970; absent = no session waits for a time. */
  readonly nowMs?: number;
  /** The cost of running attempts so far, US dollars; absent = none, or no cap needs it. */
  readonly liveUsd?: ReadonlyMap<SessionId, number>;
  /** Absent = no daily cap. */
  readonly day?: DayBudget;
  /** Running sessions with a running tool; absent = none. */
  readonly busy?: SessionSet;
  /** Running sessions that the model has answered in this attempt; absent = unknown, then none waits for another. */
  readonly answered?: SessionSet;
  /** Absent = no usage limit. */
  readonly gate?: Gate;
  /** The API, which had served the group, is unavailable: one session at a time retries. */
  readonly isOut?: boolean;
  /** When the model last answered any session, ms since 1970; absent = not in this run. */
  readonly servedAtMs?: number;
  /** How many more workers memory and disk allow, and which of them is short. */
  readonly room?: { readonly starts: number; readonly reason: 'memory' | 'disk'; readonly message: string };
  /**
   * Null = no fleet is configured, and sessions that need one do not start. Absent = a fleet is not considered, as in a
   * rehearsal: everything runs here.
   */
  readonly fleet?: FleetView | null;
  /** The disk is so full that output of running sessions may be lost. */
  readonly isDiskLow?: boolean;
  /** The log says that the group is running, but it has no runner. */
  readonly isAbandoned?: boolean;
  /** Absent = this group has all checkouts for itself. */
  readonly others?: OtherGroups;
}

/** The context according to the log: no resource of the machine is known to be short. */
export function loggedContext(state: GroupState, nowMs: number): SchedulingContext {
  const context = { preparingMax: Number.POSITIVE_INFINITY, nowMs };
  const untilMs = Date.parse(state.limitResetsAt ?? '');
  if (Number.isNaN(untilMs)) return context;
  return { ...context, gate: { untilMs, mayProbe: false, isThrottled: isThrottled(state) } };
}

// Why a session that is not running does not run: one answer, made by the rules that start sessions
// (plan/schedule.ts) and read by everything that tells of it.

export interface WaitReason {
  /** A code, such as `waiting`, `limit` or the reason of a failure. */
  readonly reason: string;
  readonly message: string;
  readonly advice?: Advice;
  /** ms since 1970: it resumes by itself, but not before. */
  readonly until?: number;
  /** What it waits for: ids of sessions, or of another group. */
  readonly on?: readonly string[];
}

/** Null for a running or completed session. */
export type Verdicts = (record: SessionRecord) => WaitReason | null;

/** The logged outcome of a session; absent without one. */
export function endingText({ state }: SessionRecord): string | undefined {
  if (state.status === 'paused') return state.message;
  return state.status === 'failed' ? `${state.failure.message} ${state.failure.next}`.trim() : undefined;
}
