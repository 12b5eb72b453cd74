/**
 * The smallest possible runner: it does what `decide` returns, ends sessions as the test says, and after every step
 * checks the promises of a run against its own books, which do not use GroupState.
 */

import type { EventBody } from '../../src/core/event.ts';
import { buildGraph } from '../../src/core/graph.ts';
import {
  type GroupConfig,
  roundUsd,
  type SessionDefinition,
  type SessionId,
  type Usage,
} from '../../src/core/group.ts';
import type { Decision } from '../../src/core/plan/decision.ts';
import { readySessions } from '../../src/core/plan/plan.ts';
import { decide } from '../../src/core/plan/schedule.ts';
import { type AttemptOutcome, CoreLog } from './core-events.ts';

export type Settled = Extract<Decision, { do: 'settle' }>;
type Start = Extract<Decision, { do: 'start' }>;
type Known = 'pending' | 'running' | AttemptOutcome;

const capacity = { preparingMax: 100 };

export class CoreDriver {
  readonly log: CoreLog;
  readonly config: GroupConfig;
  /** Starts in the order in which they happened. */
  readonly started: SessionId[] = [];
  readonly notices: EventBody[] = [];
  private readonly known = new Map<SessionId, Known>();
  /** Sessions that may start in this run. */
  private readonly open = new Set<SessionId>();
  private readonly sessions: readonly SessionDefinition[];
  private readonly reserved = new Map<SessionId, number>();
  private readonly chain: ReadonlyMap<SessionId, number>;
  private readonly spentBy = new Map<SessionId, number>();

  constructor(config: Partial<GroupConfig>, sessions: readonly SessionDefinition[]) {
    this.log = new CoreLog(config);
    this.config = this.log.state.group.config;
    this.sessions = sessions;
    for (const session of sessions) {
      this.log.addSession(session);
      this.known.set(session.id, 'pending');
      this.open.add(session.id);
    }
    this.chain = chainsOf(sessions);
    this.log.run();
  }

  get running(): SessionId[] {
    return this.sessions.filter(({ id }) => this.known.get(id) === 'running').map(({ id }) => id);
  }

  get spent(): number {
    return [...this.spentBy.values()].reduce((sum, usd) => sum + usd, 0);
  }

  get reservedUsd(): number {
    return [...this.reserved.values()].reduce((sum, usd) => sum + usd, 0);
  }

  statusOf(id: SessionId): Known {
    return this.known.get(id) as Known;
  }

  /** The cap of the session's running attempt; undefined when it has none. */
  reservationOf(id: SessionId): number | undefined {
    return this.reserved.get(id);
  }

  /** US dollars left of the session's own cap; infinite without one. */
  ownLeft(id: SessionId): number {
    const cap = this.sessions.find((session) => session.id === id)?.maxBudgetUsd;
    return Math.max(0, roundUsd((cap ?? Number.POSITIVE_INFINITY) - (this.spentBy.get(id) ?? 0)));
  }

  /** Does what `decide` returns until it waits; returns the outcome once the run has ended. */
  step(): Settled | null {
    const decisions = decide(this.log.state, capacity);
    this.checkStarts(decisions.filter((decision): decision is Start => decision.do === 'start'));
    let settled: Settled | null = null;
    for (const decision of decisions) {
      if (decision.do === 'start') this.start(decision);
      else if (decision.do === 'settle') settled = this.settle(decision);
      else this.notice(decision);
    }
    this.check(this.running.length <= this.config.maxConcurrentSessions, 'more sessions run than may');
    this.check(settled === null || this.running.length === 0, 'settled while a session runs');
    this.check(settled !== null || this.running.length > 0, 'nothing runs and the run does not end');
    if (settled === null) this.check(decide(this.log.state, capacity).length === 0, 'a second decision without a fact');
    this.checkPlan();
    return settled;
  }

  /** Ends a running session. */
  finish(id: SessionId, outcome: AttemptOutcome, used?: Usage): void {
    this.check(this.known.get(id) === 'running', `${id} does not run`);
    if (outcome === 'completed') this.log.complete(id, used);
    else if (outcome === 'failed') this.log.fail(id, used);
    else this.log.pause(id, used, used === undefined ? 'user' : 'budget');
    this.known.set(id, outcome);
    this.reserved.delete(id);
    this.spentBy.set(id, (this.spentBy.get(id) ?? 0) + (used?.costUsd ?? 0));
    // Here every pause with a cost is for budget, and resumes by itself while the session's cap allows.
    if (outcome === 'paused' && used !== undefined && this.ownLeft(id) > 0) this.open.add(id);
  }

