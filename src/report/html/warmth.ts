/** When sessions of a kind waited for the first answer of one of them (warm-cache.ts), as far as the log tells it. */
import type { SessionId } from '../../core/group.ts';
import { cacheKind, warmingKinds, warmUpMs } from '../../core/plan/warm-cache.ts';
import type { GroupState } from '../../core/state.ts';
import { type Span, subtract, Track, union } from './spans.ts';

export class Warmth {
  private readonly kinds = new Map<string, Track>();
  /** Every slot was taken: that alone kept the others. */
  private readonly full = new Track();

  /** To be told after every event, with its time. */
  take(state: GroupState, at: number): void {
    const warming = state.status === 'running' ? warmingKinds(state, at) : new Set<string>();
    for (const kind of warming) if (!this.kinds.has(kind)) this.kinds.set(kind, new Track());
    for (const [kind, track] of this.kinds) track.set(warming.has(kind), at);
    this.full.set(state.running.size >= state.group.config.maxConcurrentSessions, at);
  }

  /** For each session the spans in which it would have waited, had it been ready. */
  spans(state: GroupState, to: number): Map<SessionId, readonly Span[]> {
    const full = union(this.full.spans(to));
    const ofKind = new Map<string, Span[]>();
    for (const [kind, track] of this.kinds) {
      // Nobody waits longer, and nothing is logged when that time is over.
      const spans = track.spans(to).map(({ from, to: end }) => ({ from, to: Math.min(end, from + warmUpMs) }));
      ofKind.set(kind, subtract(union(spans), full));
    }
    const found = new Map<SessionId, readonly Span[]>();
    for (const [id, { definition }] of state.sessions) {
      const spans = ofKind.get(cacheKind(state.group, definition)) ?? [];
      if (spans.length > 0) found.set(id, spans);
    }
    return found;
  }
}
