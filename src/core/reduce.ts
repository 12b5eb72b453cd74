/**
 * The state of a group is reduced from its events. `reduce` owns its state: it changes it in place and returns the same
 * object, because copying the session table would make every event cost more in a larger group. It is total over legal
 * events, deterministic, and throws IllegalEvent for all others, when loading a log as well as when writing one.
 */
import { defined } from './defined.ts';
import type { GroupEvent, MergedRepository, RunInfo } from './event.ts';
import type { GroupConfig } from './group.ts';
import { openItems } from './item.ts';
import { updateBudgetWait } from './plan/settle.ts';
import { openWaveItem, waveSettlement } from './plan/waves.ts';
import { applyDefinition, reduceSession, type SessionEvent } from './reduce-session.ts';
import { IllegalEvent, ownDefinition, queue } from './session-state.ts';
import { type GroupState, initialState, type WaveItem } from './state.ts';
import { nextGroupStatus } from './status.ts';

export function reduce(state: GroupState, event: GroupEvent): GroupState {
  if (event.seq !== state.lastSeq + 1) {
    throw new IllegalEvent(`event ${event.seq} follows event ${state.lastSeq}`);
  }
  const status = nextGroupStatus(state.status, event.type);
  if (status === null) throw new IllegalEvent(`${event.type} in a group that is ${state.status}`);
  if ('sessionId' in event && event.sessionId !== undefined && event.type !== 'request_answered') {
    reduceSession(state, event as SessionEvent);
  } else if (isWaveEvent(event)) {
    reduceWave(state, event);
  } else {
    reduceGroup(state, event);
  }
  state.status = status;
  state.lastSeq = event.seq;
  state.updatedAt = event.at;
  return state;
}

/** Reduces a whole log. Throws IllegalEvent at the first event that does not fit. */
export function foldEvents(events: Iterable<GroupEvent>): GroupState | null {
  let state: GroupState | null = null;
  for (const event of events) state = state === null ? initialState(event) : reduce(state, event);
  return state;
}

function reduceGroup(state: GroupState, event: GroupEvent): void {
  switch (event.type) {
    case 'group_changed':
      forgetQuotes(state, event.config);
      state.group = { ...state.group, config: event.config };
      for (const record of state.sessions.values()) applyDefinition(state, record, ownDefinition(record));
      state.budgetExceeded = false;
      state.definitionsVersion += 1;
      updateBudgetWait(state);
      return;
    case 'group_redefined': {
      const { id, slug, createdAt, config } = state.group;
      state.group = { id, slug, createdAt, config, ...event.group };
      state.definitionsVersion += 1;
      return;
    }
    case 'rehearsal_chosen':
      state.rehearsal = defined({ script: event.script });
      return;
    case 'group_started':
    case 'group_resumed':
      beginRun(state, event);
      return;
    case 'group_pausing':
      // A drain may become an immediate pause, never the other way round.
      state.draining = event.mode === 'drain' && (state.pausing === undefined || state.draining);
      state.pausing ??= event.reason;
      return;
    case 'group_frozen':
      state.frozenUntil = event.until;
      return;
    case 'group_thawed':
      delete state.frozenUntil;
      return;
    case 'limit_reached':
      state.limitResetsAt = event.resetsAt;
      delete state.limitType;
      if (event.limitType !== undefined) state.limitType = event.limitType;
      return;
    case 'limit_lifted':
      delete state.limitResetsAt;
      delete state.limitType;
      return;
    case 'group_paused':
    case 'group_failed':
      endRun(state, event.at);
      state.reason = event.reason;
      state.message = event.message;
      return;
    case 'group_completed':
      endRun(state, event.at);
      return;
    case 'budget_warning':
      state.budgetWarned = true;
      return;
    case 'budget_exceeded':
      state.budgetExceeded = true;
      return;
    case 'group_merged':
      noteMerged(state, event.merged);
      return;
    case 'group_archived':
    case 'request_answered':
      return;
    default:
      throw new IllegalEvent(`${event.type} in the middle of a log`);
  }
}

/** Sessions that were removed since do not matter. */
function noteMerged(state: GroupState, merged: readonly MergedRepository[]): void {
  for (const { into, repository, sessionIds } of merged) {
    // Sessions that start now start from the merged commits.
    for (const [checkout, base] of state.bases) {
      if (base.repository === repository && base.target === into) state.bases.delete(checkout);
    }
    for (const id of sessionIds) {
      const record = state.sessions.get(id);
      if (record !== undefined) record.mergedInto = into;
    }
  }
}

