/**
 * When a machine counts as lost, by what is to be seen of the lease of a slot. By then its guard has ended what ran
 * there: that counts from before the last renewal that was answered, this from what Redis shows of it, or, when that
 * cannot be believed, from the first look that saw nothing.
 */

/** A guard ends what it ends within 13 seconds; the rest is for whoever looks late. */
export const fenceMs = 20_000;
/** A lock that goes so much before its time was taken away. */
const earlyMs = 1_500;

export interface Seen {
  readonly leftMs: number | null;
  readonly leaseMs: number;
  readonly server: string;
}

export class LossClock {
  /** When the lease is over, as was seen last. */
  #endMs: number | null = null;
  #server: string | null = null;
  /** The end of a lease that nobody has renewed since its server is another one. */
  #doubtedEndMs: number | null = null;
  /** Nothing was seen since then, or something that cannot be believed. */
  #isUnsure = false;
  #lostAtMs: number | null = null;

  /** The engine does not answer. */
  notSeen(): void {
    if (this.#lostAtMs === null) this.#isUnsure = true;
  }

  /**
   * True from the moment on at which nothing can run there any more. `nowMs` never jumps forward; `leftMs`: see
   * `LeaseLook`; `leaseMs`: for so long its machine may work alone.
   */
  seen(nowMs: number, { leftMs, leaseMs, server }: Seen): boolean {
    const isOther = this.#server !== null && this.#server !== server;
    this.#server = server;
    if (leftMs !== null) {
      this.#endMs = nowMs + leftMs;
      // A server that was started anew may have forgotten a renewal that it had answered.
      if (isOther) this.#doubtedEndMs = this.#endMs;
      const isBelieved = this.#doubtedEndMs === null || this.#endMs > this.#doubtedEndMs + earlyMs;
      if (isBelieved) this.#doubtedEndMs = null;
      this.#isUnsure = !isBelieved;
      this.#lostAtMs = null;
      return false;
    }
    if (this.#lostAtMs === null) {
      const end = this.#endMs;
      const isDue = end !== null && nowMs >= end - earlyMs && !isOther && !this.#isUnsure;
      this.#lostAtMs = (isDue ? (end as number) : nowMs + leaseMs) + fenceMs;
    }
    return nowMs >= this.#lostAtMs;
  }
}
