/** Decides how to continue an attempt of an earlier runner, from its live processes and its transcript. */
import { interruptGraceMs } from '../claude/control.ts';
import { hasItsTask } from '../claude/conversation.ts';
import { attemptMark } from '../claude/launch/environment.ts';
import type { ProcessIdentity } from '../core/event.ts';
import type { Attempt } from '../core/session-state.ts';
import type { RunningProcess, World } from '../system/world.ts';
import { reap } from './reap.ts';

/** `signalled`: it printed after it may have received SIGTERM, so a reported success may be unfinished work. */
export type Adoption = { readonly signalled: boolean } & (
  | { readonly do: 'adopt'; readonly process: RunningProcess }
  /** It did no work and cost nothing: end its processes and start the attempt again. */
  | { readonly do: 'restart' }
  | { readonly do: 'finalizeDead' }
);

/** File timestamps may lag by one kernel tick, at most 10 ms. */
const fileClockLagMs = 10;

/** For attempts on this machine; runner/run-start.ts refuses those of others. */
export function classifyUnfinished(world: World, attempt: Attempt, transcript: string): Adoption {
  const { process } = attempt;
  const { mtimeMs = 0 } = world.files.info(transcript) ?? {};
  const hasPrinted = hasOutput(world, attempt, transcript);
  const signalled = hasPrinted && mtimeMs >= signalledAtMs(attempt) - fileClockLagMs;
  const living = process ? attached(world, attempt.id, process) : oldestMarked(world, attempt.id);
  if (living) return hasPrinted ? { do: 'adopt', process: living, signalled } : { do: 'restart', signalled };
  return process || hasPrinted ? { do: 'finalizeDead', signalled } : { do: 'restart', signalled };
}

/** The earliest time of a SIGTERM, ms since 1970. An interrupt comes first. */
function signalledAtMs({ stoppingAt, identified }: Attempt): number {
  if (stoppingAt === undefined) return Number.POSITIVE_INFINITY;
  return Date.parse(stoppingAt) + (identified ? interruptGraceMs : 0);
}

export function silenceMs({ clock, files }: World, attempt: Attempt, transcript: string): number {
  const lastOutputAtMs = Math.max(Date.parse(attempt.startedAt), files.info(transcript)?.mtimeMs ?? 0);
  return Math.max(0, clock.now() - lastOutputAtMs);
}

/** Ends an attempt that was classified `restart`. False when its worker has started meanwhile. */
export async function endUnstarted(world: World, attempt: Attempt, transcript: string): Promise<boolean> {
  await reap(world, attempt.id, attempt.process === undefined ? [] : [attempt.process]);
  return !hasOutput(world, attempt, transcript);
}

/** Only hooks print before the deciding line, and less than this. */
const bytesChecked = 1_000_000;

/** It has printed a line that follows its prompt. */
export function hasOutput({ files }: World, { offset }: Pick<Attempt, 'offset'>, transcript: string): boolean {
  const bytes = (files.info(transcript)?.size ?? 0) - offset;
  if (bytes <= 0 || bytes > bytesChecked) return bytes > 0;
  return hasItsTask(new TextDecoder().decode(files.readBytes(transcript, offset, bytes)));
}

function attached(world: World, attemptId: string, process: ProcessIdentity): RunningProcess | null {
  return process.bootId === world.machine.bootId ? world.processes.attach(process, attemptId) : null;
}

/** Tools inherit the mark, so the worker is the oldest marked process. */
function oldestMarked(world: World, attemptId: string): RunningProcess | null {
  const marked = world.processes.findMarked(attemptMark, attemptId);
  marked.sort((a, b) => Number(a.startTime) - Number(b.startTime) || a.pid - b.pid);
  const [oldest] = marked;
  return oldest ? world.processes.attach(oldest, attemptId) : null;
}
