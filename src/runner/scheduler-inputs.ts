/** Inputs of `decide` besides the state: costs so far, the gate of the login, free resources, the time. */

import { defined } from '../core/defined.ts';
import type { EventBody } from '../core/event.ts';
import type { SessionId, SessionSet } from '../core/group.ts';
import type { DayBudget, Verdicts, WaitReason } from '../core/plan/decision.ts';
import {
  type Decision,
  type FleetView,
  type Gate,
  loggedContext,
  type SchedulingContext,
} from '../core/plan/decision.ts';
import { isElsewhere } from '../core/plan/placement.ts';
import { readySessions } from '../core/plan/plan.ts';
import { decide } from '../core/plan/schedule.ts';
import { verdictsOf } from '../core/plan/verdicts.ts';
import type { SessionRecord } from '../core/session-state.ts';
import type { GroupState } from '../core/state.ts';
import { throttled } from '../core/state.ts';
import { daySpending } from '../store/day-spending.ts';
import type { World } from '../system/world.ts';
import type { CommandSlots } from '../worker/attempt/command-slots.ts';
import type { Worker } from '../worker/attempt/worker.ts';
import { type MemoryRoom, watchRoom } from '../worker/attempt/worker-options.ts';
import type { Fact } from '../worker/facts.ts';
import type { Checkouts } from './checkouts.ts';
import { isInOutage, parkedUntilMs } from './fact-events.ts';
import type { GateReading, LimitGate } from './limit-gate.ts';

type Workers = ReadonlyMap<SessionId, { readonly worker: Worker }>;

export interface SchedulerInputsOptions {
  readonly root: string;
  readonly gate: LimitGate;
  readonly checkouts: Checkouts;
  readonly slots: CommandSlots;
  /** Daily cap of all groups, US dollars; absent = none. */
  readonly dayCapUsd?: number;
}

export class SchedulerInputs {
  readonly #world: World;
  readonly #options: SchedulerInputsOptions;
  readonly #room: MemoryRoom;
  readonly #workers: Workers;
  readonly #fleet: (() => FleetView | null) | undefined;
  /** Milliseconds since the model last answered any session of this run; Infinity = never. */
  #unservedMs = Number.POSITIVE_INFINITY;
  #servedAtMs = Number.NEGATIVE_INFINITY;
  readonly #day: (state: GroupState) => DayBudget | undefined;
  #verdicts: Verdicts | undefined;
  /** Milliseconds since the outage was noticed; null = there is none. */
  #outMs: number | null = null;

  /** `fleet`: as in SchedulingContext. */
  constructor(
    world: World,
    options: SchedulerInputsOptions,
    workers: Workers,
    fleet: (() => FleetView | null) | undefined,
  ) {
    const { root, dayCapUsd: capUsd } = options;
    this.#world = world;
    this.#options = options;
    this.#room = watchRoom(world, root);
    this.#workers = workers;
    this.#fleet = fleet;
    const spending = daySpending(world, root);
    this.#day = ({ group }) => (capUsd === undefined ? undefined : { capUsd, ...spending(group.id) });
  }

