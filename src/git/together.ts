/**
 * What many sessions want of a repository at the same moment is done for all of them by one git: while one works there,
 * those that come gather for the next.
 */
import type { World } from '../system/world.ts';
import type { Git } from './git.ts';

interface Waiting<T, R> {
  readonly wanted: T;
  readonly resolve: (answer: R) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * `work` gets all that is wanted of one place and returns an answer for each of them, in their order. It begins after
 * each of them was asked for. Its git bears nobody's mark: what ends one of them must not end it for the others.
 */
export function together<T, R>(
  work: (git: Git, place: string, all: readonly T[]) => Promise<readonly R[]>,
): (git: Git, place: string, wanted: T) => Promise<R> {
  /** Of each process by its world; by place. */
  const known = new WeakMap<World, Map<string, Waiting<T, R>[]>>();

  async function workThrough(git: Git, place: string, places: Map<string, Waiting<T, R>[]>): Promise<void> {
    const gathering = places.get(place) as Waiting<T, R>[];
    while (gathering.length > 0) {
      const now = gathering.splice(0);
      try {
        const answers = await work(
          git,
          place,
          now.map(({ wanted }) => wanted),
        );
        for (const [index, { resolve }] of now.entries()) resolve(answers[index] as R);
      } catch (error) {
        for (const { reject } of now) reject(error);
      }
    }
    places.delete(place);
  }

  return (git, place, wanted) =>
    new Promise((resolve, reject) => {
      const places = known.get(git.world) ?? new Map<string, Waiting<T, R>[]>();
      known.set(git.world, places);
      const one = { wanted, resolve, reject };
      const gathering = places.get(place);
      if (gathering !== undefined) {
        gathering.push(one);
        return;
      }
      places.set(place, [one]);
      void workThrough({ world: git.world, env: git.env }, place, places);
    });
}
