/** The dashboard of a group that another process runs, and that inside the process which runs it. */
import { isRequestPending } from '../../app/request.ts';

import type { GroupReference, LoadedGroup } from '../../app/resolve.ts';
import type { RunDisplay } from '../../app/run/run-options.ts';
import { endProcessBy, onSignal, type RunnerSignal } from '../../app/signals.ts';
import { errorText, type Failure, ok } from '../../core/failure.ts';
import type { GroupState } from '../../core/state.ts';
import { delay } from '../../system/clock.ts';
import type { Reporter } from '../../view/reporter.ts';
import { nextSteps, totalsLine } from '../../view/summary.ts';
import { withLocalTimes } from '../../view/wording.ts';
import {
  type CommandResult,
  type Context,
  type ExitCode,
  exitCode,
  exitCodeForStatus,
  refuseWith,
} from '../context.ts';
import { createReporter } from '../options/options.ts';
import { Dashboard, hears } from './dashboard.ts';
import { loadScreen, type OpenScreen, screenStyle } from './screen.ts';
import { FileSource, type Source } from './source.ts';

const signalMs = 2_000;

/** Until the user leaves it, the group is deleted, or a signal ends it. */
export async function watchOnScreen(context: Context, group: LoadedGroup): Promise<CommandResult> {
  const end = await watchedOnScreen(context, group);
  switch (end.by) {
    case 'user':
      return conclude(context, end.source);
    case 'loss':
      return refuseWith(end.failure);
    case 'signal':
      return endBy(context, end.signal);
  }
}

/** As if it had not been caught. It arrives in a moment; should it be blocked, the program ends all the same. */
export async function endBy({ world }: Context, signal: RunnerSignal): Promise<ExitCode> {
  endProcessBy(signal);
  await delay(world.clock, signalMs);
  return exitCode.failed;
}

export type End =
  | { readonly by: 'user'; readonly source: Source }
  | { readonly by: 'loss'; readonly failure: Failure }
  | { readonly by: 'signal'; readonly signal: RunnerSignal };

export interface WatchOptions {
  readonly leavesAfterMs?: number;
}

export async function watchedOnScreen(
  context: Context,
  group: LoadedGroup,
  { leavesAfterMs }: WatchOptions = {},
): Promise<End> {
  const openScreen = await loadScreen(context.world);
  const { promise, resolve, reject: onTrouble } = Promise.withResolvers<End>();
  let dashboard: Dashboard | undefined;
  const source = new FileSource(context.world, group, {
    onChange: () => dashboard?.changed(),
    onLost: (failure) => resolve({ by: 'loss', failure }),
    onTrouble,
  });
  const unsubscribe = onSignal(context.world.clock, (signal) => {
    if (dashboard === undefined || hears(dashboard, signal)) resolve({ by: 'signal', signal });
  });
  const onQuit = (): void => resolve({ by: 'user', source });
  context.stdout.onClosed(onQuit);
  const cancel = leavesAfterMs === undefined ? () => {} : context.world.clock.after(leavesAfterMs, onQuit);
  try {
    dashboard = new Dashboard({
      context,
      group,
      source,
      openScreen,
      ...screenStyle(context),
      onQuit,
      onLeave: onQuit,
      onInterrupt: onQuit,
      onTrouble,
    });
    return await promise;
  } finally {
    cancel();
    await dashboard?.close();
    unsubscribe();
    source.close();
  }
}

/** Leaving a group that still runs is no failure; one that is over tells how it ended. */
function conclude({ stdout, world }: Context, { state, seen: { live }, runner }: Source): CommandResult {
  const isRunning = state.status === 'running';
  const atMs = isRunning && runner === 'none' ? Date.parse(state.updatedAt) : world.clock.now();
  const hasRunner = runner !== 'none';
  stdout.line(totalsLine(state, live, atMs, stdout.style, hasRunner));
  stdout.lines(nextSteps(state, hasRunner));
  return ok(isRunning || state.status === 'created' ? exitCode.done : exitCodeForStatus(state.status));
}

export async function openRunDashboard(context: Context, group: GroupReference): Promise<RunTerminal> {
  const text = await createReporter(context, group, 'text');
  return new DashboardDisplay(context, group, text, await loadScreen(context.world));
}

