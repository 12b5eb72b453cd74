/**
 * The next step for a group or a session. Computed when it is shown and never logged, so that ids and amounts are
 * current. A group that started as a rehearsal can continue as a rehearsal only.
 */

import { type Advice, advise, adviseInOrder, type CommandLine } from '../advice.ts';
import type { GroupEvent } from '../event.ts';
import { needsPerson, type SessionFailure } from '../failure.ts';
import type { GroupId, SessionId } from '../group.ts';
import { sessionLabel } from '../id.ts';
import { openItems } from '../item.ts';
import type { SessionRecord } from '../session-state.ts';
import { moneyUsd, sessionNamePattern } from '../setting-values.ts';
import { type GroupState, isRehearsal } from '../state.ts';
import { isBudgetExhausted } from './budget.ts';
import { hasAnswered } from './plan.ts';

export function runCommand(state: GroupState, ...more: CommandLine): CommandLine {
  return ['group', 'run', state.group.id, ...rehearsed(state), ...more];
}

/** For a group whose runner is gone. */
export function interruptedAdvice(state: GroupState): Advice {
  return advise('The group was interrupted. Next', runCommand(state));
}

export function resumeCommand(state: GroupState, ...more: CommandLine): CommandLine {
  return ['group', 'resume', state.group.id, ...rehearsed(state), ...more];
}

export function retryFailedCommand(state: GroupState): CommandLine {
  return runCommand(state, '--retry-failed', ...raisedBudget(state));
}

export function resumeSessionCommand(state: GroupState, record: SessionRecord, ...more: CommandLine): CommandLine {
  return ['session', 'resume', sessionReference(state, record), ...more, ...(isRehearsal(state) ? ['--rehearse'] : [])];
}

/** Doubles a session's own cap and resumes it. */
export function raiseSessionCommand(state: GroupState, record: SessionRecord): CommandLine {
  const { maxBudgetUsd = 0 } = record.definition;
  return resumeSessionCommand(state, record, ...raised('--max-budget-usd', maxBudgetUsd, record.usage.costUsd));
}

export function raiseGroupCommand({ group, usage }: GroupState): CommandLine {
  return ['group', 'budget', group.id, ...raised('--raise-to', group.config.maxBudgetUsd ?? 0, usage.costUsd)];
}

/** As typed: the group's id, and the session's name, or its number if a foreign log has another text there. */
export function sessionReference({ group }: GroupState, { definition: { id, name = '' } }: SessionRecord): string {
  return `${group.id}/${sessionLabel(id, sessionNamePattern.test(name) ? name : undefined)}`;
}

function rehearsed(state: GroupState): CommandLine {
  return isRehearsal(state) ? ['--rehearse', ...(state.run?.keep ? ['--keep'] : [])] : [];
}

/** Raises the cap when the group's budget is exhausted: otherwise the command would have no effect. */
function raisedBudget(state: GroupState): CommandLine {
  const cap = state.group.config.maxBudgetUsd;
  return state.reason !== 'budget' || cap === undefined ? [] : raised('--max-budget-usd', cap, state.usage.costUsd);
}

function raised(option: '--max-budget-usd' | '--raise-to', capUsd: number, spentUsd: number): CommandLine {
  const wantedUsd = Math.min(moneyUsd.max, capUsd + Math.max(capUsd, spentUsd));
  return [option, String(Math.ceil(wantedUsd * 100 - roundingError) / 100)];
}

/** For the day, when nothing says how much the group will cost. */
const usualRaiseUsd = 5;

/** Sums of cents are inexact in binary floating point. */
const roundingError = 1e-6;

/** How to resume a group without a runner. Held amounts are settled before the cap is raised. */
export function groupAdvice(state: GroupState): Advice {
  if (state.status === 'created') return advise('Start it with', runCommand(state));
  const held = heldRecord(state);
  if (held !== undefined) {
    const { free, book } = settleCommands(state.group.id, held.definition.id);
    return advise('Release the held amount, record it as spent, or raise the cap with', free, book, goOnCommand(state));
  }
  if (state.reason === 'day-budget') {
    const { maxBudgetUsd = usualRaiseUsd } = state.group.config;
    const raise = ['config', 'set', 'budget.day', `+${maxBudgetUsd}`];
    return adviseInOrder('Wait until tomorrow, or raise the cap and continue with', raise, goOnCommand(state));
  }
  if (state.reason === 'no-host')
    return advise('List the problems of the hosts, or continue, with', ['doctor', '--hosts'], goOnCommand(state));
  const wave = state.waves.items.at(-1);
  const isWaveOpen = state.reason === 'waits-for-wave' && wave?.state === 'open';
  if ([...state.sessions.values()].some((record) => openItems(record).length > 0)) {
    const inbox = ['inbox', state.group.id];
    if (isWaveOpen || state.reason === 'waits-for-answer') return advise('List the questions with', inbox);
    return advise('List the questions, or continue without answers, with', inbox, goOnCommand(state));
  }
  if (isWaveOpen) return advise('Decide with', ['answer', wave.id, 'continue'], ['answer', wave.id, 'stop']);
  // The same calls would be denied again, at the same cost.
  const denied = failedBy(state, 'permission');
  if (denied.length > 0) {
    const allow = denied.map((record) => ['session', 'allow', sessionReference(state, record), '--denied']);
    return adviseInOrder('Allow the denied calls, then retry', ...allow.slice(0, allowedMax), goOnCommand(state));
  }
  if (failedBy(state, 'claude-unproven').length > 0) {
    return advise('Install another version of claude, then continue with', goOnCommand(state));
  }
  const isStuck = failedBy(state, 'spawn-failed').length > 0;
  return isStuck ? advise('Fix the cause, then continue with', goOnCommand(state)) : goOnAdvice(state);
}

