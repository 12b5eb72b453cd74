/** Pure: whether a group may run, and with which sessions. Returns events or a refusal. */

import { advise } from '../core/advice.ts';
import { configEvents } from '../core/edit.ts';
import type { EventBody, ProcessIdentity, RunInfo } from '../core/event.ts';
import { fail, needsPerson, ok, type Result } from '../core/failure.ts';
import type { GroupConfig, SessionId } from '../core/group.ts';
import { goOnCommand, retryFailedCommand } from '../core/plan/advice.ts';
import { hasAnswered } from '../core/plan/plan.ts';
import type { GroupState } from '../core/state.ts';

export interface RunStartOptions {
  readonly run: RunInfo;
  readonly overrides: Partial<GroupConfig>;
  readonly retryFailed: boolean;
  /** Only these sessions start; failed ones among them are retried. */
  readonly only?: readonly SessionId[];
  lives(process: ProcessIdentity): boolean;
  readonly hasFleet?: boolean;
}

/**
 * The events that start the run; empty when all sessions are completed. Fails with `usage`, `illegal-transition`, or
 * `other-host` when a worker belongs to another host.
 */
export function startEvents(state: GroupState, options: RunStartOptions): Result<EventBody[]> {
  const { id } = state.group;
  if (state.status === 'archived') {
    return fail('illegal-transition', `Group ${id} is archived.`, 'Create a new group to run its sessions again.');
  }
  if (state.status === 'completed') return ok([]);
  if (state.sessions.size === 0) {
    const next = advise('Add one with', ['session', 'add', id, '--project', 'DIR', '--prompt', 'TEXT']);
    return fail('usage', `Group ${id} has no sessions.`, next);
  }
  const failed = sessionsWith(state, 'failed');
  const isAsked =
    options.retryFailed ||
    options.only !== undefined ||
    failed.some((session) => isQueued(state, session)) ||
    hasAnswered(state);
  if (state.status === 'failed' && !isAsked) return refuseFailed(state, failed);
  const mixed = refuseMixing(state, options.run);
  if (mixed) return mixed;
  const foreign = refuseForeignWorkers(state, options.run.runner, options.lives) ?? refuseWithoutFleet(state, options);
  if (foreign) return foreign;
  const edited = configEvents(state, { config: options.overrides }, () => []);
  if (!edited.ok) return edited;
  const events = edited.value;
  if (state.status === 'created') return ok([...events, { type: 'group_started', run: options.run }]);
  const { run, only } = options;
  const retry = only ? failed.filter((session) => only.includes(session)) : retried(state, failed, options.retryFailed);
  return ok([...events, { type: 'group_resumed', run, retry, ...(only ? { only } : {}) }]);
}

function refuseFailed(state: GroupState, failed: readonly SessionId[]): Result<never> {
  const {
    group: { id },
    sessions,
    reason,
  } = state;
  const look = ['group', 'show', id];
  if (failed.length > 0) {
    const message = `Group ${id} failed: ${failed.length} of ${sessions.size} sessions failed.`;
    return fail('sessions-failed', message, advise('Inspect it, then retry', look, retryFailedCommand(state)));
  }
  // It failed because of its budget, as configured.
  const message = `Group ${id} failed${reason === undefined ? '' : ` (${reason})`}, with sessions left to run.`;
  return fail('sessions-failed', message, advise('Inspect it, then continue', look, goOnCommand(state)));
}

/** Failed sessions are queued when the user requests a retry while no runner is live. */
function isQueued({ sessions }: GroupState, id: SessionId): boolean {
  return sessions.get(id)?.queued === true;
}

/** Failures that needed the user's action are retried without a request. */
function retried(state: GroupState, failed: readonly SessionId[], retryFailed: boolean): SessionId[] {
  if (retryFailed) return [...failed];
  return failed.filter((id) => {
    const session = state.sessions.get(id)?.state;
    return isQueued(state, id) || (session?.status === 'failed' && needsPerson(session.failure.reason));
  });
}

function sessionsWith(state: GroupState, status: 'failed'): SessionId[] {
  return [...state.sessions].filter(([, record]) => record.state.status === status).map(([id]) => id);
}

/** Rehearsed and real conversations and costs must not mix. */
function refuseMixing(state: GroupState, run: RunInfo): ReturnType<typeof fail> | null {
  if (state.rehearsal !== undefined && run.rehearsal !== true) return refuseReal(state);
  const before = state.run;
  const begun = [...state.sessions.values()].some((record) => record.attempts > 0);
  if (!before || !begun || before.rehearsal === run.rehearsal) return null;
  if (before.rehearsal) return refuseReal(state);
  const { id } = state.group;
  const next = advise('Leave out --rehearse, or rehearse a copy of it', ['group', 'copy', id, '--rehearse']);
  return fail('usage', `Group ${id} was started for real and cannot continue as a rehearsal.`, next);
}

function refuseReal({ group: { id }, run }: GroupState): ReturnType<typeof fail> {
  const what =
    run === undefined
      ? 'is a rehearsal and cannot be run for real'
      : 'was started as a rehearsal and cannot continue for real';
  const next = advise('Continue with --rehearse, or run a copy of it for real', ['group', 'copy', id, '--real']);
  return fail('usage', `Group ${id} ${what}.`, next);
}

/**
 * Fails when a worker may still run on another machine. This machine may have been renamed, so live processes are
 * checked.
 */
export function refuseForeignWorkers(
  state: GroupState,
  self: ProcessIdentity,
  lives: RunStartOptions['lives'],
): ReturnType<typeof fail> | null {
  for (const id of state.running) {
    const session = state.sessions.get(id)?.state;
    // Fleet hosts are checked separately.
    if (session?.status !== 'running' || session.attempt.place !== undefined) continue;
    const { process } = session.attempt;
    if (process === undefined || process.host === self.host || lives(process)) continue;
    const { host } = process;
    const next = `Run the command on ${host}, or delete the group if that host is gone.`;
    const begun = `A session of group ${state.group.id} was started`;
    return fail('other-host', `${begun} on the host ${host} and may still be running there.`, next);
  }
  return null;
}

function refuseWithoutFleet(state: GroupState, { hasFleet = false }: RunStartOptions): ReturnType<typeof fail> | null {
  if (hasFleet) return null;
  for (const id of state.running) {
    const session = state.sessions.get(id)?.state;
    const host = session?.status === 'running' ? session.attempt.place?.host : undefined;
    if (host === undefined) continue;
    const where = `on the host ${host} of a fleet that is not set up here`;
    const message = `A session of group ${state.group.id} works ${where}.`;
    return fail('other-host', message, 'Run the command where the fleet is set up.');
  }
  return null;
}
