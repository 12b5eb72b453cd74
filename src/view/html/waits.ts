/** Why sessions did not run, moment by moment: their verdicts, as far as the log tells, in the words of a timeline. */
import { allDependentsOf } from '../../core/graph.ts';
import type { SessionId } from '../../core/group.ts';
import { loggedContext, type SchedulingContext } from '../../core/plan/decision.ts';
import { planOf } from '../../core/plan/plan.ts';
import { judge } from '../../core/plan/schedule.ts';
import { verdictsOf } from '../../core/plan/verdicts.ts';
import { begunLike, warmUpMs } from '../../core/plan/warm-cache.ts';
import type { SessionRecord } from '../../core/session-state.ts';
import type { GroupState } from '../../core/state.ts';
import type { Verdict } from '../../core/verdict.ts';
import type { Piece } from './spans.ts';

export const waitReasons = [
  'slot',
  'cache',
  'dependency',
  'blocked',
  'limit',
  'budget',
  'backoff',
  'paused',
  'errors',
] as const;
/**
 * `slot`: nothing stood in its way but that others ran. `cache`: one of its kind was to fill the prompt cache first.
 * `errors`: nothing new starts because too much failed.
 */
export type WaitReason = (typeof waitReasons)[number];

/** Reason codes by the words of a timeline; all others mean that a person, or the end of a run, keeps the session. */
const words: Readonly<Record<string, WaitReason>> = {
  slot: 'slot',
  checkout: 'slot',
  cache: 'cache',
  waiting: 'dependency',
  blocked: 'blocked',
  limit: 'limit',
  budget: 'budget',
  'budget-available': 'budget',
  money: 'budget',
  backoff: 'backoff',
  'needs-person': 'errors',
  'error-threshold': 'errors',
};

interface Open {
  readonly from: number;
  readonly kind: WaitReason;
  /** It may be another one from then on, without any event. */
  readonly dueMs: number;
}

/** Follows a log, event by event. Times are ms since 1970 and never run backwards. */
export class Waits {
  readonly #open = new Map<SessionId, Open>();
  readonly #found = new Map<SessionId, Piece<WaitReason>[]>();
  /** What kept those that could start last; undefined = not the same for all of them. */
  #hold: string | undefined;
  /** The first of all `dueMs`. */
  #dueMs = Number.POSITIVE_INFINITY;

  /** Time passes until `at`, and nothing happens. */
  pass(state: GroupState, at: number): void {
    while (this.#dueMs < at) {
      const dueMs = this.#dueMs;
      const due = [...this.#open].filter(([, open]) => open.dueMs <= dueMs);
      this.#judge(
        state,
        due.map(([id]) => id),
        dueMs,
      );
      this.#dueMs = Math.min(...[...this.#open.values()].map((open) => open.dueMs), Number.POSITIVE_INFINITY);
    }
  }

  /** From `at` on its runner was gone. */
  rest(state: GroupState, at: number): void {
    for (const [id, { state: session }] of state.sessions) {
      if (this.#open.has(id) && session.status !== 'running') this.#set(id, at, 'paused');
    }
  }

  /**
   * Something has happened: to the session, whose attempt may have ended before that was noticed, or to the group.
   * `isTurn`: others may wait for the session in another way than before.
   */
  take(state: GroupState, at: number, about: { id: SessionId; endedAt: number; isTurn: boolean } | null): void {
    if (about === null) {
      this.#judge(state, state.sessions.keys(), at);
      return;
    }
    const { id, endedAt, isTurn } = about;
    const { graph, ready } = planOf(state);
    const others = this.#isHeldAsBefore(state, at) ? [] : ready;
    if (!this.#open.has(id)) this.#judge(state, [id], at, endedAt);
    this.#judge(state, new Set([id, ...(isTurn ? allDependentsOf(graph.graph, id) : []), ...others]), at);
  }

  forget(id: SessionId): void {
    this.#open.delete(id);
    this.#found.delete(id);
  }

  /** The waits of every session, in order of time, until `to`. */
  finish(to: number): ReadonlyMap<SessionId, readonly Piece<WaitReason>[]> {
    for (const id of [...this.#open.keys()]) this.#set(id, to, null);
    return new Map([...this.#found].map(([id, pieces]) => [id, pieces.filter((piece) => piece.from < to)]));
  }

  /** The same keeps all that could start: then none of them has to be asked. */
  #isHeldAsBefore(state: GroupState, at: number): boolean {
    let refused = 0;
    const { hold, goesOn } = judge(state, contextAt(state, at), () => {
      refused += 1;
    });
    const before = this.#hold;
    this.#hold = refused === 0 ? `${hold?.reason} ${hold?.until} ${goesOn}` : undefined;
    return refused === 0 && this.#hold === before;
  }

  #judge(state: GroupState, ids: Iterable<SessionId>, at: number, since = at): void {
    if (state.status === 'created') return;
    const verdicts = verdictsOf(state, contextAt(state, at));
    const whole = state.status === 'running' ? undefined : (words[state.reason ?? ''] ?? 'paused');
    for (const id of ids) {
      const record = state.sessions.get(id);
      if (record === undefined) continue;
      const why = verdicts(record);
      this.#set(id, since, why === null ? null : kindOf(record, why, whole), dueOf(state, why, at));
    }
  }

  #set(id: SessionId, at: number, kind: WaitReason | null, dueMs = Number.POSITIVE_INFINITY): void {
    const open = this.#open.get(id);
    this.#dueMs = Math.min(this.#dueMs, dueMs);
    if (open !== undefined && open.kind === kind) {
      if (open.dueMs !== dueMs) this.#open.set(id, { ...open, dueMs });
      return;
    }
    if (open !== undefined) {
      this.#open.delete(id);
      const pieces = this.#found.get(id) ?? [];
      this.#found.set(id, pieces);
      if (at > open.from) pieces.push({ from: open.from, to: at, kind: open.kind });
    }
    if (kind !== null) this.#open.set(id, { from: at, kind, dueMs });
  }
}

/** Null where nothing is waited for. `whole`: what kept the group as a whole, while no run was going on. */
function kindOf(
  { state: { status }, queued }: SessionRecord,
  { reason }: Verdict,
  whole: WaitReason | undefined,
): WaitReason | null {
  if (status === 'failed' && !queued) return null;
  if (whole !== undefined) return whole;
  // Whatever it was stopped for, it rests until somebody lets it go on.
  return status === 'paused' && !queued && reason !== 'budget' ? 'paused' : (words[reason] ?? 'paused');
}

/** Whoever else of a kind has begun shows that the first one was answered. */
function contextAt(state: GroupState, at: number): SchedulingContext {
  return { ...loggedContext(state, at), answered: { has: (id) => begunLike(state, id) > 1 } };
}

/** When the verdict may be another one although nothing has happened: a delay is over, or nobody waits any longer. */
function dueOf({ sessions }: GroupState, why: Verdict | null, at: number): number {
  const leader = why?.reason === 'cache' ? sessions.get(why.on?.[0] ?? '')?.state : undefined;
  const begunMs = leader?.status === 'running' ? Date.parse(leader.attempt.startedAt) : Number.NaN;
  const dueMs = leader === undefined ? why?.until : begunMs + warmUpMs;
  return dueMs !== undefined && dueMs > at ? dueMs : Number.POSITIVE_INFINITY;
}
