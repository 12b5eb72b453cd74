/** Finds the claude for a run, and checks a new one, before anything starts. */

import { join } from 'node:path';
import { checkSupported, findClaude, forRehearsal, versionOf } from '../../claude/launch/program.ts';
import { ok, type Result } from '../../core/failure.ts';
import type { SessionDefinition, SessionId } from '../../core/group.ts';
import { type GroupState, isRehearsal } from '../../core/state.ts';
import { startEvents } from '../../runner/run-start.ts';
import { loadGroup } from '../../store/group-store.ts';
import type { AppContext } from '../app-context.ts';
import { CheckGate } from '../claude-check/gate.ts';
import { draftState, type NewGroup } from '../create/new-group.ts';
import type { GroupReference } from '../resolve.ts';
import { onSignal } from '../signals.ts';
import { checkFirstProjects, checkGit, checkStarts, warnOfForeseen } from './run-check.ts';
import type { RunOptions } from './run-options.ts';

/** Skips the check if nothing would start. Fails with `claude-unproven` or `usage`. */
export async function gateForGroup(
  context: AppContext,
  group: GroupReference,
  options: Pick<RunOptions, 'config' | 'only' | 'isQuiet' | 'retryFailed'>,
  { isTaken, calledOff }: { readonly isTaken: boolean; readonly calledOff?: AbortSignal | undefined },
): Promise<Result<CheckGate | 'interrupted'>> {
  const { config, only, isQuiet = false } = options;
  const gate = new CheckGate(context, { root: group.root, isQuiet, stop: calledOff });
  const state = loadGroup(context.world, group.root, group.groupId);
  // The run will refuse to make a rehearsed group real.
  if (!state.ok || !isTaken || isRehearsal(state.value)) return ok(gate);
  const ids = toBeRun(context, state.value, options);
  if (ids === null || only?.length === 0) return ok(gate);
  const named = await gate.checkNamed(config.acceptClaude);
  if (!named.ok) return named;
  if (!isQuiet) await warnOfForeseen(context, group.root, state.value, ids);
  if (state.value.running.size > 0) return ok(gate);
  const ready = await checkMachine(context, state.value, ids);
  if (!ready.ok) return ready;
  const { acceptClaude } = { ...state.value.group.config, ...config };
  const admitted = await admit(context, gate, acceptClaude);
  const { files } = context.world;
  const records = ids.flatMap((id) => state.value.sessions.get(id) ?? []);
  const first = records.find(
    ({ finished, definition }) => finished === undefined && files.info(definition.projectPath),
  );
  if (!admitted.ok || admitted.value === 'interrupted' || hasFleet(context, group.root) || first === undefined)
    return admitted;
  return checkGateLogin(context, gate, acceptClaude, first.definition);
}

/** Its hosts may have a login. */
function hasFleet({ world }: AppContext, root: string): boolean {
  return world.files.info(join(root, 'fleet', 'fleet.json')) !== null;
}

/** Fails without a login, which would otherwise cost an attempt. */
async function checkGateLogin(
  context: AppContext,
  gate: CheckGate,
  acceptClaude: string | undefined,
  session: SessionDefinition | undefined,
): Promise<Result<CheckGate>> {
  const chosen = await gate.choose(acceptClaude);
  if (!chosen.ok) return chosen.failure.reason === 'claude-missing' ? ok(gate) : chosen;
  const checked = await (await import('../check/machine.ts')).probeLogin(context, chosen.value.program, session);
  return checked.ok ? ok(gate) : checked;
}

/** For a rehearsal, which needs no gate: checks worktrees and limits. */
export async function checkRehearsed(
  context: AppContext,
  group: GroupReference,
  options: Pick<RunOptions, 'config' | 'only' | 'retryFailed'>,
): Promise<Result<undefined>> {
  const state = loadGroup(context.world, group.root, group.groupId);
  const ids = state.ok ? toBeRun(context, state.value, options) : null;
  return !state.ok || ids === null ? ok(undefined) : checkRehearsal(context, state.value, ids);
}

