/** A queue between asynchronous messages and a test that waits for them; a timeout names what was missing. */

/** Longer than any step on a busy machine, and shorter than the test timeout, which gives no details. */
export const patienceMs = 40_000;

/** The error thrown on timeout. */
export function impatience(what: string): Error {
  return new Error(`Waited ${patienceMs / 1000} s in vain for ${what}.`);
}

export class Mailbox<T> {
  readonly #items: T[] = [];
  readonly #takers: ((item: T) => void)[] = [];

  put(item: T): void {
    const taker = this.#takers.shift();
    if (taker) taker(item);
    else this.#items.push(item);
  }

  /** Waits for the next item; rejects on timeout with the text of `describe`. */
  next(describe: () => string): Promise<T> {
    const waiting = new Promise<T>((resolve, reject) => {
      const item = this.#items.shift();
      if (item !== undefined) return resolve(item);
      const taker = (taken: T): void => {
        clearTimeout(timer);
        resolve(taken);
      };
      const timer = setTimeout(() => {
        this.#takers.splice(this.#takers.indexOf(taker), 1);
        reject(impatience(describe()));
      }, patienceMs);
      // An abandoned wait keeps no process alive.
      timer.unref();
      this.#takers.push(taker);
    });
    // It may be awaited later, and a test may end without it.
    waiting.catch(() => {});
    return waiting;
  }

  /** Calls `take` for every item, without an end. */
  forEach(take: (item: T) => void): void {
    for (const item of this.#items.splice(0)) take(item);
    const taker = (item: T): void => {
      this.#takers.push(taker);
      take(item);
    };
    this.#takers.push(taker);
  }
}
