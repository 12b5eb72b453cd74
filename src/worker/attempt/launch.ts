/** What it takes to start a worker. */
import type { Result } from '../../core/failure.ts';
import type { SpawnOptions } from '../../system/world.ts';

export interface Launch {
  readonly spawn: SpawnOptions;
  readonly prompt: string;
}

/** Gets a launch ready; may name what ends that early, should the worker be stopped meanwhile. */
export type Preparation = (onStop: (stop: () => void) => void) => Promise<Result<Launch>>;