export async function checkNewRehearsed(context: AppContext, group: NewGroup): Promise<Result<undefined>> {
  const draft = draftState(context, group);
  return draft.ok ? checkRehearsal(context, draft.value, [...draft.value.sessions.keys()]) : draft;
}

async function checkRehearsal(
  context: AppContext,
  state: GroupState,
  ids: readonly SessionId[],
): Promise<Result<undefined>> {
  const { world, env, packageRoot } = context;
  const claude = findClaude(world, env, { packageRoot, ...forRehearsal });
  if (!claude.ok) return claude;
  const version = await versionOf(world, claude.value.program, env);
  const supported = version.ok ? checkSupported(version.value) : ok(undefined);
  if (!supported.ok) return supported;
  return checkMachine(context, state, ids);
}

async function checkMachine(
  context: AppContext,
  state: GroupState,
  ids: readonly SessionId[],
): Promise<Result<undefined>> {
  const hasGit = await checkGit(context, state, ids);
  return hasGit.ok ? checkStarts(context, state, ids) : hasGit;
}

/** The sessions that the run will start; null if there are none, or it may not start. */
function toBeRun(
  { world }: AppContext,
  state: GroupState,
  { config, only, retryFailed }: Pick<RunOptions, 'config' | 'only' | 'retryFailed'>,
): SessionId[] | null {
  const run = { id: '', runner: world.machine.self };
  const begins = startEvents(state, {
    run,
    overrides: config,
    retryFailed,
    lives: world.processes.isAlive,
    hasFleet: true,
    ...(only ? { only } : {}),
  });
  if (!begins.ok || begins.value.length === 0) return null;
  const retried = begins.value.flatMap((event) => (event.type === 'group_resumed' ? event.retry : []));
  return [...state.sessions.keys()].filter((id) => {
    const status = state.sessions.get(id)?.state.status;
    if (only?.includes(id) === false || status === 'completed' || status === 'running') return false;
    return status !== 'failed' || retried.includes(id);
  });
}

/** Called before the group is created. Also fails if claude is missing or logged out, or no session could start. */
export async function gateForNewGroup(
  context: AppContext,
  root: string,
  options: Pick<RunOptions, 'config' | 'isQuiet'>,
  group: NewGroup,
): Promise<Result<CheckGate | 'interrupted'>> {
  const { acceptClaude } = options.config;
  const gate = new CheckGate(context, { root, isQuiet: options.isQuiet === true });
  const named = await gate.checkNamed(acceptClaude);
  if (!named.ok) return named;
  const draft = draftState(context, group);
  if (!draft.ok) return draft;
  const startable = await checkFirstProjects(context, root, draft.value);
  if (!startable.ok) return startable;
  const ready = await checkMachine(context, draft.value, [...draft.value.sessions.keys()]);
  if (!ready.ok) return ready;
  const admitted = await admit(context, gate, acceptClaude);
  if (!admitted.ok || admitted.value === 'interrupted') return admitted;
  const first = group.sessions.find(({ dependsOn }) => dependsOn.length === 0);
  const chosen = await gate.choose(acceptClaude);
  if (!chosen.ok) return chosen;
  const checked = hasFleet(context, root) ? ok(gate) : await checkGateLogin(context, gate, acceptClaude, first);
  if (!checked.ok || options.isQuiet === true) return checked;
  await warnOfForeseen(context, root, draft.value, [...draft.value.sessions.keys()]);
  return checked;
}

/** A missing claude is not a failure here: the run reports it for each session. */
async function admit(
  { world }: AppContext,
  gate: CheckGate,
  accepted: string | undefined,
): Promise<Result<CheckGate | 'interrupted'>> {
  const unsubscribe = onSignal(world.clock, () => gate.interrupt());
  try {
    const admitted = await gate.choose(accepted);
    if (gate.isInterrupted) return ok('interrupted');
    return !admitted.ok && admitted.failure.reason === 'claude-unproven' ? admitted : ok(gate);
  } finally {
    unsubscribe();
  }
}
