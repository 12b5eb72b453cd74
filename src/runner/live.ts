/** What a running attempt looks like to people, taken from its stream. */
import { type AttemptStream, usageOf } from '../claude/stream.ts';
import type { LiveSession } from '../core/progress.ts';

/** `durationMs` is the wall time of the attempt so far. */
export function usageOfWorker(stream: AttemptStream, durationMs: number): LiveSession {
  return {
    usage: usageOf(stream, durationMs),
    ...(stream.currentTool === undefined ? {} : { currentTool: stream.currentTool }),
    ...(stream.lastText === undefined ? {} : { lastText: stream.lastText }),
  };
}
