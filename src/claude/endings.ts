/** How a turn of claude ended (`terminal_reason`), and what that means for its session. */
import type { SessionFailureReason } from '../core/failure.ts';

export interface Ending {
  readonly reason: SessionFailureReason;
  readonly what: string;
  readonly next: string;
}

const decideInHook = 'Let that hook allow or deny the call: there is no person to ask.';
const lookAtHooks = 'Look at the hooks of the project and of its templates, then retry the session.';
const lookAndRetry = 'Look at the session’s log, then retry the session.';

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
  tool_deferred: ended('deferred', 'A hook deferred a tool call to a person', decideInHook),
  tool_deferred_unavailable: ended(
    'deferred',
    'A tool call that a hook had deferred cannot be made any more',
    decideInHook,
  ),
  max_turns: ended('max-turns', 'claude took as many turns as it may', 'Give it a smaller task, or let it go on.'),
  rapid_refill_breaker: ended(
    'compaction-thrashing',
    'The conversation is full again right after each compaction',
    'A new conversation begins empty; a smaller task keeps it small.',
  ),
  blocking_limit: ended(
    'prompt-too-long',
    'The conversation no longer fits the model’s window, and compaction is off',
    'Have compaction switched on again, or begin a new conversation.',
  ),
  image_error: ended(
    'claude-error',
    'An image of the conversation cannot be used',
    'Look at the session’s log. Leave that image out: go back some messages, or begin a new conversation.',
  ),
  model_error: ended('claude-error', 'The answer of the model could not be used', lookAndRetry),
  malformed_tool_use_exhausted: ended(
    'claude-error',
    'The model wrote unreadable tool calls several times in a row',
    'Retry the session, or give it another model.',
  ),
  turn_setup_failed: ended('claude-error', 'claude could not begin the turn', lookAndRetry),
  structured_output_retry_exhausted: ended(
    'no-structured-result',
    'The model did not hand in a result in the form of the output schema',
    'Say in the prompt what is to be handed in, or make the schema simpler, then retry it.',
  ),
  background_requested: ended(
    'claude-error',
    'claude was asked to go on in the background, where its end is not seen',
    lookAndRetry,
  ),
};

/** Older versions, and some results, have only the kind of the error. */
const bySubtype: Readonly<Record<string, string>> = {
  error_max_turns: 'max_turns',
  error_max_structured_output_retries: 'structured_output_retry_exhausted',
};

/** By `stop_reason`: whether the model's last answer is complete. */
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

/** Kinds of `system` lines without an effect. Any other unknown line is a warning. */
export const quietLines: ReadonlySet<string> = new Set(
  [
    // Progress and figures, which other lines contain as well.
    'api_error hook_progress status stop_hook_summary task_notification task_progress task_started task_summary',
    'task_updated thinking thinking_tokens turn_duration agents_killed away_summary post_turn_summary memory_recall',
    'memory_saved session_title_changed session_metadata shell_cwd task_list_statuses commands_changed',
    'per_turn_effort_changed permission_check_status local_command_output vcs_state_changed code_change_published',
    'model_refusal_no_fallback session_writes_lost',
    // For a user at a terminal, a host program that keeps files or answers, or a claude in the cloud.
    'cloud_session_delta control_request_progress dev_intent elicitation_complete feedback_draft_queued',
    'file_attachments_missing file_snapshot files_persisted inherited_asks_settled late_allow_not_run mirror_error',
    'peer_message_hold permission_retry scheduled_task_fire turn_handoff_available turn_preempted ui_focus',
    'ui_invalidate ui_log ui_notify ui_notify_cancel ui_panes ui_placed ui_scroll ui_status ui_toast',
    'upgrade_relay_marker worker_shutting_down',
  ].flatMap((names) => names.split(' ')),
);

export function endingOf(result: { readonly subtype: string; readonly terminalReason?: string }): 'result' | Ending {
  return endings[result.terminalReason ?? bySubtype[result.subtype] ?? ''] ?? 'result';
}
