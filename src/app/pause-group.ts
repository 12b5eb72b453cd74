/** Pauses a whole group, with or without a runner. Shared by `group pause`, `stop --all` and the dashboard. */
import { defined } from '../core/defined.ts';
import type { GroupEvent, ProcessIdentity } from '../core/event.ts';
import { describeFailure, errorText, type Failure, ok, type Result } from '../core/failure.ts';
import type { GroupState } from '../core/state.ts';
import { isGroupGone, listGroups, loadGroup, noSuchGroup } from '../store/group-store.ts';
import { groupPaths } from '../store/paths.ts';
import type { PauseRequestMode } from '../store/requests.ts';
import { waitUntil } from '../system/clock.ts';
import type { World } from '../system/world.ts';
import { safeLine } from '../view/terminal-text.ts';
import type { AppContext } from './app-context.ts';
import { readUserConfig } from './config/user-config.ts';
import { createRunHooks } from './event-commands.ts';
import type { EventListener, PauseOutcome } from './group-commands.ts';
import { submit } from './group-commands.ts';
import { stopDamagedGroup } from './leftovers.ts';
import { liveRunner } from './live-runner.ts';
import { type GroupReference, isHeld } from './resolve.ts';

const sentenceColumnsMax = 1_000;

export interface PauseReport {
  readonly outcome: PauseOutcome;
  readonly warnings: readonly string[];
}

/** Pauses a group. Without a runner, this process runs the `onEvent` commands. */
export async function pauseAndNotify(
  context: AppContext,
  group: GroupReference,
  mode: PauseRequestMode,
  why: { readonly toDelete?: true } = {},
): Promise<Result<PauseReport>> {
  const logged: { readonly event: GroupEvent; readonly state: GroupState }[] = [];
  const tell: EventListener = (event, state) => logged.push({ event, state });
  const ask = (gone?: string) =>
    submit(context, group, { kind: 'pause', mode, ...why }, { tell, ...defined({ gone }) });
  let paused = await ask();
  const survivor = paused.ok || mode !== 'now' ? undefined : paused.failure.survivor;
  const runId = survivor === undefined || !isHeld(context.world, group) ? null : liveRunner(context.world, group);
  if (survivor !== undefined && (await hasEnded(context.world, survivor))) {
    paused = await ask(runId ?? undefined);
    if (paused.ok && paused.value.kind === 'unchanged') {
      paused = ok({ kind: 'settled', status: paused.value.status, had: 'runner' });
    }
  }
  if (!paused.ok) {
    const isUnlogged = mode === 'now' && paused.failure.reason === 'write-failed';
    return isUnlogged ? endUnlogged(context.world, group, paused.failure) : paused;
  }
  const [first] = logged;
  if (first === undefined) return ok({ outcome: paused.value, warnings: [] });
  const ofUser = await readUserConfig(context);
  // A faulty config.yaml must not prevent the pause.
  const isRehearsal = first.state.run?.rehearsal !== undefined;
  const hooks = createRunHooks(context, group, { isRehearsal }, ofUser.ok ? ofUser.value.onEvent : undefined);
  for (const { event, state } of logged) hooks.tell(event, state);
  const trouble = ofUser.ok ? '' : safeLine(describeFailure(ofUser.failure), sentenceColumnsMax);
  const unread = ofUser.ok ? [] : [`warning: Your onEvent command was not run. ${trouble}`];
  return ok({ outcome: paused.value, warnings: [...unread, ...(await hooks.finish(false))] });
}

