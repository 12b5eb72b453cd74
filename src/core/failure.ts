/**
 * Expected failures are values with a code, one sentence and the next step; exceptions are bugs. The codes are public:
 * they appear in meta.json, in `--output json` and in `group show`.
 */
import { type Advice, adviceText, advise } from './advice.ts';

export type SessionFailureReason =
  | 'no-result'
  /** claude's `result` has is_error, or is one of the error_* kinds. */
  | 'claude-error'
  /** A result was printed, but the process ended with an exit code that contradicts it. */
  | 'exit-nonzero'
  | 'signalled'
  | 'claude-missing'
  /** The check of the claude program failed for money or safety, or could not run. */
  | 'claude-unproven'
  | 'project-missing'
  | 'not-logged-in'
  | 'billing'
  /** Every tool the session wanted to use was denied, so nothing was done. */
  | 'permission'
  /** claude ended well but gave no result that fits its `outputSchema`. */
  | 'no-structured-result'
  /** A hook stopped claude, or kept it from ending. */
  | 'hook-stopped'
  /** A hook deferred a tool call to a user. */
  | 'deferred'
  /** The model refused to answer. */
  | 'refused'
  | 'max-turns'
  /** Each summary of the conversation fills the window again at once. */
  | 'compaction-thrashing'
  /** The prompt never reached the model (local command, blank prompt, hook that blocked it). */
  | 'prompt-not-sent'
  | 'model-not-found'
  /** The API refused or could not serve the request after claude's own retries. */
  | 'api-error'
  | 'timeout'
  | 'stalled'
  | 'limit'
  | 'budget'
  | 'prompt-too-long'
  | 'spawn-failed'
  /** The session's configuration from templates cannot be used. */
  | 'config-invalid'
  /** The acceptance command failed, even after retries with its output. */
  | 'not-accepted'
  /** Its tests also pass without its change. */
  | 'not-proven'
  /** The work of two dependencies in one repository conflicts. */
  | 'merge-conflict'
  | 'worktree-failed'
  | 'setup-failed'
  | 'write-failed'
  /** The worker belongs to another machine, which alone knows how it ended. */
  | 'other-host'
  /** A bug of this program; the sentence has the details. */
  | 'internal';

export type CommandFailureReason =
  | 'usage'
  | 'not-found'
  | 'gone'
  | 'ambiguous'
  | 'busy'
  | 'cycle'
  | 'unknown-dependency'
  | 'duplicate'
  | 'illegal-transition'
  /** A file of ours cannot be read. */
  | 'corrupt-file'
  | 'newer-version'
  /** A file was written by a version before 0.3. */
  | 'older-version'
  | 'sessions-failed'
  /** Too many sessions failed, so nothing else was started. */
  | 'error-threshold';

export type FailureReason = SessionFailureReason | CommandFailureReason;

/** What went wrong (`message`, a full sentence) and the next step. */
export interface Failure {
  readonly reason: FailureReason;
  readonly message: string;
  /** The message is a list: its first line is the heading, and each further line one problem. */
  readonly isList?: true;
  readonly next: Advice;
  /** Replaces `next` for a session that has not started: it may also work in the checkout itself. */
  readonly nextInPlace?: string;
}

/** Why a session failed, as logged. `sessionAdvice` adds the commands that help. */
export interface SessionFailure<R extends SessionFailureReason = SessionFailureReason> {
  readonly reason: R;
  readonly message: string;
  readonly next: string;
}

/** A value or an expected failure. Programmer errors throw instead. */
export type Result<T, F = Failure> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly failure: F };

export function ok<T>(value: T): { readonly ok: true; readonly value: T } {
  return { ok: true, value };
}

/** The failing side of a Result. `message` is a full sentence, as is a `next` without a command. */
export function fail(
  reason: FailureReason,
  message: string,
  next: string | Advice,
): { readonly ok: false; readonly failure: Failure } {
  return { ok: false, failure: { reason, message, next: typeof next === 'string' ? advise(next) : next } };
}

/** For documents: the next step is text there. */
export function publicFailure({ reason, message, next }: Failure) {
  return { reason, message, next: adviceText(next) };
}

/** One line for users: what went wrong, then the next step. */
export function describeFailure({ message, next }: Failure): string {
  return `${message} ${adviceText(next)}`.trim();
}

const persons: ReadonlySet<string> = new Set<SessionFailureReason>([
  'not-logged-in',
  'billing',
  'claude-missing',
  'claude-unproven',
  'write-failed',
]);

/** True for a problem that affects every session and that only the user can fix; nothing new starts after it. */
export function needsPerson(reason: string): boolean {
  return persons.has(reason);
}

/** Throws when an invariant of the code is broken; never used for input. */
export function assert(condition: unknown, message: string): asserts condition {
  if (!condition) throw new Error(`Internal error: ${message}`);
}

/** Ends a `switch` over a union: the compiler reports a member that is not handled. */
export function unreachable(value: never): never {
  throw new Error(`Internal error: unexpected ${JSON.stringify(value)}`);
}

export function errorText(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
