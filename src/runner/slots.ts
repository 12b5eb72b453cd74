/**
 * The worker slots. p-queue holds them; since `decide` starts only into a free slot nothing ever waits inside the
 * queue, which is asserted: a waiting worker would be one that nobody decided to keep waiting.
 */
import PQueue from 'p-queue';
import { assert } from '../core/failure.ts';

export class Slots {
  readonly #queue = new PQueue();

  /** Occupies a slot of `max` until `work` settles. */
  occupy(max: number, work: () => Promise<void>): void {
    // `pending` falls a moment after the last task is gone from `runningTasks`, and it is what p-queue compares.
    this.#queue.concurrency = Math.max(max, this.#queue.pending + 1);
    void this.#queue.add(work);
    assert(this.#queue.size === 0, 'a worker waits for a slot that decide() said was free');
  }
}
