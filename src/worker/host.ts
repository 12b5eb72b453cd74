/** worker/: one attempt of one session. This file: the interface to the host that runs it, which may be remote. */
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

/** How to continue an attempt of an earlier runner. */
export type AdoptionPlan =
  /** It is alive and has started to work. `silentMs`: time since its last output. */
  | { readonly do: 'adopt'; readonly process: ProcessIdentity; readonly silentMs: number; readonly signalled: boolean }
  /** It did no work and cost nothing. Its processes were ended. */
  | { readonly do: 'restart' }
  /** It is gone, so its output decides. `wasInterrupted`: it started to work while it was being ended for a restart. */
  | { readonly do: 'finalizeDead'; readonly signalled: boolean; readonly wasInterrupted: boolean };

/**
 * `fenced`: its host lost its connection and ended the attempt. `lost`: the host no longer reports; the attempt's lease
 * has expired, so it no longer runs there.
 */
export type AttemptExit =
  | ExitStatus
  | { readonly kind: 'fenced'; readonly host: string }
  | { readonly kind: 'lost'; readonly host: string };

export interface CleanupResult {
  readonly leftover: boolean;
  readonly limitsHit: readonly LimitKind[];
  /** The last lines of stderr, often the only explanation when there is no result. */
  readonly stderrTail: string;
  readonly failure?: Failure;
}

export interface HostedCommand {
  readonly ended: Promise<CommandEnd>;
  stop(): void;
}

/**
 * An attempt whose output is appended to `paths.transcript`. Call `onExit`, `write` and `terminate` only after `start`,
 * or after an adoption (`adopt`).
 */
export interface HostedAttempt {
  /**
   * Starts the process. `offset`: present size of the transcript. Fails as `Processes.spawn`, or with `other-host` when
   * the host did not start it, so that another host may be tried.
   */
  start(spawn: SpawnOptions, offset: number): Promise<Result<ProcessIdentity>>;
  /** Adopts or ends an attempt of an earlier runner. */
  takeOver(attempt: Attempt): Promise<AdoptionPlan>;
  /** Calls `action` once, when the process has ended and all its output is in the transcript. */
  onExit(action: (status: AttemptExit) => void): void;
  readonly listens: boolean;
  /** Writes one or more lines; the last newline is added. */
  write(lines: string): void;
  /** Records its live processes, so that they can be found and ended later. */
  look(): void;
  /** Sends SIGTERM, then SIGKILL. */
  terminate(): void;
  /** Suspends or continues all its processes. Idempotent. */
  halt(isHalted: boolean): void;
  /** After the exit: ends remaining processes and removes temporary files. */
  reap(): Promise<CleanupResult>;
  /** Ends all its live processes at once; false when some survive. */
  endNow(): Promise<boolean>;
  /** Detaches: the process continues, and nothing more is reported. */
  leave(): void;
}

export interface Launch {
  readonly spawn: SpawnOptions;
  readonly prompt: string;
  /** Slash commands, sent after the prompt as separate messages. */
  readonly commands: readonly string[];
}

/** Prepares a launch. It registers a function that aborts it when the worker is stopped. */
export type Preparation = (onStop: (stop: () => void) => void) => Promise<Result<Launch>>;

export interface WorkspaceInput {
  readonly state: GroupState;
  readonly record: SessionRecord;
  readonly attempt: Attempt;
  readonly paths: SessionPaths;
  readonly env: Readonly<Record<string, string>>;
  /** Called as soon as the worktree exists, before its set-up. */
  readonly isolated: (workspace: Workspace, notes: readonly string[]) => void;
  readonly noticed: (warnings: readonly Warning[]) => void;
  readonly isElsewhere?: boolean;
  /** Receives the function that aborts the current preparation. */
  readonly onStop: (stop: () => void) => void;
}

export interface PreparedWorkspace {
  readonly folder: string;
  /** The worktree was missing and was created again from this branch, which claude must be told. */
  readonly remadeFrom?: string;
  readonly workspace?: Workspace;
  readonly linked?: readonly LinkedEntry[];
}

export const stoppedWaiting = fail(
  'busy',
  'The session was stopped while one of its commands was queued.',
  'Resume it.',
);
