/** What a running attempt looks like to people, taken from its worker. */
import { deniedOf } from '../../claude/denials.ts';
import { usageOf } from '../../claude/stream.ts';
import { defined } from '../../core/defined.ts';
import { noUsage } from '../../core/group.ts';
import type { SlotWait } from '../../core/plan/command-slot.ts';
import type { LiveSession } from '../../core/progress.ts';
import type { Worker } from './worker.ts';

/** The same with what a command of the session waits for; null = nothing is to be seen of it now. */
export function liveNow(
  active: { readonly worker: Worker; readonly startedAtMs: number } | undefined,
  slot: SlotWait | null,
  nowMs: number,
): LiveSession | null {
  if (active === undefined && slot === null) return null;
  // While its work is accepted, what it has used is counted already.
  const now =
    active === undefined ? { usage: noUsage } : liveSession(active.worker, Math.max(0, nowMs - active.startedAtMs));
  return { ...now, ...(slot === null ? {} : { slot }) };
}

/** `durationMs` is the wall time of the attempt so far. Tool calls are handed out once. */
export function liveSession(worker: Worker, durationMs: number): LiveSession {
  const { stream } = worker;
  const recentTools = worker.notes.takeRecentTools();
  const denied = deniedOf(stream);
  return {
    usage: usageOf(stream, durationMs),
    ...defined({ currentTool: stream.currentTool }),
    ...(recentTools.length === 0 ? {} : { recentTools }),
    ...defined({ lastText: stream.lastText, retry: stream.lastRetry, denied }),
  };
}
