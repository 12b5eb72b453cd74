/** A simulation as plain data: the group, its claudes, and what user and machine do to them. */
import type { GroupConfig } from '../../../src/core/group.ts';
import type { PauseRequestMode } from '../../../src/store/requests.ts';
import type { CrashPoint, DecisionKind } from './coverage.ts';

/** Faults of the machine. */
export const cores = 2;

/** How a claude process ends its task; each was observed with the real program. */
export const virtualEndings = [
  'success',
  'denied',
  'not-sent',
  'limit',
  'limit-unknown',
  'unreachable',
  'overloaded',
  'not-logged-in',
  'billing',
  'unknown-model',
  'too-long',
  'max-turns',
  'exit-code',
  'silent',
  'silent-code',
  'killed',
  'hangs',
  'stalls',
  'long-tool',
] as const;
export type VirtualEnding = (typeof virtualEndings)[number];

/** The behaviour of one claude process. */
export interface Behaviour {
  readonly messages: number;
  readonly tools: boolean;
  readonly ending: VirtualEnding;
  /** Factor on the duration of a message. */
  readonly slowness: number;
  readonly interrupt: 'obeyed' | 'slow' | 'ignored';
  readonly term: 'obeyed' | 'slow' | 'ignored' | 'success-while-dying';
  /** A tool that outlives its claude: with its mark, with a wiped environment, or ignoring SIGTERM. */
  readonly tool: 'tame' | 'marked' | 'wiped' | 'stubborn';
  /** Lines come in pieces. */
  readonly pieces: boolean;
  /** The conversation does not survive a SIGKILL. */
  readonly forgets: boolean;
  /** A five-hour window is reported as nearly used up. */
  readonly nearLimit: boolean;
  /** Its first tool needs a permission. */
  readonly asks?: boolean;
}

/** The behaviour of one run of an acceptance command. */
export interface CommandBehaviour {
  /** `hangs`: until its timeout. `killed`: by a foreign process. */
  readonly ending: 'succeeds' | 'fails' | 'hangs' | 'killed';
  /** How long it works, milliseconds. */
  readonly workMs: number;
  /** `success`: it cleans up and reports success. */
  readonly term: 'obeyed' | 'slow' | 'ignored' | 'success';
  /** A process that does not end with it, as with claude's tools. */
  readonly child: 'none' | 'marked' | 'wiped' | 'stubborn' | 'wiped-stubborn';
}

export interface AcceptanceSketch {
  readonly retries?: number;
  readonly timeoutMs: number;
  /** By command start; later ones succeed at once. */
  readonly behaviours: readonly CommandBehaviour[];
}

export interface SimulatedSession {
  readonly dependsOn: readonly number[];
  readonly maxBudgetUsd?: number;
  readonly retries?: number;
  readonly timeoutMs?: number;
  readonly stallTimeoutMs?: number;
  /** It has an acceptance command. */
  readonly acceptance?: AcceptanceSketch;
  /** By process with a prompt; later ones succeed. */
  readonly behaviours: readonly Behaviour[];
}

export type Act =
  | { readonly do: 'run'; readonly retryFailed: boolean }
  | { readonly do: 'run-only'; readonly index: number }
  | { readonly do: 'signal'; readonly signal: 'SIGINT' | 'SIGTERM' | 'SIGHUP' }
  | { readonly do: 'kill' }
  | { readonly do: 'power-cut' }
  | { readonly do: 'disk-full'; readonly forMs: number }
  | { readonly do: 'clock-jump'; readonly byMs: number }
  | { readonly do: 'add-session'; readonly dependsOnLast: boolean }
  | { readonly do: 'remove-session'; readonly index: number }
  | { readonly do: 'pause'; readonly mode: PauseRequestMode }
  | { readonly do: 'thaw' }
  | { readonly do: 'session-pause' | 'session-resume' | 'session-retry' | 'say'; readonly index: number }
  /** A user attaches, gets this many answers and detaches. */
  | { readonly do: 'attach'; readonly index: number; readonly messages: number }
  /** The attach commands are killed. */
  | { readonly do: 'kill-attached' }
  /** The oldest open item. */
  | { readonly do: 'answer'; readonly words: 'allow' | 'deny' }
  | { readonly do: 'raise-budget'; readonly byUsd: number }
  | { readonly do: 'short'; readonly of: 'memory' | 'disk'; readonly forMs: number }
  | { readonly do: 'delete' };

/** An action at a time, milliseconds from the start. */
export type TimedAct = { readonly atMs: number } & Act;

/** The runner dies at the n-th time it passes the point with such a decision. */
export interface PlannedCrash {
  readonly point: CrashPoint;
  readonly decision: DecisionKind;
  readonly nth: number;
  readonly how: 'kill' | 'power-cut';
}

export interface Scenario {
  readonly seed: number;
  /** Cells of the matrix, by index, at which the seed's scenario is also interrupted. */
  readonly cuts: readonly number[];
  readonly config: GroupConfig;
  readonly sessions: readonly SimulatedSession[];
  readonly acts: readonly TimedAct[];
  readonly crashes: readonly PlannedCrash[];
  /** Outcomes of `auth status`, in order; later ones are logged in. */
  readonly logins: readonly ('in' | 'out' | 'silent')[];
}

/** The most expensive message a virtual claude is ever charged for, US dollars. */
export const dearestMessageUsd = 0.031;
/** The most that is held for a request, US dollars: 50,000 tokens of cache write and 8,000 of output, unknown model. */
export const heldMessageUsd = 1.5375;
