/** How a turn of claude ended, in claude's own word (`terminal_reason`), and what that means for its session. */
import type { SessionFailureReason } from '../core/failure.ts';

export interface Ending {
  readonly reason: SessionFailureReason;
  readonly what: string;
  readonly next: string;
}

const decideInHook = 'Let that hook allow or deny the call: nobody is asked here.';
const lookAtHooks = 'Look at the hooks of the project and of its templates, then retry the session.';
const lookAndRetry = 'Look at the session’s log, then retry the session.';

/**
 * By `terminal_reason`. `result`: the result alone decides; else why the session failed, in words that end before a
 * colon, and what to do. docs/claude-contract.md has the table.
 */
export const endings: Readonly<Record<string, 'result' | Ending>> = {
  completed: 'result',
  api_error: 'result',
  budget_exhausted: 'result',
  aborted_streaming: 'result',
  aborted_tools: 'result',
  prompt_too_long: 'result',
  hook_stopped: {
    reason: 'hook-stopped',
    what: 'A hook stopped claude before its work was done',
    next: lookAtHooks,
  },
  stop_hook_prevented: {
    reason: 'hook-stopped',
    what: 'A Stop hook stopped claude',
    next: lookAtHooks,
  },
  tool_deferred: { reason: 'deferred', what: 'A hook put off a tool call until somebody decides', next: decideInHook },
  tool_deferred_unavailable: {
    reason: 'deferred',
    what: 'A tool call that a hook had put off cannot be made any more',
    next: decideInHook,
  },
  max_turns: {
    reason: 'max-turns',
    what: 'claude took as many turns as it may',
    next: 'Give it a smaller task, or let it go on.',
  },
  rapid_refill_breaker: {
    reason: 'compaction-thrashing',
    what: 'The conversation is full again right after each compaction',
    next: 'A new conversation begins empty; a smaller task keeps it small.',
  },
  blocking_limit: {
    reason: 'prompt-too-long',
    what: 'The conversation no longer fits the model’s window, and compaction is off',
    next: 'Have compaction switched on again, or begin a new conversation.',
  },
  image_error: {
    reason: 'claude-error',
    what: 'An image of the conversation cannot be used',
    next: 'Look at the session’s log. Leave that image out: go back some messages, or begin a new conversation.',
  },
  model_error: { reason: 'claude-error', what: 'The answer of the model could not be used', next: lookAndRetry },
  malformed_tool_use_exhausted: {
    reason: 'claude-error',
    what: 'The model wrote tool calls that nobody can read, several times in a row',
    next: 'Retry the session, or give it another model.',
  },
  turn_setup_failed: { reason: 'claude-error', what: 'claude could not begin the turn', next: lookAndRetry },
  structured_output_retry_exhausted: {
    reason: 'no-structured-result',
    what: 'The model did not hand in a result in the form of the output schema',
    next: 'Say in the prompt what is to be handed in, or make the schema simpler, then retry it.',
  },
  background_requested: {
    reason: 'claude-error',
    what: 'claude was asked to go on in the background, where nobody sees its end',
    next: lookAndRetry,
  },
};

/** Older versions, and some results, name only the kind of the error. */
const bySubtype: Readonly<Record<string, string>> = {
  error_max_turns: 'max_turns',
  error_max_structured_output_retries: 'structured_output_retry_exhausted',
};

export function endingOf(result: { readonly subtype: string; readonly terminalReason?: string }): 'result' | Ending {
  return endings[result.terminalReason ?? bySubtype[result.subtype] ?? ''] ?? 'result';
}