  /** A later run, in which every failed session is retried. */
  resume(): void {
    const failed = this.sessions.filter(({ id }) => this.known.get(id) === 'failed').map(({ id }) => id);
    this.log.run(failed);
    for (const { id } of this.sessions) if (this.known.get(id) !== 'completed') this.open.add(id);
  }

  /** Sessions that could start now in starting order, computed from scratch. */
  readyFromScratch(): SessionId[] {
    const ready = this.sessions.filter(
      ({ id, dependsOn }) =>
        this.open.has(id) &&
        this.known.get(id) !== 'running' &&
        (!this.config.respectDependencies || dependsOn.every((other) => this.known.get(other) === 'completed')),
    );
    // A stable sort keeps the order of definition among equals.
    return ready.map(({ id }) => id).sort((a, b) => (this.chain.get(b) ?? 0) - (this.chain.get(a) ?? 0));
  }

  private checkStarts(starts: readonly Start[]): void {
    const free = this.config.maxConcurrentSessions - this.running.length;
    // claude accepts no cap below a tenth of a cent.
    const payable = this.readyFromScratch().filter((id) => this.ownLeft(id) >= 0.001);
    const wanted = payable.slice(0, starts.length);
    this.check(starts.length <= free, 'a start without a free slot');
    this.check(
      Bun.deepEquals(
        starts.map((start) => start.sessionId),
        wanted,
      ),
      'not the longest chain first',
    );
  }

  private start({ sessionId, kind, reserveUsd }: Start): void {
    const before = this.known.get(sessionId);
    const expected = before === 'failed' ? 'retry' : before === 'paused' ? 'resume' : 'start';
    this.check(kind === expected, `${sessionId} was ${before} and starts as ${kind}`);
    this.check(this.open.delete(sessionId), `${sessionId} starts twice`);
    this.log.start(sessionId, kind, reserveUsd);
    this.known.set(sessionId, 'running');
    this.started.push(sessionId);
    if (reserveUsd !== undefined) this.reserved.set(sessionId, reserveUsd);
  }

  private settle(decision: Settled): Settled {
    if (decision.status === 'completed') this.log.add({ type: 'group_completed' });
    else this.log.add({ type: `group_${decision.status}`, reason: decision.reason, message: decision.message });
    return decision;
  }

  private notice(decision: Exclude<Decision, Start | Settled>): void {
    if (decision.do === 'stop') {
      const running = this.log.state.sessions.get(decision.sessionId)?.state;
      this.check(running?.status === 'running', `${decision.sessionId} is to stop and does not run`);
      const attemptId = running?.status === 'running' ? running.attempt.id : '';
      this.log.add({ type: 'session_stopping', sessionId: decision.sessionId, attemptId, reason: decision.reason });
      return;
    }
    if (decision.do !== 'record') return;
    this.notices.push(decision.event);
    this.log.add(decision.event);
  }

  private checkPlan(): void {
    const ready = readySessions(this.log.state).toReversed();
    this.check(Bun.deepEquals(ready, this.readyFromScratch()), 'the plan differs from one made from scratch');
  }

  private check(condition: boolean, message: string): void {
    if (condition) return;
    const story = this.log.events.map((event) => `${event.type} ${'sessionId' in event ? event.sessionId : ''}`);
    throw new Error(`${message}, after:\n${story.join('\n')}`);
  }
}

/** The longest path from each session, by definition instead of by the schedule's order. */
function chainsOf(sessions: readonly SessionDefinition[]): Map<SessionId, number> {
  const graph = buildGraph(sessions);
  if (!graph.ok) throw new Error(graph.failure.message);
  const dependents = new Map<SessionId, SessionId[]>(sessions.map(({ id }) => [id, []]));
  for (const { id, dependsOn } of sessions) for (const other of dependsOn) dependents.get(other)?.push(id);
  const chain = new Map<SessionId, number>();
  const lengthFrom = (id: SessionId): number => {
    const known = chain.get(id);
    if (known !== undefined) return known;
    const length = 1 + Math.max(0, ...(dependents.get(id) ?? []).map(lengthFrom));
    chain.set(id, length);
    return length;
  };
  for (const { id } of sessions) lengthFrom(id);
  return chain;
}
