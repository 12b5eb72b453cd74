/** Runs groups in this process, as `group run` does. */

import { finishInterruptedMerge } from '../app/delivery/merge.ts';
import { sessionMeta } from '../app/groups.ts';
import { loadWithRunner } from '../app/resolve.ts';
import { type RunWays, runHere } from '../app/run/run-here.ts';
import type { RunConfig } from '../app/run/run-options.ts';
import { submit } from '../app/submit.ts';
import { progressOf } from '../app/watch/live-view.ts';
import { defined } from '../core/defined.ts';
import type { GroupEvent } from '../core/event.ts';
import { fail, ok } from '../core/failure.ts';
import { configProblem } from '../core/setting-values.ts';
import { EventQueue, type SessionGroup } from './session-group.ts';
import { type BudgetConfig, type ConcurrencyConfig, type GroupResult, placeOf, unwrap } from './types.ts';

export interface RunnerOptions {
  /**
   * Against the scripted model on this machine, at no cost: true, or the path of a script. A group that was begun so
   * stays a rehearsal.
   */
  readonly rehearse?: boolean | string;
  /** A version of claude that is used although it failed a required check. */
  readonly acceptClaude?: string;
  /** Once aborted, everything that runs is paused as by a Ctrl-C. */
  readonly signal?: AbortSignal;
}

/** Holds for later runs of the group until given again. */
export type RunSettings = ConcurrencyConfig & Omit<BudgetConfig, 'warningThreshold'>;

/** A run that has begun. */
export interface SessionGroupRun {
  /** What happens, from the beginning of this run to its end; for one reader. Throws as `result` does. */
  readonly events: AsyncIterableIterator<GroupEvent>;
  /** Throws a SessionGroupError when the run could not begin. */
  readonly result: Promise<GroupResult>;
}

export class SessionGroupRunner {
  readonly #options: RunnerOptions;

  constructor(options: RunnerOptions = {}) {
    this.#options = options;
  }

  /** Runs the group until every session has completed, or nothing more can be done. Goes on with a paused one. */
  run(group: SessionGroup, config: RunSettings = {}): Promise<GroupResult> {
    return this.#run(group, config, false, () => {});
  }

  /** The same, to be watched meanwhile. */
  start(group: SessionGroup, config: RunSettings = {}): SessionGroupRun {
    return this.#watched((tell) => this.#run(group, config, false, tell));
  }

  /**
   * Goes on with a paused, failed or interrupted group; failed sessions are tried again. One that is frozen under a
   * runner of its own is thawed there, and the result is null.
   */
  async resume(group: SessionGroup, config: RunSettings = {}): Promise<GroupResult | null> {
    const { place, reference } = placeOf(group);
    const { state, hadRunner } = unwrap(loadWithRunner(place.world, reference));
    if (hadRunner && state.frozenUntil !== undefined) {
      if (unwrap(await submit(place, reference, { kind: 'thaw' })) === 'thawed') return null;
    }
    return this.#run(group, config, true, () => {});
  }

  #watched(run: (tell: (event: GroupEvent) => void) => Promise<GroupResult>): SessionGroupRun {
    const queue = new EventQueue<GroupEvent>();
    const result = run((event) => queue.push(event)).finally(() => queue.end());
    // Whoever reads the events first is told by them; nobody's process ends because of a run that was refused.
    result.catch(() => {});
    async function* events(): AsyncGenerator<GroupEvent, void> {
      yield* queue;
      await result;
    }
    return { events: events(), result };
  }

  async #run(
    group: SessionGroup,
    settings: RunSettings,
    retryFailed: boolean,
    tell: (event: GroupEvent) => void,
  ): Promise<GroupResult> {
    const { place, reference } = placeOf(group);
    const { rehearse, acceptClaude, signal } = this.#options;
    const { maxConcurrent, ...same } = settings;
    const config: RunConfig = {
      ...same,
      ...defined({ maxConcurrentSessions: maxConcurrent, acceptClaude }),
    };
    const problem = configProblem(config);
    if (problem !== null) unwrap(fail('usage', `${problem}.`, ''));
    const ways: RunWays = {
      openDisplay: async () => ({
        isScreen: false,
        reporter: { event: (event) => tell(event), progress() {}, waiting() {}, summarize() {} },
        onSignal(handler) {
          const stop = () => handler('SIGTERM');
          if (signal?.aborted) stop();
          signal?.addEventListener('abort', stop);
          return () => signal?.removeEventListener('abort', stop);
        },
        close: async () => {},
      }),
      finishMerge: () => finishInterruptedMerge(place, reference),
    };
    const asRehearsal = rehearse === false ? undefined : rehearse;
    const ran = unwrap(await runHere(place, reference, { config, rehearse: asRehearsal, retryFailed }, ways));
    if (ran.kind === 'refused') unwrap({ ok: false, failure: ran.failure });
    if (ran.kind === 'interrupted') unwrap(fail('internal', 'A signal interrupted the run before it began.', ''));
    if (ran.kind === 'called-off') unwrap(fail('usage', 'The group was paused before the run began.', ''));
    const loaded = unwrap(loadWithRunner(place.world, reference));
    const { status, reason, message, sessions } = loaded.state;
    const known =
      status === 'completed' || status === 'failed' || status === 'paused' ? ok(status) : leftBehind(status);
    return {
      status: unwrap(known),
      ...(reason === undefined || status === 'completed' ? {} : { reason }),
      ...(message === undefined || status === 'completed' ? {} : { message }),
      sessions: [...sessions.values()].map(sessionMeta),
      progress: progressOf(place.world, loaded),
    };
  }
}

function leftBehind(status: string): ReturnType<typeof fail> {
  return fail('internal', `The run was left while the group is ${status}; its workers go on.`, 'Run it again.');
}
