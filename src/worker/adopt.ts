/** Classifies an attempt left by an earlier runner by live processes, transcript bytes and the mark. */
import { interruptGraceMs } from '../claude/control.ts';
import { hasItsTask } from '../claude/conversation.ts';
import { attemptMark } from '../claude/launch/environment.ts';
import type { ProcessIdentity } from '../core/event.ts';
import type { Attempt } from '../core/session-state.ts';
import type { RunningProcess, World } from '../system/world.ts';
import { reap } from './reap.ts';

type Way =
  | { readonly do: 'adopt'; readonly process: RunningProcess }
  /**
   * It did not receive its prompt, or printed nothing, so it cost nothing: end its processes and start the attempt
   * again.
   */
  | { readonly do: 'restart' }
  | { readonly do: 'finalizeDead' };

export type Adoption = Way & {
  /** It printed after an earlier runner may have asked it to end, so a success may be unfinished work. */
  readonly signalled: boolean;
};

/** A file system's clock may lag by one kernel tick, ten milliseconds at most. */
const fileClockLagMs = 10;

/** Classifies one unfinished attempt of this machine; runner/run-start.ts refuses those of others. */
export function judgeUnfinished(world: World, attempt: Attempt, transcript: string): Adoption {
  const { process } = attempt;
  const { mtimeMs = 0 } = world.files.info(transcript) ?? {};
  const hasSpoken = hasOutput(world, attempt, transcript);
  const signalled = hasSpoken && mtimeMs >= signalledAtMs(attempt) - fileClockLagMs;
  const living = process ? attached(world, attempt.id, process) : oldestMarked(world, attempt.id);
  if (living) return hasSpoken ? { do: 'adopt', process: living, signalled } : { do: 'restart', signalled };
  return process || hasSpoken ? { do: 'finalizeDead', signalled } : { do: 'restart', signalled };
}

/** The earliest time at which it can have received SIGTERM, milliseconds since the epoch; an interrupt comes first. */
function signalledAtMs({ stoppingAt, identified }: Attempt): number {
  if (stoppingAt === undefined) return Number.POSITIVE_INFINITY;
  return Date.parse(stoppingAt) + (identified ? interruptGraceMs : 0);
}

/** Milliseconds since the live worker of an attempt last wrote. */
export function silenceMs({ clock, files }: World, attempt: Attempt, transcript: string): number {
  const saidAtMs = Math.max(Date.parse(attempt.startedAt), files.info(transcript)?.mtimeMs ?? 0);
  return Math.max(0, clock.now() - saidAtMs);
}

/** Ends an attempt that was classified `restart`. False when its worker printed meanwhile, so that it had started. */
export async function endUnstarted(world: World, attempt: Attempt, transcript: string): Promise<boolean> {
  await reap(world, attempt.id, attempt.process === undefined ? [] : [attempt.process]);
  return !hasOutput(world, attempt, transcript);
}

/** The deciding line is near the start: hooks print no more than this. */
const looksAtBytes = 1_000_000;

/** It has printed something that it prints only after it received its prompt. */
export function hasOutput({ files }: World, { offset }: Pick<Attempt, 'offset'>, transcript: string): boolean {
  if ((files.info(transcript)?.size ?? 0) <= offset) return false;
  const file = files.openRead(transcript);
  if (file === null) return false;
  try {
    const parts: Uint8Array[] = [];
    for (let at = offset; at < offset + looksAtBytes; ) {
      const part = file.read(at, looksAtBytes);
      if (part.length === 0) return hasItsTask(Buffer.concat(parts).toString());
      parts.push(part);
      at += part.length;
    }
    return true;
  } finally {
    file.close();
  }
}

function attached(world: World, attemptId: string, process: ProcessIdentity): RunningProcess | null {
  return process.bootId === world.machine.bootId ? world.processes.attach(process, attemptId) : null;
}

/** Tools inherit the mark, so the worker itself is the marked process that started first. */
function oldestMarked(world: World, attemptId: string): RunningProcess | null {
  const marked = world.processes.findMarked(attemptMark, attemptId);
  marked.sort((a, b) => Number(a.startTime) - Number(b.startTime) || a.pid - b.pid);
  const [oldest] = marked;
  return oldest ? world.processes.attach(oldest, attemptId) : null;
}
