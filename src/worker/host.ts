/** worker/: one attempt on this machine. This file: the runner's interface to a host, which may be remote. */
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

/** How to continue an attempt that an earlier runner left running. */
export type AdoptionPlan =
  /** It is alive and has started to work; it is followed from now on. `silentMs`: time since its last output. */
  | { readonly do: 'adopt'; readonly process: ProcessIdentity; readonly silentMs: number; readonly signalled: boolean }
  /** It did not receive its prompt, or printed nothing, so it cost nothing. Its processes were ended. */
  | { readonly do: 'restart' }
  /** It is gone: its output decides. `wasInterrupted`: it printed only while it was being ended as `restart`. */
  | { readonly do: 'finalizeDead'; readonly signalled: boolean; readonly wasInterrupted: boolean };

/**
 * How it ended. `fenced`: its host ended it, because the host had lost its connection. `lost`: the host no longer
 * reports, nothing of the attempt runs there any more, and its last actions are unknown here.
 */
export type AttemptExit =
  | ExitStatus
  | { readonly kind: 'fenced'; readonly host: string }
  | { readonly kind: 'lost'; readonly host: string };

/** The result of ending all processes of an attempt. */
export interface CleanupResult {
  readonly leftover: boolean;
  readonly limitsHit: readonly LimitKind[];
  /** The last lines of stderr, often the only explanation of an end without a result. */
  readonly stderrTail: string;
  readonly failure?: Failure;
}

/** A user's command in the folder where an attempt worked. */
export interface HostedCommand {
  readonly ended: Promise<CommandEnd>;
  stop(): void;
}

/**
 * Its output is appended to `paths.transcript`, and stays there whatever process dies. `leave` may be called at any
 * time; all others except `look`, `halt`, `endNow` and `reap` only after `start`, or after a `takeOver` that returned
 * `adopt`.
 */
export interface HostedAttempt {
  /**
   * Starts the process. `offset`: bytes of the transcript before it. Fails as `Processes.spawn`, and with `other-host`
   * when its host does not start it, so that it has cost nothing and may be tried on another one.
   */
  start(spawn: SpawnOptions, offset: number): Promise<Result<ProcessIdentity>>;
  /** Classifies what an earlier runner left of it, and follows or ends it. */
  takeOver(attempt: Attempt): Promise<AdoptionPlan>;
  /** Calls `action` once when the process has ended and all its output is in the transcript. */
  onExit(action: (status: AttemptExit) => void): void;
  readonly listens: boolean;
  /** One line for its input, or several separated by newlines; the last newline is added. */
  write(lines: string): void;
  /** Records its live processes, for a later end. */
  look(): void;
  /** Sends claude SIGTERM, and SIGKILL when it does not exit. */
  terminate(): void;
  /** Halts or continues all its processes, including preparation. May be repeated at any time. */
  halt(isHalted: boolean): void;
  /** Ends all remaining processes once its process has ended, and removes its files. */
  reap(): Promise<CleanupResult>;
  /** Ends all its live processes at once; false when some would not end. */
  endNow(): Promise<boolean>;
  /** Detaches: running processes continue, and no further events are reported. */
  leave(): void;
}

export interface Launch {
  readonly spawn: SpawnOptions;
  readonly prompt: string;
  /** Slash commands that follow the prompt as messages of their own. */
  readonly commands: readonly string[];
}

/** Prepares a launch; may register a function that aborts it when the worker is stopped meanwhile. */
export type Preparation = (onStop: (stop: () => void) => void) => Promise<Result<Launch>>;

export interface WorkspaceInput {
  readonly state: GroupState;
  readonly record: SessionRecord;
  readonly attempt: Attempt;
  readonly paths: SessionPaths;
  readonly env: Readonly<Record<string, string>>;
  /** Called as soon as the worktree exists, even if its set-up fails afterwards. */
  readonly isolated: (workspace: Workspace, notes: readonly string[]) => void;
  /** Receives warnings for the user. */
  readonly noticed: (warnings: readonly Warning[]) => void;
  readonly isElsewhere?: boolean;
  /** Receives the function that aborts the current preparation. */
  readonly onStop: (stop: () => void) => void;
}

export interface PreparedWorkspace {
  readonly folder: string;
  /** The folder was missing and was created again, and claude does not know that. */
  readonly loss?: ConversationLoss;
  readonly workspace?: Workspace;
  /** The links around its worktree. */
  readonly linked?: readonly LinkedEntry[];
}

/** Never shown: the caller that stops a preparation knows the reason. */
export const stoppedWaiting = fail(
  'busy',
  'The session was stopped while a command of it waited for its turn.',
  'Resume it.',
);
