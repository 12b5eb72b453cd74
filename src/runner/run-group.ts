/**
 * `group run`: takes the lock and opens the log (store/group-writer), checks whether the group may run (run-start), and
 * runs the loop (group-runner) with one worker per attempt (worker/).
 */
import { join } from 'node:path';
import { attemptMark } from '../claude/launch/attempt-mark.ts';
import { loginOf } from '../claude/launch/user-claude.ts';
import { defined } from '../core/defined.ts';
import type { RunInfo } from '../core/event.ts';
import { fail, ok, type Result } from '../core/failure.ts';
import type { GroupConfig, GroupId, SessionId } from '../core/group.ts';
import { chainOf } from '../core/plan/plan.ts';
import type { GroupState } from '../core/state.ts';
import type { OpenEngine } from '../fleet/redis.ts';
import { type GroupWriter, type OpenFailure, openGroupWriter } from '../store/group-writer.ts';
import { type GroupPaths, worktreesFolder } from '../store/paths.ts';
import { LogLost, systemFailure } from '../store/system-failure.ts';
import type { Lock, World } from '../system/world.ts';
import type { Reporter } from '../view/reporter.ts';
import { type ClaudeGate, createPreparer } from '../worker/attempt/attempt-setup.ts';
import { CommandSlots } from '../worker/attempt/command-slots.ts';
import type { RunnerSignal } from '../worker/facts.ts';
import { recoverAttachments } from './attach.ts';
import { openCheckouts } from './checkouts.ts';
import { GroupRunner } from './group-runner.ts';
import { gateKey, type LimitGate, openLimitGate, rehearsalGateKey } from './limit-gate.ts';
import type { LinkFleet } from './open-fleet.ts';
import { type RunStartOptions, startEvents } from './run-start.ts';

const preloadDelayMs = 50;

/** The scripted API of a rehearsal. */
export interface Rehearsal {
  /** Absolute path; absent = default script. */
  readonly scriptFile?: string;
  /** Keeps its branches and worktrees afterwards. */
  readonly keep?: boolean | undefined;
  /** Starts the API, or finds the one that an earlier runner left. Returns its base URL. */
  start(paths: GroupPaths): Promise<Result<string>>;
  stop(paths: GroupPaths): Promise<void>;
}

export interface RunGroupOptions {
  readonly root: string;
  readonly groupId: GroupId;
  readonly callerEnv: Readonly<Record<string, string | undefined>>;
  /** Folder of this package, with the pinned claude and the hook program. */
  readonly packageRoot: string;
  /** Folder for new worktrees; absent = the data root's. */
  readonly worktrees?: string;
  readonly reporter: Reporter;
  /** Settings from the command line. They are logged and persist. */
  readonly overrides: Partial<GroupConfig>;
  /** Daily cap of all groups, US dollars; absent = none. */
  readonly dayCapUsd?: number;
  /** The cost quote of each wave, if the group's rules need it. */
  readonly quotes?: (state: GroupState) => RunInfo['quotes'];
  readonly retryFailed: boolean;
  /** Only these sessions are started; absent = all. */
  readonly only?: readonly SessionId[];
  readonly rehearsal?: Rehearsal;
  /** Absent = the installed claude, unchecked. */
  readonly claude?: ClaudeGate;
  /** The engine of a fleet, if one is configured; absent = Redis. */
  readonly openEngine?: OpenEngine;
  /** The group's lock, if the caller has taken it; this run then owns it. */
  readonly taken?: { readonly runId: string; readonly lock: Lock };
  /** Returns a function that unsubscribes. */
  onSignal(handler: (signal: RunnerSignal) => void): () => void;
}

export type RunResult =
  | { readonly kind: 'settled'; readonly status: 'completed' | 'failed' | 'paused'; readonly state: GroupState }
  /** The runner exited and its workers continue; the next `group run` adopts them. */
  | { readonly kind: 'left'; readonly state: GroupState }
  /** `booked`: number of attempts whose cost a lost host has now reported. */
  | { readonly kind: 'already-completed'; readonly state: GroupState; readonly booked: number }
  | { readonly kind: 'refused'; readonly failure: OpenFailure; readonly booked?: number };

/** Runs a group until it is settled. Fails with `busy` when another live runner holds it. */
export async function runGroup(world: World, options: RunGroupOptions): Promise<RunResult> {
  const { root, groupId, taken } = options;
  const runId = taken?.runId ?? world.random.uuid();
  const opened = openGroupWriter(world, root, groupId, runId, taken?.lock);
  if (!opened.ok) return { kind: 'refused', failure: opened.failure };
  const writer = opened.value;
  try {
    return await runOpened(world, writer, runId, options);
  } catch (error) {
    // A missing or full disk ends only the runner: workers continue, and the log has everything acknowledged. Only a
    // removed log ends the workers too.
    if (error instanceof LogLost) await options.rehearsal?.stop(writer.paths);
    return { kind: 'refused', failure: systemFailure(writer.paths.folder, error) };
  } finally {
    writer.close();
  }
}

