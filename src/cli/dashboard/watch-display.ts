/** `group watch` on a terminal: the dashboard of a group that another process runs, ran or is going to run. */

import type { LoadedGroup } from '../../app/resolve.ts';
import type { RunnerSignal } from '../../app/signals.ts';
import { endOf, onSignal } from '../../app/signals.ts';
import { type Failure, ok } from '../../core/failure.ts';
import { delay } from '../../system/clock.ts';
import { nextSteps, totalsLine } from '../../view/summary.ts';
import { type Context, refuseWith, type Work } from '../context.ts';
import { exitCode, exitCodeForStatus } from '../exit-code.ts';
import { Dashboard, hears } from './dashboard.ts';
import { loadScreen, lookOf } from './screen.ts';
import { FileSource, type Source } from './source.ts';

const signalMs = 2_000;

/** Until the user leaves it, the group is deleted, or a signal ends it. */
export async function watchOnScreen(context: Context, group: LoadedGroup): Promise<Work> {
  const end = await watchedOnScreen(context, group);
  switch (end.by) {
    case 'user':
      return conclude(context, end.source);
    case 'loss':
      return refuseWith(end.failure);
    case 'trouble':
      throw end.error;
    case 'signal':
      // As if it had not been caught. It arrives in a moment; should it be blocked, the program ends all the same.
      endOf(end.signal);
      await delay(context.world.clock, signalMs);
      return exitCode.failed;
  }
}

export type End =
  | { readonly by: 'user'; readonly source: Source }
  | { readonly by: 'loss'; readonly failure: Failure }
  | { readonly by: 'trouble'; readonly error: unknown }
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
  const { promise, resolve } = Promise.withResolvers<End>();
  const onTrouble = (error: unknown): void => resolve({ by: 'trouble', error });
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
      ...lookOf(context),
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
function conclude({ stdout, world }: Context, { state, seen: { live }, runner }: Source): Work {
  const isRunning = state.status === 'running';
  const atMs = isRunning && runner === 'none' ? Date.parse(state.updatedAt) : world.clock.now();
  const hasRunner = runner !== 'none';
  stdout.line(totalsLine(state, live, atMs, stdout.style, hasRunner));
  stdout.lines(nextSteps(state, hasRunner));
  return ok(isRunning || state.status === 'created' ? exitCode.done : exitCodeForStatus(state.status));
}
