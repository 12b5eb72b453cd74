/** app/run/: running a group from here, or in a process of its own. This file: how it is to be run. */
import type { GroupConfig, SessionId } from '../../core/group.ts';

/** Settings of a group that a run may change; they hold for later runs until given again. */
export type RunConfig = Partial<
  Omit<GroupConfig, 'model' | 'warningThreshold' | 'shareCheckouts' | 'prices' | 'onEvent' | 'onLost'>
>;

export interface RunOptions {
  readonly config: RunConfig;
  /** As a rehearsal: with the script of that path, with the one it was rehearsed with last, or the default one. */
  readonly rehearse: string | true | undefined;
  readonly retryFailed: boolean;
  /** Only these sessions are started; absent = all. */
  readonly only?: readonly SessionId[];
  /** Nothing is said of trials and projects before it begins. */
  readonly isQuiet?: boolean;
}