/** The log cannot be written, so ends the workers unlogged: they would continue to spend. */
async function endUnlogged(world: World, group: GroupReference, failure: Failure): Promise<Result<never>> {
  const runner = isHeld(world, group) ? world.locks.holder(group.paths.lock)?.identity : undefined;
  if (runner !== undefined) await hasEnded(world, runner);
  const stopped = await stopUnreadableGroup(world, group);
  const hadRunner = runner !== undefined || (stopped.kind === 'ended' && stopped.runner !== undefined);
  const wasAtRest = !hadRunner && stopped.kind === 'ended' && stopped.processes === 0;
  if (stopped.kind !== 'ended' || wasAtRest) return { ok: false, failure };
  const done =
    stopped.processes < 0
      ? 'Some processes of its sessions could not be ended.'
      : 'Its sessions were ended. The next run counts their cost.';
  return { ok: false, failure: { ...failure, message: `${failure.message} ${done}` } };
}

/** Time for a worker that ignores the interrupt. */
const endPatienceMs = 60_000;
const endLookMs = 50;

export interface UnreadableGroup {
  readonly group: GroupReference;
  readonly failure: Failure;
}

export interface RunningGroups {
  readonly running: readonly GroupReference[];
  readonly unreadable: readonly UnreadableGroup[];
}

/** Reads the logs, because meta.json may be older than the death of a runner. */
export function runningGroups(context: AppContext): Result<RunningGroups> {
  const root = context.root();
  if (!root.ok) return root;
  const { world } = context;
  const running: GroupReference[] = [];
  const unreadable: UnreadableGroup[] = [];
  for (const listing of listGroups(world, root.value)) {
    if (listing.problem === undefined && listing.meta?.status === 'archived') continue;
    const group = { root: root.value, groupId: listing.id, paths: groupPaths(root.value, listing.id) };
    const state = loadGroup(world, root.value, listing.id);
    if (!state.ok && state.failure.reason === 'not-found') continue;
    if (!state.ok) unreadable.push({ group, failure: state.failure });
    else if (state.value.status === 'running' || liveRunner(world, group) !== null) running.push(group);
  }
  return ok({ running, unreadable });
}

export type StoppedUnreadable =
  /** Its runner received a signal. */
  | { readonly kind: 'runner'; readonly pid: number; readonly isSignalled: boolean }
  /** Another command holds the lock; nothing was stopped. */
  | { readonly kind: 'held' }
  /** How many processes were ended; -1 if some could not be. `runner`: the pid of the ended runner. */
  | { readonly kind: 'ended'; readonly processes: number; readonly runner?: number }
  | { readonly kind: 'failed'; readonly text: string };

/** Stops a group without its log: signals the runner, or ends the orphans of a dead one. */
export async function stopUnreadableGroup(
  world: World,
  { paths }: Pick<GroupReference, 'paths'>,
): Promise<StoppedUnreadable> {
  try {
    const runner = liveRunner(world, { paths }) === null ? undefined : world.locks.holder(paths.lock)?.identity;
    const lock = world.locks.tryLock(paths.lock, { identity: world.machine.self, runId: world.random.uuid() });
    const isHere = runner?.host === world.machine.host;
    if (runner !== undefined && (lock === null || !isHere)) {
      const isSignalled = isHere && world.processes.signal(runner, 'SIGTERM');
      return { kind: 'runner', pid: runner.pid, isSignalled };
    }
    if (lock === null) return { kind: 'held' };
    try {
      // The runner cannot log a pause, and its workers would continue. End it, then its workers.
      const isEnded = runner === undefined || (await hasEnded(world, runner));
      const processes = await stopDamagedGroup(world, paths);
      return { kind: 'ended', processes: isEnded ? processes : -1, ...defined({ runner: runner?.pid }) };
    } finally {
      lock.release();
    }
  } catch (error) {
    return { kind: 'failed', text: errorText(error) };
  }
}

/** Sends SIGTERM to a runner that takes no requests. True if it ended. */
export function hasEnded({ processes, clock }: World, runner: ProcessIdentity): Promise<boolean> {
  processes.signal(runner, 'SIGTERM');
  return waitUntil(clock, endPatienceMs, endLookMs, () => !processes.isAlive(runner));
}

export function goneGroup(world: World, { groupId, paths }: GroupReference): Failure | null {
  return isGroupGone(world, paths) ? noSuchGroup(groupId).failure : null;
}
