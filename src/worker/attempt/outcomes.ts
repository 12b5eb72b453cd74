/** Outcomes without a stream: of attempts that could not be started or supervised. */
import type { Outcome } from '../../claude/outcome.ts';
import { adviceText, commandText } from '../../core/advice.ts';
import type { StopReason, Warning } from '../../core/event.ts';
import { errorText, type Failure, type SessionFailure, type SessionFailureReason } from '../../core/failure.ts';
import { type GroupId, roundUsd, type Usage } from '../../core/group.ts';
import { formatMoney } from '../../core/text.ts';
import { errorCode } from '../../system/system-error.ts';
import type { LimitKind } from '../../system/world.ts';
import type { AttemptExit } from '../host.ts';

const sessionReasons: ReadonlySet<string> = new Set<SessionFailureReason>([
  'claude-missing',
  'claude-unproven',
  'project-missing',
  'not-logged-in',
  'spawn-failed',
  'write-failed',
  'config-invalid',
  'other-host',
  'worktree-failed',
  'merge-conflict',
  'setup-failed',
]);

/** The attempt could not be started. Failures without a meaning for a session are reported as `internal`. */
export function failedToStart(failure: Failure): Outcome {
  return { status: 'failed', ...sessionFailure(failure), warnings: [] };
}

export function sessionFailure({ reason, message, next, nextInPlace }: Failure): SessionFailure {
  return {
    reason: sessionReasons.has(reason) ? (reason as SessionFailureReason) : 'internal',
    message,
    next: nextInPlace ?? adviceText(next),
  };
}

export function pausedBeforeStart(reason: StopReason): Outcome {
  return { status: 'paused', reason, message: 'Paused before claude was started.', warnings: [] };
}

/** Nothing was started on the chosen host, so another one may be used; null for any other problem. */
export function pausedForOtherHost({ reason, message }: Failure): Outcome | null {
  return reason === 'other-host' ? { status: 'paused', reason: 'interrupted', message, warnings: [] } : null;
}

/** Its host has the results but cannot transfer all of them; null for any other problem. */
export function cutOffBy({ reason, message }: Failure): Outcome | null {
  return reason === 'other-host' ? { status: 'paused', reason: 'host-lost', message, warnings: [] } : null;
}

/** Its host was lost, or ended it after losing its connection; null when it ended by itself. */
export function hostLossOutcome(end: AttemptExit, isDone: boolean): Outcome | null {
  if (end.kind === 'lost') {
    const message = `Nothing is heard of the host ${end.host} any more; it goes on from what had come back by then.`;
    return { status: 'paused', reason: 'host-lost', message, warnings: [] };
  }
  if (end.kind !== 'fenced' || isDone) return null;
  const message = `The host ${end.host} ended the session, which continues from its last checkpoint.`;
  return { status: 'paused', reason: 'host-lost', message, warnings: [] };
}

/** All the unused reserved money is held: the host's report may come late, or never. */
export function holdingAllReserved(usage: Usage, reservedUsd: number | undefined): Usage {
  const { heldUsd: held = 0, estimated: _, ...rest } = usage;
  const known = roundUsd(usage.costUsd - held);
  // Without a cap that amount is unknown.
  if (reservedUsd === undefined) return usage;
  const heldUsd = Math.max(0, roundUsd(reservedUsd - known));
  return { ...rest, costUsd: roundUsd(known + heldUsd), ...(heldUsd > 0 ? { heldUsd } : {}) };
}

/** An exception ended the attempt; the run continues with the other sessions. */
export function unexpectedEnd(error: unknown): Outcome {
  return { status: 'failed', ...unexpectedFailure(error), warnings: [] };
}

/** The system refused something that a healthy machine does not refuse, or this program has a bug. */
export function unexpectedFailure(error: unknown): SessionFailure<'write-failed' | 'internal'> {
  if (errorCode(error) !== '') {
    return {
      reason: 'write-failed',
      message: `The session could not be supervised: ${errorText(error)}.`,
      next: 'Check the disk and the limits of open files and processes, then retry the session.',
    };
  }
  return {
    reason: 'internal',
    message: `Internal error while the session was supervised: ${errorText(error)}.`,
    next: 'This is a defect of claude-code-agent: please report it. The session can be retried.',
  };
}

const leftoverWarning = (): Warning => ({
  code: 'leftover-processes',
  message: `Some processes of this session could not be ended. See: ${commandText(['doctor'])}`,
});

export function withHeld(outcome: Outcome, { heldUsd }: Usage, groupId: GroupId): Outcome {
  if (heldUsd === undefined) return outcome;
  if (outcome.status === 'paused' && outcome.reason === 'host-lost') {
    const about = `Up to ${formatMoney(heldUsd)} that it may have cost besides are held until that is there again`;
    const message = `${outcome.message} ${about}, or you decide. See: ${commandText(['group', 'budget', groupId])}`;
    return { ...outcome, message };
  }
  const isOdd = outcome.warnings.some(({ code }) => code === 'odd-figures');
  // It may have been interrupted as well, unless it ended by itself.
  const hasEnded = outcome.status === 'completed' || ['budget', 'claude-error'].includes(outcome.reason);
  const odd = 'claude named figures that cannot be true';
  const cut = 'While it worked the machine went down, claude was killed, or what the session had written was lost';
  const cause = !isOdd ? cut : hasEnded ? odd : `${cut}; or ${odd}`;
  const message =
    `${cause}. Up to ${formatMoney(heldUsd)} that it may have cost besides are counted until you decide. ` +
    `See: ${commandText(['group', 'budget', groupId])}`;
  return { ...outcome, warnings: [...outcome.warnings, { code: 'held-cost', message }] };
}

export function withLeftovers(outcome: Outcome): Outcome {
  return { ...outcome, warnings: [...outcome.warnings, leftoverWarning()] };
}

const limitSentences: Readonly<Record<LimitKind, string>> = {
  memory:
    'All of the session together took as much memory as --memory and what claude itself is given allow, and the ' +
    'system ended some of its processes.',
  processes: 'It had as many processes and threads as --max-processes allows, and could not start further ones.',
};

/** The same outcome with a note on the limits that were reached, which may have caused the failure. */
export function withLimitsHit(outcome: Outcome, hit: readonly LimitKind[]): Outcome {
  if (hit.length === 0) return outcome;
  const sentences = hit.map((kind) => limitSentences[kind]);
  const warnings = [...outcome.warnings, ...sentences.map((message): Warning => ({ code: 'limit-reached', message }))];
  if (outcome.status !== 'failed') return { ...outcome, warnings };
  // Its own limits would end it again.
  const { transient: _, ...ended } = outcome;
  return { ...ended, message: [outcome.message, ...sentences].join(' '), warnings };
}
