/** What `decide` (schedule.ts) is told besides the state, and what it answers. */
import type { Advice } from '../advice.ts';
import type { AttemptKind, SlotLease, StopReason } from '../event.ts';
import type { GroupId, SessionDefinition, SessionId, SessionSet } from '../group.ts';
import type { SessionRecord } from '../session-state.ts';
import { type GroupState, isThrottled } from '../state.ts';
import type { WaveResults } from '../waves.ts';

/** US dollars. */
type Amounts = { readonly usage: number; readonly limit: number };

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
  /** A slot of another machine is wanted for the session. All that are decided at once are all that are wanted. */
  | {
      readonly do: 'wish';
      readonly sessionId: SessionId;
      readonly needs: Needs;
      /** The machine that is to be asked before all others. */
      readonly prefer?: string;
    }
  | { readonly do: 'stop'; readonly sessionId: SessionId; readonly reason: StopReason }
  /** Say once that a share of the budget is used. */
  | ({ readonly do: 'warn-budget' } & Amounts)
  | ({ readonly do: 'warn-own-budget'; readonly sessionId: SessionId } & Amounts)
  /** Say once that the budget does not allow to go on, or that it was passed and the group goes on all the same. */
  | ({ readonly do: 'exceed-budget'; readonly action: 'stopped' | 'paused' | 'continued' } & Amounts)
  /** Say once that a session's own cap does not let it go on. */
  | ({
      readonly do: 'exceed-own-budget';
      readonly sessionId: SessionId;
      readonly action: 'stopped' | 'paused';
    } & Amounts)
  | ({ readonly do: 'finish-wave'; readonly wave: number } & Pick<WaveResults, 'accepted' | 'cost'>)
  /** By the rule of the group. */
  | { readonly do: 'continue-wave'; readonly wave: number }
  /** Ask a person. */
  | { readonly do: 'ask-wave'; readonly wave: number; readonly text: string }
  /** Nothing can be started for this reason: before its time, or until the world changes. */
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
  /** What all groups may spend in a day is used up. */
  | 'day-budget'
  /** A slot of another machine, which may be free at any time. */
  | 'host'
  /** There is no machine on which it could work. */
  | 'no-host';

/** What is to be seen of the machine and of the model's answers, which the log does not tell. */
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
  /** It is no usage limit: the server asks for fewer requests. */
  readonly isThrottled?: boolean;
}

export interface OtherGroups {
  /** One that has a session at work in the repository's checkouts, without a worktree of its own. */
  workingIn(repository: string): GroupId | undefined;
}

/** What is to be said of the machines that could serve a session. */
export interface HostSlots {
  /** Completes a sentence that says what it waits for; without a full stop. */
  readonly text: string;
  /** No host fits, or none can be used: how to fix that. */
  readonly cure?: Advice;
  readonly isUnknown?: true;
}

export interface FleetView {
  /** Slots that wait to be used, by the session for which they were wished. */
  readonly granted: ReadonlyMap<SessionId, SlotLease>;
  /** Wished for so long by now that others are not to wait for them any more. */
  readonly staleSlotRequests: SessionSet;
  /** Sessions that may work here at once while others could go elsewhere. */
  readonly localSlots: number;
  describe(needs: Needs): HostSlots;
  /** All machines that could serve such a session, when the login was refused on each of them; empty otherwise. */
  withoutLogin(needs: Needs): readonly string[];
  /** claude's message when it refused the login of this machine: sessions that can run on another host do. */
  readonly refusedHere?: string;
}

/** The user's cap over all groups, US dollars. */
export interface DayBudget {
  readonly capUsd: number;
  /** By attempts of all groups that ended since midnight. */
  readonly spentUsd: number;
  /** By running attempts of other groups. */
  readonly othersReservedUsd: number;
}

/** What the decision depends on besides the state: facts of the machine and the moment, gathered by the runner. */
export interface SchedulingContext {
  /** Workers that may be starting up (nothing printed yet) at once. */
  readonly preparingMax: number;
  /** Running sessions that wait for a command slot: nothing of them starts up; absent = none. */
  readonly inQueue?: SessionSet;
  /** ms since 1970; absent = no session waits for a time. */
  readonly nowMs?: number;
  /** What running attempts have cost so far, US dollars; absent = nothing, or there is no cap that it counts for. */
  readonly liveUsd?: ReadonlyMap<SessionId, number>;
  /** Absent = the user has set no cap for a day. */
  readonly day?: DayBudget;
  /** Running sessions of which a tool is at work; absent = none. */
  readonly busy?: SessionSet;
  /** Running sessions that the model has answered in this attempt; absent = not known, then none waits for another. */
  readonly answered?: SessionSet;
  /** Absent = no usage limit holds. */
  readonly gate?: Gate;
  /** The API, which had served the group, is unavailable: one session at a time retries. */
  readonly isOut?: boolean;
  /** When the model answered anybody last, ms since 1970; absent = not in this run. */
  readonly servedAtMs?: number;
  /** Fewer slots than the settings allow, because a usage limit is near. */
  readonly slotsMax?: number;
  /** How many more workers memory and disk allow, and what is short when it is not enough. */
  readonly room?: { readonly starts: number; readonly reason: 'memory' | 'disk'; readonly message: string };
  /**
   * Null = none is set up, and what needs one does not start. Absent = there is no question of one, as in a rehearsal:
   * everything is done here.
   */
  readonly fleet?: FleetView | null;
  /** The disk is so full that what running sessions print may get lost. */
  readonly isDiskLow?: boolean;
  /** The log says that the group runs, but it has no runner. */
  readonly isAbandoned?: boolean;
  /** Absent = this group has all checkouts for itself. */
  readonly others?: OtherGroups;
}

/** The moment as the log tells of it: for all that is known, the machine is short of nothing. */
export function loggedContext(state: GroupState, nowMs: number): SchedulingContext {
  const context = { preparingMax: Number.POSITIVE_INFINITY, nowMs };
  const untilMs = Date.parse(state.limitResetsAt ?? '');
  if (Number.isNaN(untilMs)) return context;
  return { ...context, gate: { untilMs, mayProbe: false, isThrottled: isThrottled(state) } };
}

// * Why a session that is not running does not run: one answer, made by the rules that start sessions
// (plan/schedule.ts) and read by everything that tells of it.

export interface WaitReason {
  /** A code, such as `waiting`, `limit` or the reason of a failure. */
  readonly reason: string;
  readonly message: string;
  readonly advice?: Advice;
  /** ms since 1970: it goes on by itself, but not before. */
  readonly until?: number;
  /** Whom it waits for: ids of sessions, or of another group. */
  readonly on?: readonly string[];
}

/** Null for a session that runs or is completed. */
export type Verdicts = (record: SessionRecord) => WaitReason | null;

/** What became of a session, by its log; absent where nothing did. */
export function endingText({ state }: SessionRecord): string | undefined {
  if (state.status === 'paused') return state.message;
  return state.status === 'failed' ? `${state.failure.message} ${state.failure.next}`.trim() : undefined;
}
