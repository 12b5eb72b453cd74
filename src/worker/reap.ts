/** Ends every process of an attempt: those of its control group, those below it, and those with its mark. */
import { attemptMark } from '../claude/launch/environment.ts';
import type { ProcessIdentity } from '../core/event.ts';
import { delay } from '../system/clock.ts';
import type { World } from '../system/world.ts';

const graceMs = 300;
/** Each round ends everything it finds; more can only come from a process that was started meanwhile. */
const roundsMax = 20;

/**
 * All living processes of the attempt, with `known` and everything below these. Nothing leaves a control group; without
 * one the whole process table is read.
 */
export function gatherProcesses(
  { processes, machine }: World,
  attemptId: string,
  known: readonly ProcessIdentity[] = [],
): ProcessIdentity[] {
  const contained = processes.findContained(attemptId);
  const marked = processes.isGrouped(attemptId)
    ? contained
    : [...processes.findMarked(attemptMark, attemptId), ...contained];
  // What has wiped its environment is known by its parent or its session alone, also when the parent is gone.
  const below = processes.isGrouped(attemptId) ? [] : processes.findDescendants([...known, ...marked]);
  const living = known.filter((process) => processes.isAlive(process));
  const found = new Map([...living, ...marked, ...below].map((process) => [process.pid, process]));
  found.delete(machine.self.pid);
  return [...found.values()];
}

/**
 * Ends everything of the attempt that still lives: SIGTERM, 300 ms, SIGKILL, again until nothing is left. `known` are
 * processes gathered earlier. Resolves to the number of processes that had to be ended, or to -1 when some could not.
 */
export async function reap(world: World, attemptId: string, known: readonly ProcessIdentity[] = []): Promise<number> {
  const ended = new Set<number>();
  let all = known;
  const look = (): ProcessIdentity[] => gatherProcesses(world, attemptId, all);
  for (let round = 0; round < roundsMax; round += 1) {
    const living = look();
    // Once their parent is gone, nothing else leads to them.
    all = [...all, ...living];
    if (living.length === 0 && (await endContained(world, attemptId))) return ended.size;
    for (const process of living) {
      ended.add(process.pid);
      world.processes.signal(process, 'SIGTERM');
    }
    await waitUntilGone(world, living, graceMs);
    for (const process of look()) {
      ended.add(process.pid);
      world.processes.signal(process, 'SIGKILL');
    }
    world.processes.endContained(attemptId);
    await waitUntilGone(world, living, graceMs);
  }
  return -1;
}

const lookMs = 10;

/** True when nothing is held under the attempt's id any more: what was killed takes a moment to be gone. */
async function endContained(world: World, attemptId: string): Promise<boolean> {
  for (let waited = 0; !world.processes.endContained(attemptId); waited += lookMs) {
    if (waited >= graceMs) return false;
    await delay(world.clock, lookMs);
  }
  return true;
}

/** Resolves as soon as none of them lives, at the latest after `maxMs`. */
async function waitUntilGone(world: World, processes: readonly ProcessIdentity[], maxMs: number): Promise<void> {
  for (let waited = 0; waited < maxMs; waited += lookMs) {
    if (!processes.some((process) => world.processes.isAlive(process))) return;
    await delay(world.clock, lookMs);
  }
}
