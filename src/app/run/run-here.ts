/** Runs a group in this process, after all checks, until the group is settled. */
import { resolve } from 'node:path';
import { commandText } from '../../core/advice.ts';
import { defined } from '../../core/defined.ts';
import type { GroupEvent, RunInfo } from '../../core/event.ts';
import { fail, ok, type Result } from '../../core/failure.ts';
import { canaryWaves, costHistory } from '../../core/plan/preview.ts';
import type { GroupState } from '../../core/state.ts';
import { type Rehearsal, type RunResult, runGroup } from '../../runner/run-group.ts';
import { loadGroup } from '../../store/group-store.ts';
import { hasMergeJournal } from '../../store/merge-journal.ts';
import { isPauseAsked } from '../../store/requests.ts';
import type { Lock, World } from '../../system/world.ts';
import type { AppContext } from '../app-context.ts';
import type { CheckGate } from '../claude-check/gate.ts';
import { readUserConfig, type UserSettings } from '../config/user-config.ts';
import { createRunHooks } from '../event-commands.ts';
import { changeGroup, waitForShortCommands } from '../group-commands.ts';
import { liveRunner, shortRunPrefix } from '../live-runner.ts';
import { briefPath, tryPath } from '../path-argument.ts';
import type { GroupReference } from '../resolve.ts';
import { readSamples } from '../watch/live-view.ts';
import { checkRehearsed, gateForGroup } from './claude-gate.ts';
import type { RunDisplay, RunOptions } from './run-options.ts';

export type RunHere =
  | RunResult
  /** The run did not start: a signal arrived, or another command paused the group. */
  | { readonly kind: 'interrupted' | 'called-off' };

export interface RunHereOptions {
  openDisplay(): Promise<RunDisplay>;
  readonly ring?: (event: GroupEvent, state: GroupState) => void;
}

/** Resolves when the group is settled or the runner left. `opened`: the check of claude, if it was done already. */
export async function runHere(
  context: AppContext,
  group: GroupReference,
  options: RunOptions,
  ways: RunHereOptions,
  opened?: CheckGate,
): Promise<Result<RunHere>> {
  const rehearsal = await rehearsalOf(context, group, options.rehearse, options.keep);
  if (!rehearsal.ok) return rehearsal;
  const ofUser = await readUserConfig(context);
  if (!ofUser.ok) return ofUser;
  if (hasMergeJournal(context.world, group.paths)) {
    // Before the run, because a running group cannot log it.
    const { finishInterruptedMerge } = await import('../delivery/merge.ts');
    const finished = await finishInterruptedMerge(context, group);
    if (!finished.ok) return finished;
  }
  const hold = await claimRun(context.world, group);
  let ran: Result<RunHere>;
  try {
    ran = await runHeld(context, group, options, ways, {
      hold,
      rehearsal: rehearsal.value,
      ofUser: ofUser.value,
      opened,
    });
  } finally {
    hold?.end();
  }
  if (!ran.ok || ran.value.kind !== 'settled' || rehearsal.value === undefined || rehearsal.value.keep) return ran;
  if (ran.value.status === 'completed') await removeRehearsed(context, group);
  else if ([...ran.value.state.sessions.values()].some(({ workspace }) => workspace !== undefined)) {
    const remove = commandText(['group', 'archive', group.groupId, '--force']);
    context.notes.line(
      `The rehearsal is not finished, so its branches and worktrees stay. Remove them with: ${remove}`,
    );
  }
  return ran;
}

/** Removes the work of a completed rehearsal, so that the real run can use the branch names. */
async function removeRehearsed(context: AppContext, group: GroupReference): Promise<void> {
  const { cleanUpSessions } = await import('../delivery/worktree-cleanup.ts');
  const removed = await changeGroup(context, group, {
    direct: (writer) => {
      const made = [...writer.state.sessions.values()].filter((one) => one.workspace && one.inherited === undefined);
      const ids = made.map(({ definition }) => definition.id);
      return cleanUpSessions(context, writer, ids, { force: true });
    },
  });
  if (!removed.ok) context.notes.line(`The worktrees of the rehearsal were not removed. ${removed.failure.message}`);
  else if (removed.value.cleaned.length > 0) {
    context.notes.line('Removed the branches and worktrees of the rehearsal; use --keep to keep them.');
  }
}

interface Held {
  readonly hold: RunClaim | null;
  readonly rehearsal: Rehearsal | undefined;
  readonly ofUser: UserSettings;
  readonly opened: CheckGate | undefined;
}

