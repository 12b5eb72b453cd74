/** Processes that a group can leave behind when its runner died: ended before its folder goes. */

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
import { delay } from '../system/clock.ts';
import type { World } from '../system/world.ts';
import { gatherProcesses, reap } from '../worker/reap.ts';

const attemptId = /"(?:attemptId|attempt)":(?:\{"id":)?"([0-9a-f-]{36})"/;
const attemptEnd = /"type":"session_(?:completed|failed|paused)"/;
const stopPatienceMs = 5_000;
const pollMs = 25;

/** A failure when a worker may still run on another machine, which only a runner can stop. */
export function foreignWorker(
  world: World,
  { state }: Pick<GroupWriter, 'state'>,
  only: Iterable<SessionId> = state.running,
): ReturnType<typeof refuseForeignWorkers> {
  for (const sessionId of only) {
    const host = machineOf(state, sessionId);
    if (host === null) continue;
    const begun = `A session of group ${state.group.id} works on the host ${host}`;
    const message = `${begun}, and no runner is there to stop it.`;
    return fail(
      'other-host',
      message,
      advise('Let one take it over, then say this again', ['group', 'run', state.group.id]),
    );
  }
  return refuseForeignWorkers(state, world.machine.self, world.processes.isAlive);
}

/** Empty for a log that cannot be read at all: what runs is then found by what it was started with. */
function logText({ files }: World, { events }: GroupPaths): string {
  try {
    return files.readText(events) ?? '';
  } catch {
    return '';
  }
}

/** By attempt id, where the log cannot be read as a whole; or by session id, found by the folder of the session. */
export function damagedLeftovers(world: World, paths: GroupPaths): Map<string, ProcessIdentity[]> {
  const open = new Set<string>();
  for (const line of logText(world, paths).split('\n')) {
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

/** Ends them; resolves to how many had to be ended, or to -1 when some could not. The caller holds the group's lock. */
export async function stopDamagedGroup(world: World, paths: GroupPaths): Promise<number> {
  let ended = 0;
  for (const [id, processes] of damagedLeftovers(world, paths)) {
    const more = await reap(world, id, processes);
    ended = more < 0 || ended < 0 ? -1 : ended + more;
  }
  return ended;
}

export async function stopRehearsal(world: World, paths: GroupPaths): Promise<void> {
  const server = findRehearsal(world, paths.folder);
  if (server === null) return;
  world.processes.signal(server, 'SIGTERM');
  const deadline = world.clock.now() + stopPatienceMs;
  while (world.processes.isAlive(server) && world.clock.now() < deadline) await delay(world.clock, pollMs);
  if (world.processes.isAlive(server)) world.processes.signal(server, 'SIGKILL');
}
