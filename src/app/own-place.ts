/** A place for callers that are no command line: the system's own world, and everything else as they say. */
import { packageRoot } from '../system/own-program.ts';
import { createRealWorld } from '../system/real-world.ts';
import type { World } from '../system/world.ts';
import { findDataRoot } from './data-root.ts';
import type { Place } from './place.ts';

export interface OwnPlaceOptions {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cwd: () => string;
  /** Is told in a line what is worth a word meanwhile. */
  readonly note: (line: string) => void;
}

export function createPlace({ env, cwd, note }: OwnPlaceOptions): Place {
  let world: World | undefined;
  return {
    env,
    get cwd() {
      return cwd();
    },
    packageRoot,
    get world() {
      world ??= createRealWorld();
      return world;
    },
    notes: { line: note, passing: () => {} },
    root() {
      return findDataRoot(this.world, env);
    },
  };
}
