/**
 * Ends every process of an attempt. claude's Bash tools run in sessions of their own and outlive it; some wipe their
 * environment, some leave the tree. So the mark in the environment and the tree gathered beforehand are both used.
 */

import { attemptMark } from '../claude/launch/environment.ts';
import type { ProcessIdentity } from '../core/event.ts';
import { delay } from '../system/clock.ts';
import { errorCode } from '../system/system-error.ts';
import type { World } from '../system/world.ts';

const graceMs = 300;
/** Each round ends everything found; new ones can only come from a process that was born in between. */
const roundsMax = 20;

/** The worker's processes as they are now, the worker itself included when it lives. Call before signalling it. */
export function gatherProcesses(
  world: World,
  attemptId: string,
  worker: ProcessIdentity | undefined,
): ProcessIdentity[] {
  // A worker keeps its orphans, and looking at all processes takes long.
  const branches = worker && world.processes.findBranches(worker);
  return branches ? [worker, ...branches.flat()] : gatherFromAll(world, attemptId, worker);
}

/** The same for a worker that has ended, or of which the system does not tell what is below it. */
export function gatherFromAll(world: World, attemptId: string, worker: ProcessIdentity | undefined): ProcessIdentity[] {
  const found = new Map<number, ProcessIdentity>();
  const { processes } = world;
  const marked = [...processes.findMarked(attemptMark, attemptId), ...processes.findContained(attemptId)];
  // What has wiped its environment is known by its parent alone.
  for (const process of worker && world.processes.isAlive(worker) ? [worker, ...marked] : marked) {
    if (found.has(process.pid)) continue;
    found.set(process.pid, process);
    for (const below of world.processes.findDescendants(process.pid)) found.set(below.pid, below);
  }
  found.delete(world.machine.self.pid);
  return [...found.values()];
}

/**
 * Ends everything of the attempt that still lives: SIGTERM, 300 ms, SIGKILL, again until nothing is left. `known` are
 * processes gathered earlier. Resolves to the number of processes that had to be ended, or to -1 when some could not.
 */
export async function reap(world: World, attemptId: string, known: readonly ProcessIdentity[]): Promise<number> {
  const ended = new Set<number>();
  let all = known;
  for (let round = 0; round < roundsMax; round += 1) {
    const look = (): ProcessIdentity[] => livingProcesses(world, attemptId, all);
    const living = unlessRefused(look) ?? (await patiently(world, look));
    // Once their parent is gone nobody could say any more that they belong here.
    all = [...all, ...living];
    if (living.length === 0 && (await endContained(world, attemptId))) return ended.size;
    for (const process of living) {
      ended.add(process.pid);
      world.processes.signal(process, 'SIGTERM');
    }
    await waitUntilGone(world, living, graceMs);
    for (const process of unlessRefused(look) ?? (await patiently(world, look))) {
      ended.add(process.pid);
      world.processes.signal(process, 'SIGKILL');
    }
    world.processes.endContained(attemptId);
    await waitUntilGone(world, living, graceMs);
  }
  return -1;
}

function livingProcesses(world: World, attemptId: string, known: readonly ProcessIdentity[]): ProcessIdentity[] {
  const living = new Map<number, ProcessIdentity>();
  for (const process of known) {
    if (process.pid === world.machine.self.pid || !world.processes.isAlive(process)) continue;
    living.set(process.pid, process);
    for (const child of world.processes.findDescendants(process.pid)) living.set(child.pid, child);
  }
  for (const process of gatherProcesses(world, attemptId, undefined)) living.set(process.pid, process);
  living.delete(world.machine.self.pid);
  return [...living.values()];
}

/** For so long a look at processes is tried again that the system refuses, milliseconds. */
const refusedMsMax = 20_000;
const refusedLookMs = 50;

/** Throws it again unless it is the system that refused something, such as one more open file. */
export function assertRefusal(error: unknown): void {
  if (errorCode(error) === '') throw error;
}

/** Undefined when the system refuses it just now. */
function unlessRefused<T>(look: () => T): T | undefined {
  try {
    return look();
  } catch (error) {
    assertRefusal(error);
    return undefined;
  }
}

/** Looks until the system allows it: the table of open files may be full for a moment. Throws its error in the end. */
export async function patiently<T>(world: World, look: () => T): Promise<T> {
  for (let waitedMs = 0; waitedMs < refusedMsMax; waitedMs += refusedLookMs) {
    const seen = unlessRefused(look);
    if (seen !== undefined) return seen;
    await delay(world.clock, refusedLookMs);
  }
  return look();
}

const lookMs = 10;

/** True when nothing is held under the name of the attempt any more: what was ended takes a moment to be gone. */
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
    const look = (): boolean => processes.some((process) => world.processes.isAlive(process));
    if (!(unlessRefused(look) ?? (await patiently(world, look)))) return;
    await delay(world.clock, lookMs);
  }
}
