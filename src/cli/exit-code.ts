/** Exit codes: scripts rely on them. docs/running.md has the table. */
import type { Failure } from '../core/failure.ts';

export const exitCode = {
  /** Done; for `group run` and `group resume`: every session completed. */
  done: 0,
  /** The group ended failed, or the command failed. */
  failed: 1,
  /** Usage or bad input: nothing was started. */
  usage: 2,
  /** The group is paused, or not finished: `group resume` goes on. */
  paused: 3,
  /** Another live runner holds the group. */
  busy: 4,
  /** Interrupted twice by the user. */
  interrupted: 130,
} as const;

export type ExitCode = (typeof exitCode)[keyof typeof exitCode];

export function exitCodeFor(failure: Failure): ExitCode {
  switch (failure.reason) {
    case 'busy':
      return exitCode.busy;
    case 'usage':
    case 'config-invalid':
    case 'not-found':
    case 'ambiguous':
    case 'cycle':
    case 'unknown-dependency':
    case 'duplicate':
    case 'project-missing':
    case 'claude-missing':
    case 'claude-unproven':
    case 'not-logged-in':
      return exitCode.usage;
    default:
      return exitCode.failed;
  }
}

/** The code for how a group stands at the end of `group run` or `group watch`. */
export function exitCodeForStatus(status: string): ExitCode {
  if (status === 'completed' || status === 'archived') return exitCode.done;
  return status === 'failed' ? exitCode.failed : exitCode.paused;
}

export function knownExitCode(code: number): ExitCode {
  return Object.values(exitCode).find((known) => known === code) ?? exitCode.failed;
}
