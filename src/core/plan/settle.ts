/** The end of a run when nothing runs and nothing can start: the status, the reason code and a sentence. */

import { needsPerson } from '../failure.ts';
import { roundUsd, type SessionId } from '../group.ts';
import { sessionLabel } from '../id.ts';
import { openItems } from '../item.ts';
import type { SessionRecord } from '../session-state.ts';
import type { GroupState } from '../state.ts';
import { formatMoney, momentText } from '../text.ts';
import { grantFor, isBudgetExhausted } from './budget.ts';
import type { Decision } from './decision.ts';
import { endingText, type WaitReason } from './decision.ts';
import { allBlockers, isHeldBack, type Plan, readySessions } from './plan.ts';
import { waveSettlement } from './waves.ts';

type Settle = Extract<Decision, { do: 'settle' }>;
export type SettlementBlocker = Exclude<Settle, { status: 'completed' }>;

export const budgetMessage = 'The budget is used up.';
/** When part of the spent amount is held (Usage.heldUsd). */
const heldMessage = 'Part of it is held until you record or release it.';

export function settle(state: GroupState, plan: Plan, holding: string | null): Decision[] {
  const { counts, sessions } = state;
  if (counts.completed === sessions.size) return [{ do: 'settle', status: 'completed' }];
  const ready = readySessions(state);
  const left = ready.length > 0;
  // Where no work failed, the group pauses even when nothing is left to start, and resumes when the cause is fixed.
  if (holding !== null && (left || hasFailed(state, (reason) => notTheirs.has(reason))))
    return [settleHeld(state, holding, left)];
  if (left) return settleDry(state, ready);
  const wave = waveSettlement(state);
  if (wave !== null) return [{ do: 'settle', status: 'paused', reason: 'waits-for-wave', message: wave }];
  if (counts.failed > 0) return [settleFailed(state, plan)];
  const dry = [...sessions.values()].find((record) => record.state.status === 'paused' && isBudgetExhausted(record));
  if (dry !== undefined) return [settleOwnDry(state, dry)];
  if (waitingIn(state) > 0)
    return [{ do: 'settle', status: 'paused', reason: 'waits-for-answer', message: waitingText(state) }];
  if (counts.paused > 0) {
    const noun = counts.paused === 1 ? 'session is' : 'sessions are';
    const message = `${counts.paused} ${noun} paused${heldNote(state)}.`;
    return [{ do: 'settle', status: 'paused', reason: 'sessions-paused', message }];
  }
  const held = heldNote(state);
  if (held !== '' || state.only !== undefined) {
    const others = held === '' ? '; the others were not started' : held;
    const message = `The requested sessions finished${others}.`;
    return [{ do: 'settle', status: 'paused', reason: 'sessions-waiting', message }];
  }
  throw new Error('Internal error: stuck [this is a bug]: nothing runs, nothing can start, nothing failed');
}

/** Items that wait for an answer. */
export function waitingIn({ sessions }: GroupState): number {
  return [...sessions.values()].flatMap(openItems).length;
}

export function waitingText(state: GroupState): string {
  const count = waitingIn(state);
  return `${count} ${count === 1 ? 'question waits' : 'questions wait'} for an answer.`;
}

function hasFailed({ failed, sessions }: GroupState, isMeant: (reason: string) => boolean): boolean {
  return [...failed].some((id) => {
    const session = sessions.get(id)?.state;
    return session?.status === 'failed' && isMeant(session.failure.reason);
  });
}

/** Why nothing new may start although there are slots; null when starting is allowed. */
export function startBlocker(state: GroupState): string | null {
  if (hasFailed(state, needsPerson)) return 'needs-person';
  return state.failed.size >= state.group.config.errorThreshold ? 'error-threshold' : null;
}

/** A login or a claude that cannot be used says nothing about a session's work. */
const notTheirs: ReadonlySet<string> = new Set(['not-logged-in', 'billing', 'claude-missing', 'claude-unproven']);

export function blockerHold(state: GroupState, reason: string): WaitReason {
  const message =
    reason === 'needs-person'
      ? 'Another session failed and needs you.'
      : `${failuresText(state)}; nothing new starts in this run.`;
  return { reason, message };
}

function settleHeld(state: GroupState, holding: string, left: boolean): Settle {
  const message =
    holding === 'needs-person'
      ? `${personMessage(state)}${left ? ' Nothing else was started.' : ''}`
      : `${failuresText(state)}; nothing else was started.`;
  const paused = state.group.config.pauseOnError || holding === 'needs-person';
  return { do: 'settle', status: paused ? 'paused' : 'failed', reason: holding, message };
}

function failuresText({ failed: { size } }: GroupState): string {
  return `${size} ${size === 1 ? 'session' : 'sessions'} failed`;
}

