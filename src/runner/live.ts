/** What a running attempt looks like to people, taken from its worker. */
import { deniedOf } from '../claude/denials.ts';
import { usageOf } from '../claude/stream.ts';
import type { LiveSession } from '../core/progress.ts';
import type { Worker } from './worker.ts';

/** `durationMs` is the wall time of the attempt so far. Tool calls are handed out once. */
export function liveSession(worker: Worker, durationMs: number): LiveSession {
  const { stream } = worker;
  const recentTools = worker.notes.takeRecentTools();
  const denied = deniedOf(stream);
  return {
    usage: usageOf(stream, durationMs),
    ...(stream.currentTool === undefined ? {} : { currentTool: stream.currentTool }),
    ...(recentTools.length === 0 ? {} : { recentTools }),
    ...(stream.lastText === undefined ? {} : { lastText: stream.lastText }),
    ...(stream.lastRetry === undefined ? {} : { retry: stream.lastRetry }),
    ...(denied === undefined ? {} : { denied }),
  };
}
