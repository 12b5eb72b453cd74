/** How a turn of claude ended (`terminal_reason`), and what that means for its session. */
import type { SessionFailureReason } from '../core/failure.ts';

export interface Ending {
  readonly reason: SessionFailureReason;
  readonly what: string;
  readonly next: string;
}

const decideInHook = 'Make the hook allow or deny the call, because the session runs unattended.';
const lookAtHooks = 'Check the hooks of the project and its templates, then retry the session.';
const lookAndRetry = 'Check the session log, then retry the session.';

function ended(reason: SessionFailureReason, what: string, next: string): Ending {
  return { reason, what, next };
}

/**
 * By `terminal_reason`. `result`: the result alone decides; otherwise the failure's reason, text up to a colon, and
 * next step. docs/claude-contract.md has the table.
 */
export const endings: Readonly<Record<string, 'result' | Ending>> = {
  completed: 'result',
  api_error: 'result',
  budget_exhausted: 'result',
  aborted_streaming: 'result',
  aborted_tools: 'result',
  prompt_too_long: 'result',
  hook_stopped: ended('hook-stopped', 'A hook stopped claude before its work was done', lookAtHooks),
  stop_hook_prevented: ended('hook-stopped', 'A Stop hook stopped claude', lookAtHooks),
  tool_deferred: ended('deferred', 'A hook deferred a tool call to the user', decideInHook),
  tool_deferred_unavailable: ended(
    'deferred',
    'A tool call that a hook had deferred can no longer be made',
    decideInHook,
  ),
  max_turns: ended('max-turns', 'claude reached its turn limit', 'Give it a smaller task, or retry to continue.'),
  rapid_refill_breaker: ended(
    'compaction-thrashing',
    'The conversation is full again after each compaction',
    'Retry with a new conversation (--fresh) or a smaller task.',
  ),
  blocking_limit: ended(
    'prompt-too-long',
    'The conversation no longer fits the model’s window, and compaction is off',
    'Enable compaction, or retry with a new conversation (--fresh).',
  ),
  image_error: ended(
    'claude-error',
    'An image in the conversation cannot be used',
    'Drop the image: rewind the conversation (--rewind) or start a new one (--fresh).',
  ),
  model_error: ended('claude-error', 'The answer of the model could not be used', lookAndRetry),
  malformed_tool_use_exhausted: ended(
    'claude-error',
    'The model wrote unreadable tool calls several times in a row',
    'Retry the session, or use another model.',
  ),
  turn_setup_failed: ended('claude-error', 'claude could not start the turn', lookAndRetry),
  structured_output_retry_exhausted: ended(
    'no-structured-result',
    'The model did not return a result that matches the output schema',
    'Describe the expected result in the prompt or simplify the schema, then retry the session.',
  ),
  background_requested: ended(
    'claude-error',
    'claude was asked to continue in the background, where its end cannot be observed',
    lookAndRetry,
  ),
};

/** For results without a `terminal_reason`. */
const bySubtype: Readonly<Record<string, string>> = {
  error_max_turns: 'max_turns',
  error_max_structured_output_retries: 'structured_output_retry_exhausted',
};

/** Whether the model's last answer is complete, by `stop_reason`. */
export const stopReasons: Readonly<Record<string, 'whole' | 'unfinished' | 'refused'>> = {
  end_turn: 'whole',
  stop_sequence: 'whole',
  tool_use: 'whole',
  pause_turn: 'unfinished',
  max_tokens: 'unfinished',
  model_context_window_exceeded: 'unfinished',
  compaction: 'unfinished',
  refusal: 'refused',
};

export function endingOf(result: { readonly subtype: string; readonly terminalReason?: string }): 'result' | Ending {
  return endings[result.terminalReason ?? bySubtype[result.subtype] ?? ''] ?? 'result';
}