async function runHeld(
  context: AppContext,
  group: GroupReference,
  options: RunOptions,
  ways: RunHereOptions,
  { hold, rehearsal, ofUser, opened }: Held,
): Promise<Result<RunHere>> {
  const isReal = rehearsal === undefined && opened === undefined;
  const limitable = rehearsal === undefined ? ok(undefined) : await checkRehearsed(context, group, options);
  if (!limitable.ok) return limitable;
  const calledOff = hold?.calledOff;
  const gate = isReal ? await gateForGroup(context, group, options, { isTaken: hold !== null, calledOff }) : ok(opened);
  if (calledOff?.aborted === true) return ok({ kind: 'called-off' });
  if (!gate.ok) return gate;
  const claude = gate.value;
  if (claude === 'interrupted') return ok({ kind: 'interrupted' });
  const display = await ways.openDisplay();
  if (display.isScreen) claude?.hush();
  const hookOptions = { isRehearsal: options.rehearse !== undefined, ...(ways.ring ? { ring: ways.ring } : {}) };
  const hooks = createRunHooks(context, group, hookOptions, ofUser.onEvent);
  let result: RunResult;
  try {
    hold?.begin();
    result = await runGroup(context.world, {
      root: group.root,
      groupId: group.groupId,
      callerEnv: context.env,
      packageRoot: context.packageRoot,
      reporter: hooks.around(display.reporter),
      overrides: { ...ofUser.config, ...options.config },
      retryFailed: options.retryFailed,
      quotes: (state) => quotesOf(context.world, group.root, state),
      ...defined({ only: options.only, rehearsal, claude, worktrees: ofUser.worktrees, dayCapUsd: ofUser.dayUsd }),
      ...(hold === null ? {} : { taken: hold }),
      onSignal: display.onSignal,
    });
  } finally {
    await claude?.close();
    await display.close();
  }
  for (const warning of await hooks.finish(result.kind === 'left')) context.notes.line(warning);
  return ok(result);
}

/** Read only if the budget rule needs it, because it reads other groups. */
function quotesOf(world: World, root: string, state: GroupState): RunInfo['quotes'] {
  if (state.group.config.continueIf?.includes('quote') !== true) return undefined;
  return canaryWaves(state, costHistory(readSamples(world, root, state))).map(({ quoteUsd }) => quoteUsd);
}

/** Without a script, uses the script of the last rehearsal. */
export async function rehearsalOf(
  context: AppContext,
  { root, groupId }: GroupReference,
  rehearse: string | true | undefined,
  keep?: boolean,
): Promise<Result<Rehearsal | undefined>> {
  const state = rehearse === undefined ? null : loadGroup(context.world, root, groupId);
  const earlier = state?.ok ? state.value : undefined;
  const script = rehearse === true ? (earlier?.run ?? earlier?.rehearsal)?.script : undefined;
  if (script === undefined || context.world.files.info(script) !== null) {
    const made = await rehearsalFor(context, script ?? rehearse);
    // A retry must not remove what an earlier run was told to keep.
    return made.ok && made.value ? ok({ ...made.value, keep: keep ?? earlier?.run?.keep }) : made;
  }
  const next = 'Restore it, or give the path of another one to --rehearse.';
  return fail('usage', `The rehearsal script of the group is gone: ${briefPath(script)}.`, next);
}

/** The scripted API of a run; undefined for a real run. Fails if its script is faulty. */
export async function rehearsalFor(
  context: AppContext,
  rehearse: string | true | undefined,
): Promise<Result<Rehearsal | undefined>> {
  if (rehearse === undefined) return ok(undefined);
  const { createRehearsal } = await import('../rehearsal-process.ts');
  const { world, packageRoot, env } = context;
  if (rehearse === true) return createRehearsal(world, { packageRoot, env });
  const scriptFile = resolve(context.cwd, rehearse);
  const made = tryPath(() => createRehearsal(world, { packageRoot, env, scriptFile }));
  if (made.ok) return made.value;
  const next = 'Give the path of a YAML file to --rehearse, or no path at all.';
  return fail('usage', `The rehearsal script ${briefPath(scriptFile)} ${made.trouble}.`, next);
}

/** Short commands may hold the lock one after another; give up after this many. */
const startTriesMax = 20;
const lookMs = 100;

/** A run holds the lock before it checks claude, which takes seconds, so that `stop --all` finds and ends it. */
export interface RunClaim {
  readonly runId: string;
  readonly lock: Lock;
  /** Aborted when another process requests a pause of this run. */
  readonly calledOff: AbortSignal;
  /** The run handles requests from now on. */
  begin(): void;
  end(): void;
}

/** Null if the lock is not available; the run then fails with the reason. */
export async function claimRun(world: World, group: GroupReference): Promise<RunClaim | null> {
  const runId = world.random.uuid();
  const lock = await takeLock(world, group, runId);
  if (lock === null) return null;
  const calling = new AbortController();
  let cancel = (): void => {};
  const look = (): void => {
    if (isPauseAsked(world, group.paths, runId)) calling.abort();
    else cancel = world.clock.after(lookMs, look);
  };
  look();
  return {
    runId,
    lock,
    calledOff: calling.signal,
    begin: () => cancel(),
    end() {
      cancel();
      lock.release();
    },
  };
}

export async function isUnlocked(world: World, group: GroupReference): Promise<boolean> {
  const lock = await takeLock(world, group, `${shortRunPrefix}${world.random.uuid()}`);
  lock?.release();
  return lock !== null;
}

async function takeLock(world: World, group: GroupReference, runId: string): Promise<Lock | null> {
  try {
    for (let tries = 1; ; tries += 1) {
      await waitForShortCommands(world, group);
      const lock = world.locks.tryLock(group.paths.lock, { identity: world.machine.self, runId });
      if (lock !== null || tries === startTriesMax || liveRunner(world, group) !== null) return lock;
    }
  } catch {
    return null;
  }
}
