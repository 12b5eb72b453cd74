/**
 * What running attempts have used so far, from what their workers printed: the same figures as a runner's, by model,
 * and there when no runner is alive.
 */
import { parseLine } from '../claude/messages.ts';
import { type AttemptStream, emptyStream, foldMessage, usageOf } from '../claude/stream.ts';
import type { SessionId, Usage } from '../core/group.ts';
import type { GroupState } from '../core/state.ts';
import { LineSplitter } from '../runner/line-splitter.ts';
import { type GroupPaths, sessionPaths } from '../store/paths.ts';
import type { World } from '../world/world.ts';

const chunkBytes = 1024 * 1024;

/** One entry for each running session. */
export function attemptUsages(world: World, paths: GroupPaths, state: GroupState): Map<SessionId, Usage> {
  const usages = new Map<SessionId, Usage>();
  for (const id of state.running) {
    const session = state.sessions.get(id)?.state;
    if (session?.status !== 'running') continue;
    const durationMs = Math.max(0, world.clock.now() - Date.parse(session.attempt.startedAt));
    const stream = emptyStream(state.group.config.prices);
    readInto(stream, world, sessionPaths(paths, id).transcript, session.attempt.offset);
    usages.set(id, usageOf(stream, durationMs));
  }
  return usages;
}

/** Takes in the lines after byte `from` of a transcript. */
function readInto(stream: AttemptStream, world: World, transcript: string, from: number): void {
  const splitter = new LineSplitter();
  for (let offset = from; ; ) {
    const chunk = world.files.readBytes(transcript, offset, chunkBytes);
    if (chunk.length === 0) return;
    offset += chunk.length;
    for (const line of splitter.push(chunk)) foldMessage(stream, parseLine(line));
  }
}
