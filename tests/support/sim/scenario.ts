/** What a simulation is made of, as plain data: the group, its claudes, and what user and machine do to them. */
import type { GroupConfig } from '../../../src/core/group.ts';
import type { PauseRequestMode } from '../../../src/store/requests.ts';
import type { CrashPoint, DecisionKind } from './coverage.ts';

/** Of the machine. */
export const cores = 2;

/** How a claude process ends its task; each was seen with the real program. */
export const endings = [
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
export type Ending = (typeof endings)[number];

/** What one claude process does. */
export interface Behaviour {
  readonly messages: number;
  readonly tools: boolean;
  readonly ending: Ending;
  /** Factor on how long a message takes. */
  readonly slowness: number;
  readonly interrupt: 'obeyed' | 'slow' | 'ignored';
  readonly term: 'obeyed' | 'slow' | 'ignored' | 'success-while-dying';
  /** A tool that outlives its claude: with its mark, or with a wiped environment, or deaf to SIGTERM. */
  readonly tool: 'tame' | 'marked' | 'wiped' | 'stubborn';
  /** Lines come in pieces. */
  readonly pieces: boolean;
  /** The conversation does not survive a SIGKILL. */
  readonly forgets: boolean;
  /** It is told that a five-hour window is nearly used up. */
  readonly nearLimit: boolean;
  /** Its first tool needs a permission. */
  readonly asks?: boolean;
}

/** What one run of an acceptance command does. */
export interface CommandBehaviour {
  /** `hangs`: until its timeout. `killed`: by a foreign process. */
  readonly ending: 'succeeds' | 'fails' | 'hangs' | 'killed';
  /** How long it works, milliseconds. */
  readonly workMs: number;
  /** `success`: it tidies up and says that all is well. */
  readonly term: 'obeyed' | 'slow' | 'ignored' | 'success';
  /** A process of its own that does not end with it, as with the tools of claude. */
  readonly child: 'none' | 'marked' | 'wiped' | 'stubborn' | 'wiped-stubborn';
}

export interface AcceptanceSketch {
  readonly retries?: number;
  readonly timeoutMs: number;
  /** By command that was started; later ones succeed at once. */
  readonly behaviours: readonly CommandBehaviour[];
}

export interface SessionSketch {
  readonly dependsOn: readonly number[];
  readonly maxBudgetUsd?: number;
  readonly retries?: number;
  readonly timeoutMs?: number;
  readonly stallTimeoutMs?: number;
  /** Its work is judged by a command. */
  readonly acceptance?: AcceptanceSketch;
  /** By process that was given a prompt; later ones succeed. */
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
  /** A person takes the session over, hears so many answers and leaves. */
  | { readonly do: 'attach'; readonly index: number; readonly messages: number }
  /** The commands through which persons have sessions are killed. */
  | { readonly do: 'kill-attached' }
  /** The item that is open for the longest time. */
  | { readonly do: 'answer'; readonly words: 'allow' | 'deny' }
  | { readonly do: 'raise-budget'; readonly byUsd: number }
  | { readonly do: 'short'; readonly of: 'memory' | 'disk'; readonly forMs: number }
  | { readonly do: 'delete' };

/** Something done at a time, milliseconds from the start. */
export type TimedAct = { readonly atMs: number } & Act;

/** The runner dies at the n-th time it passes the point with such a decision at hand. */
export interface Crash {
  readonly point: CrashPoint;
  readonly decision: DecisionKind;
  readonly nth: number;
  readonly how: 'kill' | 'power-cut';
}

export interface Scenario {
  readonly seed: number;
  /** Cells of the matrix, by their places in it, at which the story of the seed is cut short besides. */
  readonly cuts: readonly number[];
  readonly config: GroupConfig;
  readonly sessions: readonly SessionSketch[];
  readonly acts: readonly TimedAct[];
  readonly crashes: readonly Crash[];
  /** Outcomes of `auth status`, in order; later ones are logged in. */
  readonly logins: readonly ('in' | 'out' | 'silent')[];
}

/** The most expensive message a virtual claude is ever charged for, US dollars. */
export const dearestMessageUsd = 0.031;
/** The most that is held for a request, US dollars: 50,000 tokens of cache write and 8,000 of output, unknown model. */
export const heldMessageUsd = 1.5375;