async function runOpened(
  world: World,
  writer: GroupWriter,
  runId: string,
  options: RunGroupOptions,
): Promise<RunResult> {
  const run: RunInfo = {
    id: runId,
    runner: world.machine.self,
    ...(options.rehearsal ? { rehearsal: true as const } : {}),
    ...defined({ script: options.rehearsal?.scriptFile }),
    ...(options.rehearsal?.keep ? { keep: true as const } : {}),
    ...defined({ quotes: options.quotes?.(writer.state) }),
  };
  await recoverAttachments(world, writer);
  const { overrides, retryFailed, only } = options;
  const fleet = await fleetOf(world, options);
  if (!fleet.ok) return { kind: 'refused', failure: fleet.failure };
  const hasFleet = fleet.value !== null;
  const { isAlive: lives } = world.processes;
  const start = { run, overrides, retryFailed, lives, hasFleet, ...(only ? { only } : {}) };
  const { events, booked } = await startOrBook(world, writer, start, fleet.value);
  if (!events.ok) return { kind: 'refused', failure: events.failure, booked };
  if (events.value.length === 0) return { kind: 'already-completed', state: writer.state, booked };
  const rehearsalUrl = await options.rehearsal?.start(writer.paths);
  if (rehearsalUrl && !rehearsalUrl.ok) return { kind: 'refused', failure: rehearsalUrl.failure };

  const slots = new CommandSlots({
    atOnce: () => writer.state.group.config.commandsAtOnce ?? world.machine.cores,
    chainOf: (id) => chainOf(writer.state, id),
  });
  const preparer = createPreparer(world, {
    paths: writer.paths,
    callerEnv: options.callerEnv,
    packageRoot: options.packageRoot,
    worktrees: options.worktrees ?? worktreesFolder(options.root),
    slots,
    ...(rehearsalUrl ? { rehearsalUrl: rehearsalUrl.value } : {}),
    ...(options.claude ? { claude: options.claude } : {}),
  });
  const linked = await fleet.value?.(options.groupId);
  if (linked?.ok === false) return { kind: 'refused', failure: linked.failure };
  const runner = new GroupRunner(world, {
    writer,
    run,
    reporter: options.reporter,
    preparer,
    slots,
    ...(options.rehearsal ? {} : { openFleet: linked?.value ?? null }),
    root: options.root,
    ...(options.rehearsal ? {} : defined({ dayCapUsd: options.dayCapUsd })),
    gate: gateFor(world, options, runId),
    checkouts: openCheckouts(world, options.root, options.groupId, runId, attemptMark in options.callerEnv),
  });
  const unsubscribe = options.onSignal((signal) => runner.enqueue({ kind: 'signal', signal }));
  const cancelLoading = world.clock.after(preloadDelayMs, () => void preloadModules());
  try {
    runner.record(events.value);
    const end = await runner.run();
    options.reporter.summarize(writer.state, runner.live, world.clock.now());
    if (end === 'left') return { kind: 'left', state: writer.state };
  } finally {
    cancelLoading();
    unsubscribe();
  }
  await options.rehearsal?.stop(writer.paths);
  return settledResult(writer.state);
}

/** As `startEvents`. If there is nothing to run, it first requests late costs from lost hosts. */
async function startOrBook(
  world: World,
  writer: GroupWriter,
  options: RunStartOptions,
  link: LinkFleet | null,
): Promise<{ readonly events: ReturnType<typeof startEvents>; readonly booked: number }> {
  const events = startEvents(writer.state, options);
  const isOver = events.ok ? events.value.length === 0 : writer.state.status === 'failed';
  if (!isOver || link === null) return { events, booked: 0 };
  const booked = await (await import('./open-fleet.ts')).recordLateCosts(world, writer, link);
  return { events: startEvents(writer.state, options), booked };
}

/** Null without a fleet. The fleet modules are loaded only when needed. */
async function fleetOf(world: World, options: RunGroupOptions): Promise<Result<LinkFleet | null>> {
  const { root, rehearsal } = options;
  if (rehearsal !== undefined || world.files.info(join(root, 'fleet', 'fleet.json')) === null) return ok(null);
  const { readFleetHere } = await import('./open-fleet.ts');
  return readFleetHere(world, options);
}

function gateFor(world: World, options: RunGroupOptions, runId: string): LimitGate {
  const { rehearsal, groupId, callerEnv, root } = options;
  const key = rehearsal ? rehearsalGateKey(groupId) : gateKey(loginOf(world, callerEnv));
  return openLimitGate(world, { root, key, runId });
}

function settledResult(state: GroupState): RunResult {
  const { status } = state;
  if (status === 'completed' || status === 'failed' || status === 'paused') return { kind: 'settled', status, state };
  return { kind: 'refused', ...fail('internal', `The run ended while the group is ${status}.`, 'Run it again.') };
}

/**
 * Loads the lazily imported modules soon after the start. If the program is updated during the run, modules loaded
 * later would not match the running ones. A module that is missing is reported where it is needed.
 */
export async function preloadModules(): Promise<void> {
  await Promise.allSettled([import('../template/config-template.ts'), import('p-queue')]);
}
