/** Finds and ends processes that a dead runner left behind, before the group is deleted. */

import { tmpVariable } from '../claude/launch/environment.ts';
import { advise } from '../core/advice.ts';
import type { ProcessIdentity } from '../core/event.ts';
import { fail } from '../core/failure.ts';
import type { SessionId } from '../core/group.ts';
import { isSessionId } from '../core/id.ts';
import { findRehearsal } from '../rehearsal/serve.ts';
import { refuseForeignWorkers } from '../runner/run-start.ts';
import { machineOf } from '../runner/stop-group.ts';
import type { GroupWriter } from '../store/group-writer.ts';
import { type GroupPaths, sessionPaths } from '../store/paths.ts';
import { waitUntil } from '../system/clock.ts';
import type { World } from '../system/world.ts';
import { gatherProcesses, reap } from '../worker/reap.ts';
import { tryPath } from './path-argument.ts';

const attemptId = /"(?:attemptId|attempt)":(?:\{"id":)?"([0-9a-f-]{36})"/;
const attemptEnd = /"type":"session_(?:completed|failed|paused)"/;
const stopPatienceMs = 5_000;
const pollMs = 25;

/** A failure if a worker may still be running on another host, where only a runner can stop it. */
export function foreignWorker(
  world: World,
  { state }: Pick<GroupWriter, 'state'>,
  only: Iterable<SessionId> = state.running,
): ReturnType<typeof refuseForeignWorkers> {
  for (const sessionId of only) {
    const host = machineOf(state, sessionId);
    if (host === null) continue;
    const situation = `A session of group ${state.group.id} is running on host ${host}`;
    const message = `${situation}, and there is no runner to stop it.`;
    return fail(
      'other-host',
      message,
      advise('Start a runner, which adopts the session, then repeat this command:', ['group', 'run', state.group.id]),
    );
  }
  return refuseForeignWorkers(state, world.machine.self, world.processes.isAlive);
}

/** Processes of a group with a damaged log, by attempt id or by session id. */
export function damagedLeftovers(world: World, paths: GroupPaths): Map<string, ProcessIdentity[]> {
  const open = new Set<string>();
  const log = tryPath(() => world.files.readText(paths.events));
  // Without a log, processes are found by their environment.
  for (const line of (log.ok ? (log.value ?? '') : '').split('\n')) {
    const id = attemptId.exec(line)?.[1];
    if (id === undefined) continue;
    if (attemptEnd.test(line)) open.delete(id);
    else open.add(id);
  }
  const leftovers = new Map<string, ProcessIdentity[]>();
  for (const id of world.files.list(paths.sessions).filter(isSessionId)) {
    const marked = world.processes.findMarked(tmpVariable, sessionPaths(paths, id).tmp);
    const unlogged = marked.filter(({ pid }) => pid !== world.machine.self.pid);
    if (unlogged.length > 0) leftovers.set(id, unlogged);
  }
  for (const id of open) leftovers.set(id, gatherProcesses(world, id));
  return leftovers;
}

/** Returns how many processes were ended, or -1 if some could not be. The caller holds the lock. */
export async function stopDamagedGroup(world: World, paths: GroupPaths): Promise<number> {
  let ended = 0;
  for (const [id, processes] of damagedLeftovers(world, paths)) {
    const more = await reap(world, id, processes);
    ended = more < 0 || ended < 0 ? -1 : ended + more;
  }
  return ended;
}

export async function stopRehearsal(world: World, paths: Pick<GroupPaths, 'folder'>): Promise<void> {
  const server = findRehearsal(world, paths.folder);
  if (server === null) return;
  world.processes.signal(server, 'SIGTERM');
  const isEnded = await waitUntil(world.clock, stopPatienceMs, pollMs, () => !world.processes.isAlive(server));
  if (!isEnded) world.processes.signal(server, 'SIGKILL');
}
