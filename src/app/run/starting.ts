/**
 * A run holds its group from before the first look at claude, which takes seconds when it is new here: whoever stops
 * everything has to see the run that is about to begin, and is heard by it.
 */
import { giveBack } from '../../store/group-writer.ts';
import { isPauseAsked } from '../../store/requests.ts';
import type { Lock, World } from '../../system/world.ts';
import { waitForShortCommands } from '../change-group.ts';
import { liveRunner, shortRunPrefix } from '../live-runner.ts';
import type { GroupReference } from '../resolve.ts';

/** One short command can follow the other; more often than this is no accident. */
const takeTriesMax = 20;
const lookMs = 100;

/** A group that is held for a run which has not begun. */
export interface Hold {
  readonly runId: string;
  readonly lock: Lock;
  /** Aborted as soon as somebody asks this run for a pause. */
  readonly calledOff: AbortSignal;
  /** From now on the run itself answers what it is asked. */
  begin(): void;
  /** Lets go of the group, if the run has not done so. */
  end(): void;
}

/** Null when the group cannot be taken; why that is says the run that tries it next. */
export async function holdGroup(world: World, group: GroupReference): Promise<Hold | null> {
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
      giveBack(lock);
    },
  };
}

/** Whether this command could become the runner. */
export async function canBeTaken(world: World, group: GroupReference): Promise<boolean> {
  const lock = await takeLock(world, group, `${shortRunPrefix}${world.random.uuid()}`);
  if (lock !== null) giveBack(lock);
  return lock !== null;
}

async function takeLock(world: World, group: GroupReference, runId: string): Promise<Lock | null> {
  try {
    for (let tries = 1; ; tries += 1) {
      await waitForShortCommands(world, group);
      const lock = world.locks.tryLock(group.paths.lock, { identity: world.machine.self, runId });
      if (lock !== null || tries === takeTriesMax || liveRunner(world, group) !== null) return lock;
    }
  } catch {
    return null;
  }
}
