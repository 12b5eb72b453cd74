/** What was spent at which moment, and what was found out about it later, so that all of it is the sum of the group. */
import { roundUsd, type SessionId, type Usage } from '../../core/group.ts';

/** What one attempt or one conversation used, known from `at` on; it worked since `from`. */
export interface Spending {
  readonly from: number;
  readonly at: number;
  readonly sessionId: SessionId;
  usage: Usage;
}

export class Spendings {
  readonly all: Spending[] = [];

  /** A person settled what is held for the session: all of it is US dollars `costUsd` now. */
  settle(sessionId: SessionId, costUsd: number): void {
    const own = this.of(sessionId);
    lower(own, costUsd, ({ usage }) => usage.heldUsd ?? 0);
    for (const one of own) {
      const { heldUsd: _, ...usage } = one.usage;
      one.usage = usage;
    }
  }

  /** Attempts may have counted once more what those before them had told: all of the session is `costUsd` now. */
  correct(sessionId: SessionId, costUsd: number): void {
    const own = this.of(sessionId);
    lower(own, costUsd, (_, index) => own[index - 1]?.usage.costUsd ?? 0);
  }

  private of(sessionId: SessionId): Spending[] {
    return this.all.filter((one) => one.sessionId === sessionId);
  }
}

/** Takes from the last on what they are more than `toUsd` together: of each what it may lose first, then the rest. */
function lower(own: readonly Spending[], toUsd: number, loss: (one: Spending, index: number) => number): void {
  let excessUsd = own.reduce((sum, { usage }) => sum + usage.costUsd, 0) - toUsd;
  for (const most of [loss, ({ usage }: Spending) => usage.costUsd]) {
    for (const [index, one] of [...own.entries()].reverse()) {
      const usd = Math.max(0, Math.min(excessUsd, most(one, index), one.usage.costUsd));
      one.usage = { ...one.usage, costUsd: roundUsd(one.usage.costUsd - usd) };
      excessUsd -= usd;
    }
  }
}
