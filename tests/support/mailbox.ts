/** A queue between what comes by itself and a test that waits for it; who waits in vain is told what it waited for. */

/** Longer than anything takes on a busy machine, and shorter than the limit of a test, which says nothing. */
export const patienceMs = 40_000;

/** What is thrown when patience is over. */
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

  /** Waits until something was put in; rejects when patience is over, with what `describe` says then. */
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
      // What nobody awaits any more keeps no process alive.
      timer.unref();
      this.#takers.push(taker);
    });
    // It may be awaited only later, and a test may end without what it was prepared for.
    waiting.catch(() => {});
    return waiting;
  }

  /** Calls `take` with everything that is put in, as often as something is, without an end. */
  forEach(take: (item: T) => void): void {
    for (const item of this.#items.splice(0)) take(item);
    const taker = (item: T): void => {
      this.#takers.push(taker);
      take(item);
    };
    this.#takers.push(taker);
  }
}
