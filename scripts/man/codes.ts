/** What events and reason codes mean, for docs/reference/codes.md. The compiler asks for a line for each code. */
import { type PauseReason, publicEventTypes, type Warning } from '../../src/core/event.ts';
import type { SessionFailureReason } from '../../src/core/failure.ts';
import type { GroupHold } from '../../src/core/plan/decision.ts';

/** Name, fields besides those of every event, and when it is printed. Names as they are printed. */
export type EventRow = readonly [name: string, fields: readonly string[], meaning: string];

const used = ['cost', 'tokens', 'durationMs', 'turns', 'estimated?'];
const totals = ['totalCost', 'totalTokens', 'attempts'];

const events: readonly EventRow[] = [
  ['group_started', ['runId', 'rehearsal?'], 'The first run of the group starts.'],
  [
    'group_resumed',
    ['runId', 'rehearsal?', 'retry'],
    'A later run starts. `retry` lists the failed sessions to retry.',
  ],
  ['group_paused', ['reason', 'message', 'next'], 'The run ended and can be resumed.'],
  ['group_failed', ['reason', 'message', 'next'], 'The run ended and something must be retried.'],
  ['group_completed', [], 'Every session completed.'],
  ['group_archived', [], 'The group was archived.'],
  ['group_edited', ['changed?'], 'Settings of the group changed.'],
  ['session_started', ['attempt', 'pid'], 'The first attempt of a session started.'],
  ['session_resumed', ['attempt', 'pid'], 'An attempt started that continues the conversation.'],
  ['session_retrying', ['attempt', 'pid'], 'An attempt started after a failure.'],
  ['session_adopted', ['attempt', 'pid'], 'A new runner adopted the live worker of an earlier runner.'],
  [
    'session_progress',
    ['status?', 'reason?', 'message?', 'currentTool?', 'lastText?', 'denied?', 'cost', 'tokens', 'attempts'],
    'The state of a session changed. At most two a second for each session; has no `seq`.',
  ],
  ['session_completed', ['result', 'structured?', ...used, ...totals], 'The session completed and was accepted.'],
  ['session_failed', ['reason', 'message', 'next', ...used, ...totals], 'The attempt failed.'],
  [
    'session_paused',
    ['reason', 'message', 'retryAt?', ...used, ...totals],
    'The attempt ended early and can be resumed. With `retryAt` the session is resumed automatically.',
  ],
  [
    'item_opened',
    ['item', 'kind', 'text', 'options', 'answerBy?', 'waiting'],
    'A session asks, or a wave waits for a decision. `waiting` items are open.',
  ],
  ['item_answered', ['item', 'by'], 'The item was answered by `user`, `deadline`, `earlier` answer or `rule`.'],
  ['item_withdrawn', ['item'], 'The session no longer waits for an answer.'],
  [
    'session_parked',
    ['item', 'reason', 'message', ...used, ...totals],
    'The session waits for an answer, without claude.',
  ],
  ['wave_finished', ['wave', 'accepted', 'cost'], 'No session of the wave is left to run.'],
  [
    'wave_decided',
    ['wave', 'decision', 'by', 'note?'],
    'The next wave starts, or the run stops: `continue` or `stop`.',
  ],
  ['session_stalled', ['step', 'silentMs'], 'The session made no progress: `notice` first, then `interrupt`.'],
  ['session_edited', ['changed?'], 'Settings of the session changed.'],
  [
    'session_host_lost',
    ['host', 'held'],
    'The fleet host of a running session is lost. `held` is the possible further cost.',
  ],
  ['session_moved', ['from?', 'to'], 'The next attempt runs on another host.'],
  ['session_booked', used, 'A lost host came back and reported the cost of its attempt.'],
  ['budget_warning', ['scope', 'usage', 'limit'], 'The share `warningThreshold` of a cap is spent.'],
  [
    'budget_exceeded',
    ['scope', 'action', 'usage', 'limit'],
    'A cap does not allow another start. `scope` is `group` or `session`.',
  ],
  ['limit_reached', ['resetsAt', 'limitType?'], 'The login reached a usage limit.'],
  ['limit_lifted', [], 'The usage limit was lifted.'],
];

/** As they stand in the log, for those that are printed by another name. */
const printedAs: Readonly<Record<string, string>> = {
  group_changed: 'group_edited',
  group_redefined: 'group_edited',
  session_changed: 'session_edited',
  session_budget_warning: 'budget_warning',
  session_budget_exceeded: 'budget_exceeded',
};