function beginRun(state: GroupState, event: Extract<GroupEvent, { type: 'group_started' | 'group_resumed' }>): void {
  // An interrupted run has no end of its own; its last event is the best known time.
  if (state.runStartedAt !== undefined) endRun(state, state.updatedAt);
  delete state.reason;
  delete state.message;
  state.run = event.run;
  beginRunOfWaves(state, event.run);
  state.runStartedAt = event.at;
  state.failed.clear();
  state.budgetExceeded = false;
  const retry = new Set(event.type === 'group_resumed' ? event.retry : []);
  delete state.only;
  if (event.type === 'group_resumed' && event.only !== undefined) state.only = new Set(event.only);
  for (const [id, record] of state.sessions) {
    const { status } = record.state;
    const wanted = state.only === undefined || state.only.has(id);
    if (openItems(record).length > 0) queue(record, false);
    else if (wanted && (status === 'pending' || status === 'paused' || (status === 'failed' && retry.has(id)))) {
      queue(record, true);
    }
    // The machine may have been off: then the conversation may lack its end.
    delete record.promptUnsent;
  }
}

function endRun(state: GroupState, at: string): void {
  if (state.runStartedAt !== undefined) {
    state.elapsedBeforeMs += Math.max(0, Date.parse(at) - Date.parse(state.runStartedAt));
  }
  delete state.runStartedAt;
  delete state.pausing;
  delete state.frozenUntil;
  state.draining = false;
}

// The effect of wave events on the state of a group; called by reduce.

type WaveEvent = Extract<GroupEvent, { type: 'wave_finished' | 'wave_decided' } | { kind: 'wave' }>;

export function isWaveEvent(event: GroupEvent): event is WaveEvent {
  return 'wave' in event;
}

/** They belong to other waves. */
export function forgetQuotes({ group, waves }: GroupState, config: GroupConfig): void {
  if (String(group.config.waves) !== String(config.waves)) delete waves.quotes;
}

export function reduceWave(state: GroupState, event: WaveEvent): void {
  const { waves } = state;
  if (event.wave !== waves.allowed) throw new IllegalEvent(`${event.type} for wave ${event.wave}`);
  switch (event.type) {
    case 'wave_finished': {
      const { wave, accepted, cost } = event;
      waves.finished = { wave, accepted, cost };
      closeItems(state, { state: 'withdrawn' });
      return;
    }
    case 'item_opened': {
      if (openWaveItem(state) !== undefined) throw new IllegalEvent(`item_opened twice for wave ${event.wave}`);
      const { item: id, kind, wave, text, options, at: since } = event;
      waves.items = [...waves.items, { id, kind, wave, text, options, since, state: 'open' }];
      return;
    }
    case 'wave_decided':
      closeItems(state, { state: 'answered', answer: { text: event.decision } });
      waves.stopped = event.decision === 'stop';
      if (event.decision === 'continue') waves.allowed += 1;
      if (event.note !== undefined) addNote(state, event.note);
      if (state.reason === 'waits-for-wave') state.message = waveSettlement(state) ?? 'The next wave can start.';
  }
}

function closeItems({ waves }: GroupState, closed: Pick<WaveItem, 'state' | 'answer'>): void {
  waves.items = waves.items.map((item) => (item.state === 'open' ? { ...item, ...closed } : item));
}

function addNote(state: GroupState, note: string): void {
  for (const record of state.sessions.values()) {
    if (record.attempts > 0 || record.state.status !== 'pending') continue;
    record.notes = [...(record.notes ?? []), note];
    applyDefinition(state, record, ownDefinition(record));
  }
  state.definitionsVersion += 1;
}

/** A later run asks again after a stop. */
export function beginRunOfWaves({ waves }: GroupState, { quotes }: RunInfo): void {
  waves.stopped = false;
  // The cost of a started wave is not an estimate of it.
  const isBegun = waves.quotes !== undefined || waves.finished !== undefined;
  const quoteOf = (usd: number | null, index: number) =>
    waves.quotes?.[index] ?? (isBegun && index < waves.allowed ? null : usd);
  Object.assign(waves, defined({ quotes: quotes?.map(quoteOf) }));
}
