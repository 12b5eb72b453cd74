/** Options of a run, and the display that it needs. */

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
  /** Rehearse with the script of this path; true = the script of the last rehearsal, or the default one. */
  readonly rehearse: string | true | undefined;
  /** Keep branches and worktrees of a completed rehearsal. */
  readonly keep?: boolean | undefined;
  readonly retryFailed: boolean;
  /** Start only these sessions; absent = all. */
  readonly only?: readonly SessionId[];
  readonly isQuiet?: boolean;
}

export interface RunDisplay {
  readonly reporter: Reporter;
  /** Signals of this process and of keys, such as Ctrl-C in the dashboard. */
  onSignal(handler: (signal: RunnerSignal) => void): () => void;
  /** The display uses the whole terminal, so nothing else may print. */
  readonly isScreen: boolean;
  close(): Promise<void>;
}

export function checkStartable({ state, record }: LoadedSession): Result<void> {
  if (!state.group.config.respectDependencies) return ok(undefined);
  const unmet = record.definition.dependsOn.filter((id) => state.sessions.get(id)?.state.status !== 'completed');
  if (unmet.length === 0) return ok(undefined);
  const next = advise('Continue the group with', resumeCommand(state));
  return fail('usage', `The session waits for ${listTitles(state, unmet)}, which must complete first.`, next);
}
