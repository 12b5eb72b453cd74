/** The claude that a run is to use: looked at, and tried when it is new here, before anything is started. */
import { ok, type Result } from '../core/failure.ts';
import type { SessionDefinition } from '../core/group.ts';
import { safeLine } from '../report/terminal-text.ts';
import type { ClaudeGate } from '../runner/attempt-setup.ts';
import { startEvents } from '../runner/run-start.ts';
import { sightOf } from '../runner/sight.ts';
import { loadGroup } from '../store/group-store.ts';
import { groupPaths } from '../store/paths.ts';
import { TrialGate } from '../trial/gate.ts';
import { abilitiesOf } from '../trial/remembered.ts';
import type { World } from '../world/world.ts';
import { waitForShortCommands } from './change-group.ts';
import type { Context } from './context.ts';
import { configOf } from './group-options.ts';
import { shortRunPrefix } from './live-runner.ts';
import type { GroupReference } from './resolve.ts';
import type { RunWish } from './run-options.ts';
import { onSignal } from './signals.ts';

const columnsMax = 600;

/** The gate of one run, open for the claude that was found; it goes on watching that. */
export interface OpenGate extends ClaudeGate {
  /** From now on nothing is said on standard error, which belongs to somebody else. */
  hush(): void;
  /** Ends a trial that is still under way; resolves when nothing of it is left. */
  close(): Promise<void>;
}

/**
 * For a run of a group: nothing is tried when nothing would be started, and workers that are at work are taken over
 * whatever claude is here now. Fails with `claude-unproven`.
 */
export async function gateForGroup(
  context: Context,
  group: GroupReference,
  { config, only, output, retryFailed }: Pick<RunWish, 'config' | 'only' | 'output' | 'retryFailed'>,
): Promise<Result<OpenGate | 'interrupted'>> {
  const gate = newGate(context, group.root, output === 'quiet');
  const state = loadGroup(context.world, group.root, group.groupId);
  // What is wrong with the group the run itself will say.
  if (!state.ok || !(await canBeTaken(context.world, group))) return ok(gate.open);
  const { machine } = context.world;
  const overrides = configOf(config);
  const run = { id: '', runner: machine.self };
  const sight = sightOf(context.world, groupPaths(group.root, group.groupId));
  const begins = startEvents(state.value, { run, overrides, retryFailed, sight, ...(only ? { only } : {}) });
  const isIdle = !begins.ok || begins.value.length === 0 || only?.length === 0;
  if (isIdle || state.value.running.size > 0) return ok(gate.open);
  return gate.admit({ ...state.value.group.config, ...overrides }.acceptClaude);
}

/** Whether this command could become the runner. */
async function canBeTaken(world: World, group: GroupReference): Promise<boolean> {
  try {
    await waitForShortCommands(world, group);
    const runId = `${shortRunPrefix}${world.random.uuid()}`;
    const lock = world.locks.tryLock(group.paths.lock, { identity: world.machine.self, runId });
    // Whoever takes it next is told the same as we were.
    if (lock?.wasReleased === true) lock.release();
    else lock?.abandon();
    return lock !== null;
  } catch {
    return false;
  }
}

/**
 * For a group that is to be made, whose session `first` starts first: a group that nobody could run is not to be left
 * behind. Fails with `claude-unproven`, `claude-missing` and `not-logged-in`.
 */
export async function gateForNewGroup(
  context: Context,
  root: string,
  wish: Pick<RunWish, 'config' | 'output'>,
  first: SessionDefinition | undefined,
): Promise<Result<OpenGate | 'interrupted'>> {
  const { acceptClaude } = configOf(wish.config);
  const gate = newGate(context, root, wish.output === 'quiet');
  const admitted = await gate.admit(acceptClaude);
  if (!admitted.ok || admitted.value === 'interrupted') return admitted;
  const chosen = await gate.open.choose(acceptClaude);
  if (!chosen.ok) return chosen;
  const asked = await (await import('./login-check.ts')).askLogin(context, chosen.value.program, first);
  return asked.ok ? ok({ ...gate.open, isLoggedIn: true }) : asked;
}

function newGate({ world, stderr, env, packageRoot }: Context, root: string, isQuiet: boolean) {
  let hushed = isQuiet;
  const say = (line: string): void => {
    if (!hushed) stderr.line(safeLine(line, columnsMax));
  };
  const interruption = new AbortController();
  const gate = new TrialGate(world, { root, caller: env, packageRoot, say, stop: interruption.signal });
  const open: OpenGate = {
    choose: async (accepted) => {
      const admitted = await gate.admit(accepted);
      if (!admitted.ok) return admitted;
      const { program, tried } = admitted.value;
      return ok({ program, ...(tried === null ? {} : { can: abilitiesOf(tried) }) });
    },
    hush: () => {
      hushed = true;
    },
    close: () => {
      interruption.abort();
      return gate.idle();
    },
  };
  const admit = async (accepted: string | undefined): Promise<Result<OpenGate | 'interrupted'>> => {
    const unsubscribe = onSignal(world.clock, () => interruption.abort());
    try {
      const admitted = await gate.admit(accepted);
      if (interruption.signal.aborted) return ok('interrupted');
      // That there is none the run says of each session that it wanted to start.
      if (!admitted.ok && admitted.failure.reason === 'claude-unproven') return admitted;
      return ok(open);
    } finally {
      unsubscribe();
    }
  };
  return { open, admit };
}