function settleFailed(state: GroupState, plan: Plan): Settle {
  const { counts, sessions } = state;
  const blocked = [...allBlockers(state, plan).keys()].filter((id) => sessions.get(id)?.state.status === 'pending');
  const rest = blocked.length > 0 ? ` and ${blocked.length} blocked by ${counts.failed === 1 ? 'it' : 'them'}` : '';
  const noun = counts.failed === 1 ? 'session' : 'sessions';
  const message = `${counts.failed} ${noun} failed${rest}${heldNote(state)}.`;
  return { do: 'settle', status: 'failed', reason: 'sessions-failed', message };
}

const namesMax = 8;

/** `; 003 and web are held back`: a reminder, because the next run starts them too. */
function heldNote({ sessions }: GroupState): string {
  const held = [...sessions.values()].filter(isHeldBack).map(({ definition: { id, name } }) => sessionLabel(id, name));
  if (held.length === 0) return '';
  const rest = held.length - namesMax;
  const names = rest > 0 ? [...held.slice(0, namesMax), `${rest} more`] : held;
  const listed = names.length === 1 ? names[0] : `${names.slice(0, -1).join(', ')} and ${names.at(-1)}`;
  return `; ${listed} ${held.length === 1 ? 'is' : 'are'} held back and would start too`;
}

/** Sessions are ready and slots are free: only the budget can be the reason. */
function settleDry(state: GroupState, ids: readonly SessionId[]): Decision[] {
  const ready = ids.map((id) => state.sessions.get(id) as SessionRecord);
  if (ready[0] !== undefined && ready.every(isBudgetExhausted)) return [settleOwnDry(state, ready[0])];
  const limit = state.group.config.maxBudgetUsd;
  if (limit === undefined) throw new Error('Internal error: stuck [this is a bug]: sessions are ready and none starts');
  const usage = state.usage.costUsd;
  const action = state.group.config.onBudgetExceeded === 'stop' ? 'stopped' : 'paused';
  const event = { type: 'budget_exceeded', action, usage, limit } as const;
  return [...(state.budgetExceeded ? [] : [{ do: 'record', event } as const]), settleForBudget(state)];
}

function settleOwnDry(state: GroupState, { definition, usage }: SessionRecord): SettlementBlocker {
  const status = state.group.config.onBudgetExceeded === 'stop' ? 'failed' : 'paused';
  const title = sessionLabel(definition.id, definition.name);
  const held = usage.heldUsd === undefined ? '' : ` ${heldMessage}`;
  const message = `Session ${title} has exhausted its own budget.${held}`;
  return { do: 'settle', status, reason: 'budget', message };
}

export function settleForBudget(state: GroupState): SettlementBlocker {
  const status = state.group.config.onBudgetExceeded === 'stop' ? 'failed' : 'paused';
  const used = leftMessage(state) ?? budgetMessage;
  const message = state.usage.heldUsd === undefined ? used : `${used} ${heldMessage}`;
  return { do: 'settle', status, reason: 'budget', message };
}

/** When some budget is left, but too little to start a session. */
function leftMessage({ group, usage }: GroupState): string | null {
  const left = roundUsd((group.config.maxBudgetUsd ?? 0) - usage.costUsd);
  return left > 0 ? `Only ${formatMoney(left)} of the budget is left, too little to start a session.` : null;
}

/** Budget was freed, recorded or added: updates the message of a group that stopped for lack of it. */
export function updateBudgetWait(state: GroupState): void {
  if (state.reason !== 'budget') return;
  const startable = [...state.sessions.values()].filter((record) => couldStart(state, record));
  const grants = startable.map((record) => grantFor(state, record, 0, 1).kind);
  if (grants.some((kind) => kind === 'share' || kind === 'unlimited')) {
    state.reason = 'budget-available';
    state.message = 'Budget is available again.';
    return;
  }
  const dry = grants.includes('dry') ? undefined : startable.find(isBudgetExhausted);
  state.message = (dry === undefined ? settleForBudget(state) : settleOwnDry(state, dry)).message;
}

function couldStart({ group, sessions }: GroupState, { definition, state }: SessionRecord): boolean {
  if (state.status === 'completed') return false;
  const isMet = (id: SessionId) => sessions.get(id)?.state.status === 'completed';
  return !group.config.respectDependencies || definition.dependsOn.every(isMet);
}

/** The end at a usage limit that is not to be waited out; `untilMs` is its reset, ms since 1970. */
export function settleForLimit(untilMs: number | undefined): SettlementBlocker {
  const when = untilMs === undefined ? 'later' : `at ${momentText(untilMs)}`;
  const message = `Usage or rate limit reached. It resets ${when}.`;
  return { do: 'settle', status: 'paused', reason: 'limit', message };
}

/** The failure that the user must fix; later failures may have other causes. */
function personMessage(state: GroupState): string {
  const records = [...state.sessions.values()];
  const last = records.findLast(({ state: now }) => now.status === 'failed' && needsPerson(now.failure.reason));
  return (last && endingText(last)) ?? 'A failure needs you before anything else can start.';
}