/** Says that failed sessions are tried again, which costs money, where that is not said by the command itself. */
export function goOnAdvice(state: GroupState): Advice {
  const goOn = goOnCommand(state);
  const isRetry = state.counts.failed > 0 && goOn[0] === 'group' && goOn[1] === 'resume';
  return advise(isRetry ? 'Continue, and try failed sessions again, with' : 'Continue with', goOn);
}

const allowedMax = 3;

export function failedBy({ failed, sessions }: GroupState, reason: SessionFailure['reason']): SessionRecord[] {
  const records = [...failed].flatMap((id) => sessions.get(id) ?? []);
  return records.filter(({ state }) => state.status === 'failed' && state.failure.reason === reason);
}

function heldRecord({ reason, sessions }: GroupState): SessionRecord | undefined {
  if (reason !== 'budget') return undefined;
  return [...sessions.values()].find(({ usage }) => usage.heldUsd !== undefined);
}

/** The group may have enough budget while a session has spent its own cap. */
export function goOnCommand(state: GroupState): CommandLine {
  if (state.status === 'failed' && state.counts.failed > 0)
    return hasAnswered(state) ? runCommand(state, ...raisedBudget(state)) : retryFailedCommand(state);
  const dry = state.reason === 'budget' && !state.budgetExceeded ? drySession(state) : undefined;
  return dry === undefined ? resumeCommand(state, ...raisedBudget(state)) : raiseSessionCommand(state, dry);
}

function drySession({ sessions }: GroupState): SessionRecord | undefined {
  return [...sessions.values()].find((record) => record.state.status === 'paused' && isBudgetExhausted(record));
}

export function settleCommands(
  groupId: GroupId,
  id: SessionId,
): { readonly free: CommandLine; readonly book: CommandLine } {
  const number = sessionLabel(id, undefined);
  return {
    free: ['group', 'budget', groupId, '--free', number],
    book: ['group', 'budget', groupId, '--book', number],
  };
}

export function raiseAdvice(state: GroupState, record: SessionRecord): Advice {
  return advise('Raise the cap and continue with', raiseSessionCommand(state, record));
}

/** The logged next step for a session's failure, with the command that resumes it afterwards. */
export function failureAdvice(state: GroupState, record: SessionRecord, { reason, next }: SessionFailure): Advice {
  const reference = sessionReference(state, record);
  const then = (what: string, ...commands: CommandLine[]) => advise(`${next} ${what}`.trim(), ...commands);
  if (needsPerson(reason)) return then('Continue with', resumeCommand(state));
  const retry = ['session', 'retry', reference];
  if (reason === 'prompt-too-long' || reason === 'compaction-thrashing') {
    return then('Start a new conversation with', [...retry, '--fresh']);
  }
  if (reason === 'permission') {
    return then('Allow it and retry with', ['session', 'allow', reference, '--denied', '--retry']);
  }
  if (reason === 'model-not-found') {
    const edit = ['session', 'edit', reference, '--model', 'sonnet'];
    return adviseInOrder(`${next} Change it and retry with`.trim(), edit, retry);
  }
  if (reason === 'refused') {
    const model = ['session', 'edit', reference, '--model', 'sonnet'];
    return then('Retry with', [...retry, '--prompt', 'Rephrase the task'], model);
  }
  if (reason === 'config-invalid') {
    const show = ['session', 'show', reference, '--config'];
    return adviseInOrder(`${next} Check how it is started, then retry`.trim(), show, retry);
  }
  const isFirst = reason === 'spawn-failed' && next !== '';
  return then(isFirst ? 'Then retry with' : 'Retry with', retry);
}

/** Advice for an event that needs the user, in the state after the event. */
export function eventAdvice(event: GroupEvent, state: GroupState): Advice {
  if (event.type === 'group_paused' || event.type === 'group_failed') return groupAdvice(state);
  const record = event.type === 'session_failed' ? state.sessions.get(event.sessionId) : undefined;
  return event.type === 'session_failed' && record !== undefined ? failureAdvice(state, record, event) : advise('');
}
