/** A clock that advances only on request. */
export class FakeClock {
  #nowMs: number;
  #timers: { readonly atMs: number; readonly action: () => void }[] = [];

  constructor(nowMs = 0) {
    this.#nowMs = nowMs;
  }

  /** Timers that are set. */
  get waiting(): number {
    return this.#timers.length;
  }

  readonly now = (): number => this.#nowMs;

  readonly after = (delayMs: number, action: () => void): (() => void) => {
    const timer = { atMs: this.#nowMs + delayMs, action };
    this.#timers.push(timer);
    return () => {
      this.#timers = this.#timers.filter((other) => other !== timer);
    };
  };

  pass(ms: number): void {
    const untilMs = this.#nowMs + ms;
    for (;;) {
      const due = this.#timers.filter(({ atMs }) => atMs <= untilMs).sort((a, b) => a.atMs - b.atMs)[0];
      if (due === undefined) break;
      this.#timers = this.#timers.filter((other) => other !== due);
      this.#nowMs = due.atMs;
      due.action();
    }
    this.#nowMs = untilMs;
  }
}
