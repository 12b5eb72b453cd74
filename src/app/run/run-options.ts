/** app/run/: running a group from here, or in a process of its own. This file: how it is to be run. */

import { advise } from '../../core/advice.ts';
import { fail, ok, type Result } from '../../core/failure.ts';
import type { GroupConfig, SessionId } from '../../core/group.ts';
import { resumeCommand } from '../../core/plan/advice.ts';
import type { Reporter } from '../../view/reporter.ts';
import { listTitles } from '../../view/wording.ts';
import type { RunnerSignal } from '../../worker/facts.ts';
import type { LoadedSession } from '../resolve.ts';

export type RunConfig = Partial<GroupConfig>;

export interface RunOptions {
  readonly config: RunConfig;
  /** As a rehearsal: with the script of that path, with the one it was rehearsed with last, or the default one. */
  readonly rehearse: string | true | undefined;
  /** Branches and worktrees of a rehearsal stay when it is over. */
  readonly keep?: boolean | undefined;
  readonly retryFailed: boolean;
  /** Only these sessions are started; absent = all. */
  readonly only?: readonly SessionId[];
  readonly isQuiet?: boolean;
}

// What shows a run while it runs, and is asked by whom it is stopped.

export interface RunDisplay {
  readonly reporter: Reporter;
  /** Signals of this process, and those that keys stand for. */
  onSignal(handler: (signal: RunnerSignal) => void): () => void;
  /** It has the whole terminal, and nothing else may write there. */
  readonly isScreen: boolean;
  close(): Promise<void>;
}

export function checkStartable({ state, record }: LoadedSession): Result<void> {
  if (!state.group.config.respectDependencies) return ok(undefined);
  const unmet = record.definition.dependsOn.filter((id) => state.sessions.get(id)?.state.status !== 'completed');
  if (unmet.length === 0) return ok(undefined);
  const next = advise('Let the group go on with', resumeCommand(state));
  return fail('usage', `It waits for ${listTitles(state, unmet)}, which must complete first.`, next);
}