/** Throws when a public event has no row, or a row no event. */
export function eventTable(): readonly EventRow[] {
  const names = [...new Set([...publicEventTypes].map((type) => printedAs[type] ?? type))];
  const rows = events.map(([name]) => name);
  const odd = [...names.filter((name) => !rows.includes(name)), ...rows.filter((name) => !names.includes(name))];
  if (odd.length > 0) throw new Error(`codes.ts and publicEventTypes differ: ${odd.join(', ')}`);
  return events;
}

const failed: Readonly<Record<SessionFailureReason, string>> = {
  'api-error': 'The API rejected the request, or could not serve it after all retries.',
  billing: 'The account has a billing problem. Fix it, then resume the group.',
  budget: 'The session reached its cap, or the group has too little left.',
  'claude-error': 'claude reported an error.',
  'claude-missing': 'No claude program was found.',
  'claude-unproven': 'The installed claude failed a check that budgets or permissions depend on.',
  'compaction-thrashing': 'The conversation is full again after each compaction. Retry with `--fresh`.',
  'config-invalid': 'A template produced a configuration that claude cannot use.',
  deferred: 'A hook deferred a tool call to the user.',
  'exit-nonzero': 'claude printed a result, then exited with an error.',
  'hook-stopped': 'A hook stopped claude, or did not let it finish.',
  internal: 'A bug in `cca`. Please report it.',
  limit: 'The login reached a usage limit.',
  'max-turns': 'claude reached `maxTurns`.',
  'merge-conflict': 'The work of two dependencies conflicts.',
  'model-not-found': 'The model does not exist, or the account cannot use it.',
  'no-result': 'claude ended without a result.',
  'no-structured-result': 'The result does not match `outputSchema`.',
  'not-accepted': 'The acceptance command failed, and retries did not help.',
  'not-proven': 'The tests also pass without the change, which `prove` does not accept.',
  'not-logged-in': 'claude has no valid login. Log in, then resume the group.',
  'other-host': 'The worker runs on another host, which must report how it ended.',
  permission: 'Every tool call was denied. Allow them with `cca session allow --denied`.',
  'project-missing': 'The project folder does not exist.',
  'prompt-not-sent': 'The prompt did not reach the model: it was blank, a local command, or a hook blocked it.',
  'prompt-too-long': 'The conversation no longer fits the context window.',
  refused: 'The model refused the request.',
  'setup-failed': 'The setup command failed. See `setup.log`.',
  signalled: 'A signal killed claude.',
  'spawn-failed': 'The system could not start claude.',
  stalled: 'The session made no progress for `stallTimeout`, several times.',
  timeout: 'The attempt ran longer than `timeout`.',
  'worktree-failed': 'The worktree could not be created or is no longer usable.',
  'write-failed': 'A file could not be written, or the system refused a process.',
};

const paused: Readonly<Record<PauseReason, string>> = {
  budget: 'The budget is spent.',
  deleted: 'The session or its group is being deleted.',
  disk: 'The disk is nearly full. The session resumes when space is free.',
  'error-threshold': 'Too many other sessions failed.',
  'guard-changed': 'The work passes only with its changes of tests or other guarded files. See `cca inbox`.',
  'host-lost': 'The fleet host was lost.',
  interrupted: 'The runner or the machine crashed. The next run resumes the session.',
  limit: 'A usage limit was reached. The session resumes after the reset.',
  'not-accepted': 'The acceptance command failed. claude gets its output and continues.',
  'not-proven': 'The tests also pass without the change. claude is told so and continues.',
  signal: 'The runner received a signal, such as Ctrl-C.',
  'top-up': 'The session is restarted with a larger share of the budget.',
  stall: 'No progress. The session is resumed.',
  timeout: 'The time limit passed while the API was unavailable.',
  transient: 'A transient failure. The session is retried.',
  user: 'Paused on request.',
  'waits-for-answer': 'The session was parked until a person answers. See `cca inbox`.',
};