/** The run continues if the display fails. */
class DashboardDisplay implements RunTerminal {
  readonly #context: Context;
  readonly #group: GroupReference;
  readonly #openScreen: OpenScreen;
  #source: FileSource | undefined;
  readonly #text: Reporter;
  readonly #handlers = new Set<(signal: RunnerSignal) => void>();
  #dashboard: Dashboard | undefined;
  readonly isScreen = true;
  isHandedOver = false;
  /** Broken: lines are printed from now on. */
  #isBroken = false;
  #conclude = (): void => {};

  constructor(context: Context, group: GroupReference, text: Reporter, openScreen: OpenScreen) {
    this.#context = context;
    this.#group = group;
    this.#openScreen = openScreen;
    this.#text = text;
  }

  readonly onSignal = (handler: (signal: RunnerSignal) => void): (() => void) => {
    this.#handlers.add(handler);
    const end = onSignal(this.#context.world.clock, (signal) => {
      if (this.#dashboard === undefined || hears(this.#dashboard, signal)) handler(signal);
    });
    return () => {
      this.#handlers.delete(handler);
      end();
    };
  };

  readonly reporter: Reporter = {
    event: (event, state, live) => {
      if (this.#isBroken) return this.#text.event(event, state, live);
      // Not before: a run that is refused shows nothing.
      this.#open(state);
    },
    progress: (sessionId, state, live) => {
      if (this.#isBroken) this.#text.progress(sessionId, state, live);
    },
    warning: (message, state) => {
      if (this.#isBroken) this.#text.warning?.(message, state);
      else this.#dashboard?.tell({ text: message, tone: 'warn' });
    },
    waiting: (reason, message, state) => {
      if (this.#isBroken) this.#text.waiting(reason, message, state);
      else {
        const words = withLocalTimes(message, this.#context.world.clock.now());
        this.#dashboard?.tell({ text: `waiting (${reason}) ${words}`, tone: 'warn' });
      }
    },
    summarize: (state, live, atMs) => {
      // A runner that goes on with it sums it up; what was settled before it was left is over here.
      if (this.isHandedOver && state.status === 'running') return;
      // The screen that is on top would swallow it.
      this.#conclude = () => this.#text.summarize(state, live, atMs);
    },
  };

  async close(): Promise<void> {
    await this.#dashboard?.close();
    this.#source?.close();
    this.#conclude();
  }

  #open(state: GroupState): void {
    if (this.#dashboard !== undefined) return;
    const onTrouble = (error: unknown): void => this.#break(error);
    const onChange = (): void => this.#dashboard?.changed();
    // A damaged log ends the run itself.
    const onLost = (): void => {};
    try {
      const { world } = this.#context;
      const group = { ...this.#group, state, hadRunner: true };
      this.#source = new FileSource(world, group, { onChange, onLost, onTrouble }, true);
      this.#dashboard = new Dashboard({
        context: this.#context,
        group,
        source: this.#source,
        openScreen: this.#openScreen,
        ...screenStyle(this.#context),
        onQuit: () => this.#leave(),
        onLeave: () => this.#leave(),
        onInterrupt: () => this.#signal('SIGINT'),
        onTrouble,
      });
    } catch (error) {
      this.#break(error);
    }
  }

  #leave(): void {
    const reason = this.#reasonToStay();
    if (reason !== null) {
      this.#dashboard?.tell({ text: reason, tone: 'warn' });
      return;
    }
    this.isHandedOver = true;
    this.#signal('SIGHUP');
  }

  /** The next runner resumes everything, which would undo the requests to this one. */
  #reasonToStay(): string | null {
    const { pausing, draining, frozenUntil } = this.#source?.stateNow() ?? {};
    if (frozenUntil !== undefined) return 'The group is frozen. Resume it (P) or pause it (q p) before you leave.';
    if (draining) return 'Exiting when running sessions have finished. Press P y to pause now.';
    if (pausing !== undefined) return 'Pausing, then exiting. Press Ctrl-C to leave at once.';
    if (isRequestPending(this.#context.world, this.#group))
      return 'The runner was just asked for something; try again.';
    return null;
  }

  #signal(signal: RunnerSignal): void {
    for (const handler of this.#handlers) handler(signal);
  }

  #break(error: unknown): void {
    if (this.#isBroken) return;
    this.#isBroken = true;
    const say = (): void => {
      this.#context.stderr.line(`The dashboard failed and was closed; the run continues: ${errorText(error)}`);
    };
    if (this.#dashboard === undefined) say();
    else this.#dashboard.close().then(say, say);
  }
}

export interface RunTerminal extends RunDisplay {
  readonly isHandedOver: boolean;
}
