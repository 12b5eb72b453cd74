/**
 * Foreseeable trouble is a value with a code, one sentence and the next step; exceptions are bugs.
 * The codes are public: they appear in meta.json, in `--output json` and in `group show`.
 */
import { type Advice, adviceText, advise } from './advice.ts';

export type SessionFailureReason =
  | 'no-result'
  /** claude's `result` says is_error, or is one of the error_* kinds. */
  | 'claude-error'
  /** A result was printed, but the process ended with an exit code that contradicts it. */
  | 'exit-nonzero'
  | 'signalled'
  | 'claude-missing'
  /** The claude program broke a promise that money or safety depend on when it was tried, or could not be tried. */
  | 'claude-unproven'
  | 'project-missing'
  | 'not-logged-in'
  | 'billing'
  /** Every tool the session wanted to use was denied, so nothing was done. */
  | 'permission'
  /** claude ended well but gave no result in the form its `outputSchema` demands. */
  | 'no-structured-result'
  /** A hook stopped claude, or did not let it end. */
  | 'hook-stopped'
  /** A hook deferred a tool call to a person. */
  | 'deferred'
  /** The model refuses to answer. */
  | 'refused'
  | 'max-turns'
  /** Each summary of the conversation is full again at once. */
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
  /** What a template makes of the session's configuration cannot be used. */
  | 'config-invalid'
  /** The acceptance command failed, also after the session was told what it printed. */
  | 'not-accepted'
  /** The work of two dependencies in one repository does not go together. */
  | 'merge-conflict'
  | 'worktree-failed'
  | 'setup-failed'
  | 'write-failed'
  /** The worker belongs to another machine, which alone can tell how it ended. */
  | 'other-host'
  /** A defect of this program; the sentence carries what is known. */
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
  /** A file of ours cannot be read as what it should be. */
  | 'corrupt-file'
  | 'newer-version'
  /** A file was written by a version before 0.3. */
  | 'older-version'
  | 'sessions-failed'
  /** So many sessions failed that nothing else was started. */
  | 'error-threshold';

export type FailureReason = SessionFailureReason | CommandFailureReason;

/** What went wrong (`message`, a full sentence) and what the reader can do about it. */
export interface Failure {
  readonly reason: FailureReason;
  readonly message: string;
  /** The message is a list: its first line says of what, and each further line tells one fault. */
  readonly isList?: true;
  readonly next: Advice;
  /** Instead of `next`, for a session that has not begun: it may also work in the checkout itself. */
  readonly nextInPlace?: string;
}

/** Why a session failed, as its log has it. `sessionAdvice` adds the commands that help. */
export interface SessionFailure<R extends SessionFailureReason = SessionFailureReason> {
  readonly reason: R;
  readonly message: string;
  readonly next: string;
}

/** A value of the domain that may fail for a foreseeable reason. Programmer errors throw instead. */
export type Result<T, F = Failure> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly failure: F };

export function ok<T>(value: T): { readonly ok: true; readonly value: T } {
  return { ok: true, value };
}

/** Builds the failing side of a Result. `message` is a full sentence, as is a `next` that names no command. */
export function fail(
  reason: FailureReason,
  message: string,
  next: string | Advice,
): { readonly ok: false; readonly failure: Failure } {
  return { ok: false, failure: { reason, message, next: typeof next === 'string' ? advise(next) : next } };
}

/** As it stands in documents: what to do is a text there. */
export function publicFailure({ reason, message, next }: Failure) {
  return { reason, message, next: adviceText(next) };
}

/** One line for people: what went wrong, then the next step. */
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

/** True for trouble that hits every session alike and that only a person can cure; nothing new starts after it. */
export function needsPerson(reason: string): boolean {
  return persons.has(reason);
}

/** Throws when a promise of the code itself is broken; never used for input. */
export function assert(condition: unknown, message: string): asserts condition {
  if (!condition) throw new Error(`Internal error: ${message}`);
}

/** Ends a `switch` over a union: the compiler complains when a member is not handled. */
export function unreachable(value: never): never {
  throw new Error(`Internal error: unexpected ${JSON.stringify(value)}`);
}

export function errorText(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