/** Reasons that `why` gives for sessions that do not run, besides those above. */
const waiting: Readonly<Record<GroupHold['reason'], string>> & Readonly<Record<string, string>> = {
  attached: 'A terminal is attached to the session.',
  backoff: 'The next attempt waits, or the API is unavailable.',
  blocked: 'A dependency failed.',
  cache: 'A similar session makes the first request and fills the prompt cache.',
  checkout: 'Another session works in the same checkout.',
  'command-slot': 'A checkout, setup or acceptance command waits for a free slot.',
  'day-budget': 'The budget for the day is spent.',
  disk: 'Less than 500 MB of disk space are free.',
  frozen: 'The group is frozen.',
  held: 'The session was paused, and starts when it is resumed.',
  host: 'Waiting for a slot on a fleet host.',
  limit: 'Waiting for the reset of a usage limit.',
  memory: 'Too little memory is free.',
  money: 'Waiting for budget reserved by running sessions.',
  'no-host': 'No host can run the session.',
  'not-asked-for': 'This run was started for other sessions only.',
  'not-started': 'The group has never run.',
  'other-group': 'A session of another group works in the same checkout, or reserves the budget for the day.',
  pausing: 'The group is being paused.',
  'runner-gone': 'The runner died. Run the group again.',
  slot: 'All slots are in use.',
  starting: 'Other sessions are still starting.',
  waiting: 'A dependency has not completed.',
  'waits-for-answer': 'The session asked for a permission or an answer. See `cca inbox`.',
  'waits-for-wave': 'The session belongs to a later wave. See `cca inbox`.',
};

const group: Readonly<Record<string, string>> = {
  budget: 'The budget is spent, or the rest is too small to start a session.',
  'budget-available': 'Budget is available again. Resume the group.',
  'day-budget': 'The budget for the day is spent.',
  'error-threshold': '`errorThreshold` sessions failed.',
  limit: 'A usage limit was reached, with `onLimit: pause`.',
  'needs-person': 'A session failed with a reason that hits all sessions, such as a missing login.',
  'no-host': 'No host can run what is left.',
  'sessions-failed': 'Sessions failed, and nothing else can start.',
  'sessions-paused': 'Only paused sessions are left.',
  'sessions-waiting': 'The requested sessions finished. The others were not started.',
  signal: 'The runner received a signal.',
  user: 'Paused on request.',
  'waits-for-answer': 'Only sessions that wait for an answer are left. See `cca inbox`.',
  'waits-for-wave': 'A wave waits for a decision, or was stopped. See `cca inbox`.',
};

const warned: Readonly<Record<Warning['code'], string>> = {
  'claude-reports': 'claude printed a warning.',
  'context-lost': 'After a compaction the session did not get its state back. The next attempt tells claude so.',
  'conversation-cut': 'claude did not save the end of the conversation. The next attempt tells claude so.',
  'denied-tools': 'Tool calls were denied.',
  'empty-result': 'The last answer has no text.',
  'estimated-cost': 'The cost is an estimate.',
  'flaky-check': 'The acceptance command failed, and passed when it was repeated.',
  'guarded-files': 'The session removed, skipped or weakened tests or other guarded files.',
  'held-cost': 'Part of the cost is unknown and held. Settle it with `cca group budget`.',
  'hook-failed': 'A hook failed and had no effect.',
  'hook-missing': 'The SessionStart hook did not run. The session may lack its context after a compaction.',
  'leftover-processes': 'Processes of the session could not be ended. See `cca doctor`.',
  'limit-reached': 'The session reached `memory` or `maxProcesses`.',
  'malformed-lines': 'Part of the output of claude could not be read.',
  'mcp-server': 'An MCP server did not start or needs a login.',
  'no-changes': 'The session changed no file, with `expectChanges`.',
  'open-tasks': 'The session left tasks on its list open.',
  'other-model': 'Another model answered.',
  'unfinished-answer': 'The last answer of the model is incomplete.',
  'unknown-end': 'claude ended in an unknown way. Check its work.',
  workspace: 'Something about the worktree or repository needs attention.',
};

interface CauseTable {
  readonly title: string;
  readonly text: string;
  readonly rows: readonly (readonly [code: string, meaning: string])[];
}

export function causeTables(): readonly CauseTable[] {
  const sorted = (causes: Readonly<Record<string, string>>) =>
    Object.entries(causes).toSorted(([a], [b]) => (a < b ? -1 : 1));
  return [
    {
      title: 'Failed sessions',
      text: 'The `reason` of a session with the status `failed`. `cca why` prints the next step.',
      rows: sorted(failed),
    },
    { title: 'Paused sessions', text: 'The `reason` of a session with the status `paused`.', rows: sorted(paused) },
    {
      title: 'Waiting sessions',
      text: 'Why a session that could start does not run yet, as printed by `cca why`.',
      rows: sorted(waiting),
    },
    {
      title: 'Groups',
      text: 'The `reason` of a paused or failed group. Groups also use reasons of paused sessions.',
      rows: sorted(group),
    },
    {
      title: 'Warnings',
      text: 'The `code` of a warning in `session show --json`. Warnings change no outcome.',
      rows: sorted(warned),
    },
  ];
}
