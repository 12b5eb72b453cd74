/** Ends every process of an attempt: its control group, its descendants, and processes with its mark. */
import { attemptMark } from '../claude/launch/environment.ts';
import type { ProcessIdentity } from '../core/event.ts';
import { delay } from '../system/clock.ts';
import type { World } from '../system/world.ts';

const graceMs = 300;
/** Further rounds are needed only for processes that start meanwhile. */
const roundsMax = 20;

/**
 * All live processes of the attempt, with `known` and their descendants. Without a control group the whole process
 * table is read.
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
  // A process without our environment is found by its parent or process session.
  const below = processes.isGrouped(attemptId) ? [] : processes.findDescendants([...known, ...marked]);
  const living = known.filter((process) => processes.isAlive(process));
  const found = new Map([...living, ...marked, ...below].map((process) => [process.pid, process]));
  found.delete(machine.self.pid);
  return [...found.values()];
}

/**
 * SIGTERM, 300 ms, SIGKILL, repeated until no process is left. `known`: processes found earlier. Resolves to the number
 * of ended processes, or to -1 when some survive.
 */
export async function reap(world: World, attemptId: string, known: readonly ProcessIdentity[] = []): Promise<number> {
  const ended = new Set<number>();
  let all = known;
  const look = (): ProcessIdentity[] => gatherProcesses(world, attemptId, all);
  for (let round = 0; round < roundsMax; round += 1) {
    const living = look();
    // Once their parent is gone, they are found only through this list.
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

/** True when the control group is empty. Killed processes take a moment to disappear. */
async function endContained(world: World, attemptId: string): Promise<boolean> {
  for (let waited = 0; !world.processes.endContained(attemptId); waited += lookMs) {
    if (waited >= graceMs) return false;
    await delay(world.clock, lookMs);
  }
  return true;
}

/** Resolves as soon as none of them is alive, at the latest after `maxMs`. */
async function waitUntilGone(world: World, processes: readonly ProcessIdentity[], maxMs: number): Promise<void> {
  for (let waited = 0; waited < maxMs; waited += lookMs) {
    if (!processes.some((process) => world.processes.isAlive(process))) return;
    await delay(world.clock, lookMs);
  }
}
