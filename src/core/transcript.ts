/**
 * What the transcript of a session holds for people who read it: what was said and done, without what the programs said
 * to each other. Types only; texts are as they were printed and may hold anything.
 */
import type { Tokens, Usage } from './group.ts';

/** A part of a changed file, as `diff -u` has it: each line begins with a blank, `-` or `+`. */
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
  /** An attempt is over. `message` is one sentence or more. */
  | {
      readonly kind: 'attempt-ended';
      readonly number: number;
      readonly outcome: 'completed' | 'failed' | 'paused';
      readonly reason?: string;
      readonly message?: string;
      readonly usage: Usage;
    }
  | { readonly kind: 'taken-over'; readonly at: string; readonly usage: Usage }
  | { readonly kind: 'user-said'; readonly at: string; readonly text: string }
  | { readonly kind: 'claude'; readonly model?: string; readonly version?: string }
  | (Deep & { readonly kind: 'said'; readonly text: string })
  | (Deep & { readonly kind: 'thought'; readonly text: string })
  /** The model was told something: a sub-agent's task, or what claude has put to itself. */
  | (Deep & { readonly kind: 'told'; readonly text: string })
  /** A tool is called; `target` is what it works on, in short. */
  | (Deep & { readonly kind: 'call'; readonly id: string; readonly tool: string; readonly target: string })
  /** What came of a call. `text` is the beginning of the answer, `lines` counts the lines of all of it. */
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
  /** The conversation was compacted; tokens before and after where claude says them. */
  | {
      readonly kind: 'compaction';
      readonly trigger?: string;
      readonly tokensBefore?: number;
      readonly tokensAfter?: number;
    }
  /** Trouble on the way that the session may get over. */
  | { readonly kind: 'trouble'; readonly text: string }
  /** A turn is over. `costUsd` and tokens are those of the process so far; `text` is absent when it was said before. */
  | {
      readonly kind: 'result';
      readonly isError: boolean;
      /** It was stopped in the middle, by its runner or its user: no error of its own. */
      readonly interrupted?: true;
      readonly text?: string;
      readonly errors: readonly string[];
      readonly denied: readonly string[];
      readonly turns: number;
      readonly durationMs: number;
      readonly costUsd: number;
      readonly tokens: Tokens;
    }
  /** A line that is not what claude prints; `torn`: only the beginning of one, because its worker is gone. */
  | { readonly kind: 'unreadable'; readonly text: string; readonly torn?: true };
