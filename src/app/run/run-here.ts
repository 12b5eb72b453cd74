/** This process becomes the runner of a group until it is settled: everything that is looked at before, and the run. */
import { resolve } from 'node:path';
import { commandText } from '../../core/advice.ts';
import { defined } from '../../core/defined.ts';
import type { GroupEvent, RunInfo } from '../../core/event.ts';
import { fail, ok, type Result } from '../../core/failure.ts';
import { costHistory } from '../../core/plan/forecast.ts';
import { canaryWaves } from '../../core/plan/preview.ts';
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
  /** Before the run began: by a signal, or because a command paused the group. */
  | { readonly kind: 'interrupted' | 'called-off' };

export interface RunHereOptions {
  openDisplay(): Promise<RunDisplay>;
  /** While the group runs the log could not be told of a merge that was cut off. */
  finishMerge(): Promise<Result<unknown>>;
  readonly ring?: (event: GroupEvent, state: GroupState) => void;
}

/** Resolves when the group is settled or the runner left. `opened`: a gate that was passed already. */
export async function runHere(
  context: AppContext,
  group: GroupReference,
  options: RunOptions,
  ways: RunHereOptions,
  opened?: CheckGate,
): Promise<Result<RunHere>> {
  const rehearsal = await rehearsalOf(context, group, options.rehearse);
  if (!rehearsal.ok) return rehearsal;
  const ofUser = await readUserConfig(context);
  if (!ofUser.ok) return ofUser;
  if (hasMergeJournal(context.world, group.paths)) {
    const finished = await ways.finishMerge();
    if (!finished.ok) return finished;
  }
  const hold = await claimRun(context.world, group);
  let ran: Result<RunHere>;
  try {
    ran = await runHeld(context, group, options, ways, {
      hold,
      rehearsal: rehearsal.value && { ...rehearsal.value, keep: options.keep },
      ofUser: ofUser.value,
      opened,
    });
  } finally {
    hold?.end();
  }
  if (!ran.ok || ran.value.kind !== 'settled' || rehearsal.value === undefined || options.keep === true) return ran;
  if (ran.value.status === 'completed') await removeRehearsed(context, group);
  else if ([...ran.value.state.sessions.values()].some(({ workspace }) => workspace !== undefined)) {
    const remove = commandText(['group', 'archive', group.groupId, '--force']);
    context.notes.line(`The rehearsal keeps its branches and worktrees to go on with. Remove them with: ${remove}`);
  }
  return ran;
}

/** Its work is made up: the branches of the real run get the names, and the disk the room. */
async function removeRehearsed(context: AppContext, group: GroupReference): Promise<void> {
  const { cleanUpSessions } = await import('../delivery/worktree-cleanup.ts');
  const removed = await changeGroup(context, group, {
    direct: (writer) => {
      const made = [...writer.state.sessions.values()].filter((one) => one.workspace && one.inherited === undefined);
      const ids = made.map(({ definition }) => definition.id);
      return cleanUpSessions(context, writer, ids, { force: true });
    },
  });
  if (!removed.ok) context.notes.line(`The rehearsal left its worktrees. ${removed.failure.message}`);
  else if (removed.value.cleaned.length > 0) {
    context.notes.line('The branches and worktrees of the rehearsal are removed; --keep keeps them.');
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

/** Only where the rule asks for it: other groups are read for this. */
function quotesOf(world: World, root: string, state: GroupState): RunInfo['quotes'] {
  if (state.group.config.continueIf?.includes('quote') !== true) return undefined;
  return canaryWaves(state, costHistory(readSamples(world, root, state))).map(({ quoteUsd }) => quoteUsd);
}

/** Without a script a group goes on with the one it was rehearsed with last. */
export async function rehearsalOf(
  context: AppContext,
  { root, groupId }: GroupReference,
  rehearse: string | true | undefined,
): Promise<Result<Rehearsal | undefined>> {
  const state = rehearse === true ? loadGroup(context.world, root, groupId) : null;
  const script = state?.ok ? (state.value.run ?? state.value.rehearsal)?.script : undefined;
  if (script === undefined || context.world.files.info(script) !== null) {
    return rehearsalFor(context, script ?? rehearse);
  }
  const next = 'Put it back, or give the path of another one to --rehearse.';
  return fail('usage', `The script with which the group was rehearsed, ${briefPath(script)}, is gone.`, next);
}

/** The scripted API a run is to talk to; undefined for the real one. Fails when its script is not usable. */
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

// A run locks its group before it checks claude, which takes seconds for a new version, so that `stop --all` finds and
// ends a run that is about to start.

/** One short command can follow the other; more often than this is no accident. */
const startTriesMax = 20;
const lookMs = 100;

export interface RunClaim {
  readonly runId: string;
  readonly lock: Lock;
  /** Aborted as soon as another process requests a pause of this run. */
  readonly calledOff: AbortSignal;
  /** From now on the run itself answers what it is asked. */
  begin(): void;
  end(): void;
}

/** Null when the group cannot be taken; why that is says the run that tries it next. */
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
