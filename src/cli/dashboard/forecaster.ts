/** When the run will be over, by what sessions of the same kind took in earlier groups and in this one. */
import { samplesByGroup, samplesOf } from '../../app/watch/history.ts';
import type { GroupId } from '../../core/group.ts';
import { historyOf, type Sample } from '../../core/plan/forecast.ts';
import { remainingMs } from '../../core/plan/remaining.ts';
import type { GroupState } from '../../core/state.ts';
import type { World } from '../../system/world.ts';

/** Between two groups whose log is read, milliseconds: whoever presses a key meanwhile is answered. */
const restMs = 50;
/** A forecast of minutes is not made anew with every frame. */
const keptMs = 5_000;

export class Forecaster {
  readonly #world: World;
  readonly #samples: Sample[] = [];
  #cancel = (): void => {};
  #last: { readonly atMs: number; readonly remainingMs: number | null } | undefined;

  /** Begins to read what earlier groups took. */
  constructor(world: World, root: string, own: GroupId) {
    this.#world = world;
    const groups = samplesByGroup(world, root, own);
    const readOne = (): void => {
      const { value, done } = groups.next();
      if (done) return;
      this.#samples.push(...value);
      this.#cancel = world.clock.after(restMs, readOne);
    };
    this.#cancel = world.clock.after(restMs, readOne);
  }

  /** Milliseconds; null when there is no telling. */
  remaining(state: GroupState): number | null {
    const nowMs = this.#world.clock.now();
    if (this.#last === undefined || Math.abs(nowMs - this.#last.atMs) >= keptMs) {
      const history = historyOf([...this.#samples, ...samplesOf(state)]);
      this.#last = { atMs: nowMs, remainingMs: remainingMs(state, history, nowMs) };
    }
    return this.#last.remainingMs;
  }

  close(): void {
    this.#cancel();
  }
}
