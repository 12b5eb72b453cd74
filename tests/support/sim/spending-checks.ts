/** What the group must do about its budget, by separate sums over the logged costs of attempts. */
import type { GroupEvent } from '../../../src/core/event.ts';
import type { GroupConfig } from '../../../src/core/group.ts';
import { invariants } from './checks.ts';
import type { VirtualMachine } from './virtual-machine.ts';

type Settled = Extract<GroupEvent, { type: 'group_completed' | 'group_failed' | 'group_paused' }>;

/** Sums of money differ in the last digits. */
const sameUsd = 1e-9;

export class SpendingChecks {
  readonly #machine: VirtualMachine;
  #config: GroupConfig | null = null;
  #isQuiet = false;
  /** The cost of each attempt, US dollars; some are logged twice. */
  readonly #costs = new Map<string, number>();
  #spentUsd = 0;
  readonly #begun = new Set<string>();
  /** By session, whether it is completed. */
  readonly #sessions = new Map<string, boolean>();
  #isWarned = false;
  /** Notices about the exhausted budget in this run and with this cap. */
  #exceeded: string | null = null;
  #isPausing = false;

  constructor(machine: VirtualMachine) {
    this.#machine = machine;
  }

  /** `isReplay`: the log's content was checked when it happened. */
  take(events: readonly GroupEvent[], isReplay: boolean): void {
    this.#isQuiet = isReplay;
    if (isReplay) {
      this.#costs.clear();
      this.#begun.clear();
      this.#sessions.clear();
      this.#spentUsd = 0;
      this.#isWarned = false;
      this.#exceeded = null;
    }
    for (const event of events) this.#takeOne(event);
  }

  #takeOne(event: GroupEvent): void {
    switch (event.type) {
      case 'group_created':
        this.#config = event.group.config;
        return;
      case 'group_changed':
        this.#config = event.config;
        this.#exceeded = null;
        return;
      case 'group_started':
      case 'group_resumed':
        this.#exceeded = null;
        this.#isPausing = false;
        return;
      case 'group_pausing':
        this.#isPausing = true;
        return;
      case 'session_added':
        this.#sessions.set(event.sessionId, false);
        return;
      case 'session_removed':
        this.#sessions.delete(event.sessionId);
        return;
      case 'session_starting':
        this.#begins(event.sessionId, event.attempt.id);
        return;
      case 'session_accepting':
      case 'session_failed':
      case 'session_paused':
        this.#costs.set(event.attemptId, event.usage.costUsd);
        break;
      case 'session_completed':
        this.#sessions.set(event.sessionId, true);
        this.#costs.set(event.attemptId, event.usage.costUsd);
        break;
      case 'session_detached':
        this.#costs.set(event.attachmentId, event.usage.costUsd);
        break;
      case 'budget_warning':
        if (this.#isWarned) this.#violate(invariants.warned, 'it is warned of the budget a second time');
        this.#isWarned = true;
        return;
      case 'budget_exceeded':
        this.#exceeded = event.action;
        return;
      case 'group_completed':
      case 'group_failed':
      case 'group_paused':
        this.#settles(event);
        return;
      default:
        return;
    }
    this.#spentUsd = 0;
    for (const usd of this.#costs.values()) this.#spentUsd += usd;
  }

  #begins(sessionId: string, attemptId: string): void {
    // The same attempt starts again after a crash: its budget was reserved at its first start.
    if (this.#begun.has(attemptId)) return;
    this.#begun.add(attemptId);
    this.#checkWarned(`${sessionId} starts`);
    if (this.#config?.onBudgetExceeded === 'warn' || !this.#isReached) return;
    this.#violate(invariants.budgetStop, `${sessionId} starts although the budget is used up`);
  }

  #settles(event: Settled): void {
    const { onBudgetExceeded = 'pause' } = this.#config ?? {};
    // After a user's pause no further notice is expected.
    if (this.#isPausing) return;
    this.#checkWarned(`${event.type} is logged`);
    const isComplete = [...this.#sessions.values()].every((completed) => completed);
    if (!this.#isReached || isComplete) return;
    const wanted = { warn: 'continued', stop: 'stopped', pause: 'paused' } as const;
    if (this.#exceeded !== wanted[onBudgetExceeded])
      this.#violate(invariants.budgetStop, `the budget is used up, and what the log says of it is ${this.#exceeded}`);
    const type = onBudgetExceeded === 'stop' ? 'group_failed' : 'group_paused';
    if (onBudgetExceeded === 'warn') return;
    if (event.type !== type || event.reason !== 'budget')
      this.#violate(invariants.budgetStop, `the budget is used up, and the group ends with ${event.type}`);
  }

  #checkWarned(what: string): void {
    const { maxBudgetUsd, warningThreshold = 1 } = this.#config ?? {};
    if (maxBudgetUsd === undefined || this.#isWarned || this.#sessions.size === 0) return;
    if (this.#spentUsd < maxBudgetUsd * warningThreshold + sameUsd) return;
    this.#violate(invariants.warned, `${what}, $${this.#spentUsd} of $${maxBudgetUsd} are spent without a warning`);
  }

  get #isReached(): boolean {
    const cap = this.#config?.maxBudgetUsd;
    return cap !== undefined && this.#spentUsd >= cap + sameUsd;
  }

  #violate(invariant: string, message: string): void {
    if (!this.#isQuiet) this.#machine.violate(invariant, message);
  }
}
