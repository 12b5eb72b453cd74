/** worker/: one attempt on this machine. This file: what the runner asks of a host, which may be remote. */
import type { ConversationLoss } from '../claude/launch/resume-prompt.ts';
import type { ProcessIdentity, Warning } from '../core/event.ts';
import { type Failure, fail, type Result } from '../core/failure.ts';
import type { SessionId, Workspace } from '../core/group.ts';
import type { Attempt, SessionRecord } from '../core/session-state.ts';
import type { GroupState } from '../core/state.ts';
import type { LinkedEntry } from '../git/worktrees/levels.ts';
import type { SessionPaths } from '../store/paths.ts';
import type { ExitStatus, LimitKind, SpawnOptions } from '../system/world.ts';
import type { CommandEnd } from './shell-command.ts';

export interface AttemptSubject {
  readonly sessionId: SessionId;
  readonly attemptId: string;
  readonly paths: SessionPaths;
}

/** How to go on with an attempt that an earlier runner left as running. */
export type AdoptionPlan =
  /** It lives and has begun to work, and is followed from now on. `silentMs`: it said nothing for so long. */
  | { readonly do: 'adopt'; readonly process: ProcessIdentity; readonly silentMs: number; readonly signalled: boolean }
  /** It was not told its task, or printed nothing, so it cost nothing. What was there has been ended. */
  | { readonly do: 'restart' }
  /** It is gone: what it printed decides. `wasInterrupted`: it spoke only while it was being ended as `restart`. */
  | { readonly do: 'finalizeDead'; readonly signalled: boolean; readonly wasInterrupted: boolean };

/**
 * How it ended. `fenced`: its host ended it, because the host was no longer reachable. `lost`: the host no longer
 * reports, nothing of the attempt runs there any more, and its last actions are not known here.
 */
export type AttemptExit =
  | ExitStatus
  | { readonly kind: 'fenced'; readonly host: string }
  | { readonly kind: 'lost'; readonly host: string };

/** What was found when all of an attempt was ended. */
export interface CleanupResult {
  readonly leftover: boolean;
  readonly limitsHit: readonly LimitKind[];
  /** The last lines on stderr; the very last is often the only explanation of an end without a result. */
  readonly stderrTail: string;
  readonly failure?: Failure;
}

/** A command of the user's in the place where an attempt worked. */
export interface HostedCommand {
  readonly ended: Promise<CommandEnd>;
  stop(): void;
}

/**
 * Its output is appended to `paths.transcript`, and stays there whichever process lives meanwhile. `leave` may come at
 * any time; all others but `look`, `halt`, `endNow` and `reap` are valid only after `start`, or after a `takeOver` that
 * returned `adopt`.
 */
export interface HostedAttempt {
  /**
   * Starts the process. `offset`: bytes of the transcript before it. Fails as `Processes.spawn`, and with `other-host`
   * when its machine does not start it, so that it has cost nothing and may be tried on another one.
   */
  start(spawn: SpawnOptions, offset: number): Promise<Result<ProcessIdentity>>;
  /** Judges what an earlier runner left of it, and follows or ends that. */
  takeOver(attempt: Attempt): Promise<AdoptionPlan>;
  /** Calls `action` once when the process has ended and all it printed is in the transcript. */
  onExit(action: (status: AttemptExit) => void): void;
  readonly listens: boolean;
  /** One line for its input, or several with newlines between; the last newline is added. */
  write(lines: string): void;
  /** Notes what lives of it now, for when that must be ended. */
  look(): void;
  /** SIGTERM to claude, and SIGKILL when it does not end. */
  terminate(): void;
  /** Halts everything of it, or lets it go on; what is being prepared for it too. May be done again at any time. */
  halt(isHalted: boolean): void;
  /** Ends all that is left once its process has ended, and tidies its files. */
  reap(): Promise<CleanupResult>;
  /** Ends at once all that lives of it, whatever it does; false when something would not end. */
  endNow(): Promise<boolean>;
  /** Lets go of it: running processes continue, and no further events are reported. */
  leave(): void;
}

export interface Launch {
  readonly spawn: SpawnOptions;
  readonly prompt: string;
  /** Slash commands that follow the prompt as messages of their own. */
  readonly commands: readonly string[];
}

/** Gets a launch ready; may name what ends that early, should the worker be stopped meanwhile. */
export type Preparation = (onStop: (stop: () => void) => void) => Promise<Result<Launch>>;

export interface WorkspaceInput {
  readonly state: GroupState;
  readonly record: SessionRecord;
  readonly attempt: Attempt;
  readonly paths: SessionPaths;
  readonly env: Readonly<Record<string, string>>;
  /** Told as soon as the worktree exists, also when its set-up fails afterwards. */
  readonly isolated: (workspace: Workspace, notes: readonly string[]) => void;
  /** Gets what a person should know of the making. */
  readonly noticed: (warnings: readonly Warning[]) => void;
  readonly isElsewhere?: boolean;
  /** Takes what ends early what is being prepared now. */
  readonly onStop: (stop: () => void) => void;
}

export interface PreparedWorkspace {
  readonly folder: string;
  /** The folder was gone and was made again, and claude does not know that. */
  readonly loss?: ConversationLoss;
  readonly workspace?: Workspace;
  /** What lies around its worktree. */
  readonly linked?: readonly LinkedEntry[];
}

/** Never shown: the caller that stops a preparation knows why. */
export const stoppedWaiting = fail(
  'busy',
  'The session was stopped while a command of it waited for its turn.',
  'Resume it.',
);