  /**
   * Closes the gate when a session reached a usage limit of the login. Call this before the end is logged, so that a
   * crash in between does not let other sessions reach the same limit.
   */
  noteLimits({ group }: GroupState, facts: readonly Fact[]): void {
    for (const fact of facts) {
      if (fact.kind !== 'ended' || fact.outcome.status !== 'paused' || fact.outcome.reason !== 'limit') continue;
      if (parkedUntilMs(fact, group.config.onLimit, this.#world.clock.now()) !== null) continue;
      this.#options.gate.close(fact.outcome.resetsAtMs, fact.outcome.limitType);
    }
  }

  /** An outage begins with a session that the API did not serve and ends with the first response to any session. */
  trackOutage({ usage: served }: GroupState, facts: readonly Fact[]): void {
    for (const { worker } of this.#workers.values()) {
      this.#unservedMs = Math.min(this.#unservedMs, worker.notes.unservedMs);
      this.#servedAtMs = Math.max(this.#servedAtMs, worker.notes.answeredAtMs);
    }
    if (this.#unservedMs <= (this.#outMs ?? Number.NEGATIVE_INFINITY)) this.#outMs = null;
    const { isUnserved } = this;
    const isOut = facts.some((fact) => fact.kind === 'ended' && isInOutage(fact, { served, isUnserved }));
    if (isOut) this.#outMs ??= 0;
  }

  tick(ms: number): void {
    this.#unservedMs += ms;
    if (this.#outMs !== null) this.#outMs += ms;
  }

  /** The model has answered no session since this worker started. */
  readonly isUnserved = (sessionId: SessionId): boolean =>
    this.#unservedMs >= (this.#workers.get(sessionId)?.worker.notes.ageMs ?? 0);

  get isDiskFull(): boolean {
    return this.#room.isDiskFull();
  }

  get isLimited(): boolean {
    return this.#options.gate.read() !== null;
  }

  /** Events for changes of the gate; opens it when the model has answered since the reset. */
  gateEvents(state: GroupState): EventBody[] {
    let reading = this.#options.gate.read();
    if (reading !== null && this.#answeredAfter(reading)) {
      this.#options.gate.open();
      reading = null;
    }
    const known = state.limitResetsAt;
    if (reading === null) return known === undefined ? [] : [{ type: 'limit_lifted' }];
    const resetsAt = new Date(reading.untilMs).toISOString();
    if (known === resetsAt) return [];
    return [{ type: 'limit_reached', resetsAt, ...(reading.limitType ? { limitType: reading.limitType } : {}) }];
  }

  decisions(state: GroupState): readonly Decision[] {
    const context = this.#context(state);
    this.#verdicts = verdictsOf(state, context);
    return this.#options.checkouts.claimed(state, decide(state, context));
  }

  /** Why the session is not running, from the inputs of the last decisions. */
  verdictOn(state: GroupState, record: SessionRecord): WaitReason | null {
    this.#verdicts ??= verdictsOf(state, loggedContext(state, this.#world.clock.now()));
    return this.#verdicts(record);
  }

  /** Gathers only what this state needs, because it runs at every step. */
  #context(state: GroupState): SchedulingContext {
    const nowMs = this.#world.clock.now();
    const gate = this.#gateFor(state, nowMs);
    const waiting = readySessions(state).length > 0;
    const day = waiting || state.running.size > 0 ? this.#day(state) : undefined;
    const room = waiting ? this.#room.forStarts(state.group.config, this.#starting(state)) : undefined;
    return {
      preparingMax: 2 * this.#world.machine.cores,
      inQueue: { has: (id) => this.#options.slots.isWaiting(id) },
      nowMs,
      busy: this.#among((worker) => worker.stream.openTools.size > 0),
      answered: this.#among((worker) => worker.stream.messages > 0),
      ...(hasCap(state) || day !== undefined ? { liveUsd: this.#liveUsd() } : {}),
      ...defined({ day }),
      ...(this.#outMs === null ? {} : { isOut: true }),
      ...(this.#servedAtMs > 0 ? { servedAtMs: this.#servedAtMs } : {}),
      ...(gate === null ? {} : { gate }),
      ...defined({ room }),
      ...(state.running.size > 0 && this.#room.isDiskLow() ? { isDiskLow: true } : {}),
      others: this.#options.checkouts.others,
      ...(this.#fleet === undefined ? {} : { fleet: this.#fleet() }),
    };
  }

  #starting({ sessions }: GroupState): number {
    let starting = 0;
    for (const [id, { worker }] of this.#workers) {
      if (!worker.stream.sawInit && !isElsewhere(sessions.get(id))) starting += 1;
    }
    return starting;
  }

  #among(isOne: (worker: Worker) => boolean): SessionSet {
    return {
      has: (id) => {
        const active = this.#workers.get(id);
        return active !== undefined && isOne(active.worker);
      },
    };
  }

  #liveUsd(): Map<SessionId, number> {
    const live = new Map<SessionId, number>();
    for (const [id, { worker }] of this.#workers) live.set(id, worker.stream.costUsd);
    return live;
  }

  /** The probe is claimed only when a session is ready and no running session could detect the reset. */
  #gateFor(state: GroupState, nowMs: number): Gate | null {
    const reading = this.#options.gate.read();
    if (reading === null) return null;
    const wanted = nowMs >= reading.untilMs && state.running.size === 0 && readySessions(state).length > 0;
    const mayProbe =
      wanted && reading.probe !== 'other' && (reading.probe === 'mine' || this.#options.gate.claimProbe());
    return { untilMs: reading.untilMs, mayProbe, isThrottled: reading.limitType === throttled };
  }

  #answeredAfter(reading: GateReading): boolean {
    return [...this.#workers.values()].some(({ worker }) => worker.notes.answeredAtMs > reading.untilMs);
  }
}

function hasCap({ group, running, sessions }: GroupState): boolean {
  if (group.config.maxBudgetUsd !== undefined) return true;
  for (const id of running) if (sessions.get(id)?.definition.maxBudgetUsd !== undefined) return true;
  return false;
}
