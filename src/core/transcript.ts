/**
 * A session's transcript for readers: messages and actions, without protocol lines. Types only; texts are as printed
 * and may contain anything.
 */
import type { Tokens, Usage } from './group.ts';

/** A part of a changed file, as in `diff -u`: each line begins with a space, `-` or `+`. */
export interface DiffHunk {
  /** Numbers of the first line before and after; absent when unknown. */
  readonly oldStart?: number;
  readonly newStart?: number;
  readonly lines: readonly string[];
}

export interface FileEdit {
  readonly path: string;
  readonly isNew: boolean;
  readonly added: number;
  readonly removed: number;
  readonly hunks: readonly DiffHunk[];
}

/** Sub-agents have a depth of 1 or more, the session itself 0. */
interface Deep {
  readonly depth: number;
}

export type TranscriptEntry =
  | {
      readonly kind: 'attempt-began';
      readonly number: number;
      readonly why: 'start' | 'resume' | 'retry';
      readonly at: string;
      readonly after?: string;
    }
  /** An attempt is over. `message` has one sentence or more. */
  | {
      readonly kind: 'attempt-ended';
      readonly number: number;
      readonly outcome: 'completed' | 'failed' | 'paused';
      readonly reason?: string;
      readonly message?: string;
      readonly usage: Usage;
    }
  | { readonly kind: 'attached'; readonly at: string; readonly usage: Usage }
  | { readonly kind: 'user-said'; readonly at: string; readonly text: string }
  | { readonly kind: 'claude'; readonly model?: string; readonly version?: string }
  | (Deep & { readonly kind: 'said'; readonly text: string })
  | (Deep & { readonly kind: 'thought'; readonly text: string })
  /** A message to the model: a sub-agent's task, or claude's message to itself. */
  | (Deep & { readonly kind: 'told'; readonly text: string })
  /** A tool call; `target` is its short target. */
  | (Deep & { readonly kind: 'call'; readonly id: string; readonly tool: string; readonly target: string })
  /** The result of a call. `text` is its beginning, `lines` its total number of lines. */
  | (Deep & {
      readonly kind: 'outcome';
      readonly id: string;
      readonly tool: string;
      readonly target: string;
      readonly isError: boolean;
      readonly text: string;
      readonly lines: number;
      readonly edit?: FileEdit;
    })
  /** The conversation was compacted; tokens before and after if claude reports them. */
  | {
      readonly kind: 'compaction';
      readonly trigger?: string;
      readonly tokensBefore?: number;
      readonly tokensAfter?: number;
    }
  /** A problem that the session may recover from. */
  | { readonly kind: 'problem'; readonly text: string }
  /**
   * A turn is over. `costUsd` and tokens are those of the process so far; `text` is absent when it was shown before.
   */
  | {
      readonly kind: 'result';
      readonly isError: boolean;
      /** It was stopped in the middle by its runner or its user, which is no error. */
      readonly interrupted?: true;
      readonly text?: string;
      readonly errors: readonly string[];
      readonly denied: readonly string[];
      readonly turns: number;
      readonly durationMs: number;
      readonly costUsd: number;
      readonly tokens: Tokens;
    }
  /** A line that claude does not print; `torn`: a partial one, because its worker is gone. */
  | { readonly kind: 'unreadable'; readonly text: string; readonly torn?: true };
