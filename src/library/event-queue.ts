/** Events in the order in which they happen, for one reader who takes them when it is ready. */

export class EventQueue<T> implements AsyncIterableIterator<T> {
  readonly #onReturn: () => void;
  #waiting: T[] = [];
  #reader: (() => void) | null = null;
  #isEnded = false;

  /** `onReturn` is called when the reader wants no more. */
  constructor(onReturn: () => void = () => {}) {
    this.#onReturn = onReturn;
  }

  push(event: T): void {
    if (this.#isEnded) return;
    this.#waiting.push(event);
    this.#reader?.();
  }

  end(): void {
    this.#isEnded = true;
    this.#reader?.();
  }

  async next(): Promise<IteratorResult<T>> {
    while (this.#waiting.length === 0 && !this.#isEnded) {
      await new Promise<void>((resolve) => {
        this.#reader = resolve;
      });
      this.#reader = null;
    }
    const [event] = this.#waiting.splice(0, 1);
    return event === undefined ? { done: true, value: undefined } : { done: false, value: event };
  }

  async return(): Promise<IteratorResult<T>> {
    this.#waiting = [];
    this.end();
    this.#onReturn();
    return { done: true, value: undefined };
  }

  [Symbol.asyncIterator](): this {
    return this;
  }
}
