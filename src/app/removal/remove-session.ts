/** Takes a session that is not running out of its group, with its files and its worktree. */

import { ok, type Result } from '../../core/failure.ts';
import type { GroupWriter } from '../../store/group-writer.ts';
import { sessionPaths } from '../../store/paths.ts';
import { finishMerge } from '../delivery/finish.ts';
import {
  checkReleasable,
  leftoverOf,
  type Release,
  recordCleaned,
  releaseWorktrees,
} from '../delivery/worktree-cleanup.ts';
import { liveRunner } from '../live-runner.ts';
import type { Place } from '../place.ts';
import type { LoadedSession } from '../resolve.ts';
import { submit } from '../submit.ts';

/** Fails with `illegal-transition` while its worktree holds what would be lost. */
export async function removeSession(place: Place, session: LoadedSession, release: Release): Promise<Result<void>> {
  const { sessionId, record, paths } = session;
  const releaseNow = async (known = record): Promise<Result<void>> => {
    const leftover = await leftoverOf(place, paths, sessionId, known);
    return leftover === null ? ok(undefined) : releaseWorktrees(place, paths, [leftover], release);
  };
  // The runner may start it at any moment, so its worktree is looked at before, and goes afterwards.
  if (liveRunner(place.world, session) !== null) {
    const before = await leftoverOf(place, paths, sessionId, record);
    const possible = before === null ? ok(undefined) : checkReleasable(place, [before], release);
    if (!possible.ok) return possible;
  }
  // Without one the worktree goes first: while the session is there, the command can be given again.
  const before = async (writer: GroupWriter): Promise<Result<void>> => {
    const finished = await finishMerge(place, writer);
    if (!finished.ok) return finished;
    const released = await releaseNow(writer.state.sessions.get(sessionId));
    return released.ok ? recordCleaned(writer, sessionId) : released;
  };
  const removed = await submit(place, session, { kind: 'remove-session', sessionId }, { before });
  const released = removed.ok && removed.value.by === 'runner' ? await releaseNow() : removed;
  if (!released.ok) return released;
  place.world.files.remove(sessionPaths(paths, sessionId).folder);
  return ok(undefined);
}
