/** The effect of wave events on the state of a group; called by reduce. */
import { defined } from './defined.ts';
import type { GroupEvent, RunInfo } from './event.ts';
import type { GroupConfig } from './group.ts';
import { openWaveItem, waveSettlement } from './plan/waves.ts';
import { applyDefinition } from './reduce-session.ts';
import { IllegalEvent, ownDefinition } from './session-state.ts';
import type { GroupState, WaveItem } from './state.ts';

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
