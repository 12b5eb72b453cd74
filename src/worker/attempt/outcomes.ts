/** Outcomes that are not read from the stream: failed starts, lost hosts, held cost, reached limits. */
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
  return { status: 'paused', reason, message: 'Paused before claude started.', warnings: [] };
}

/** The chosen host did not start it, so another one may be used; null for any other problem. */
export function pausedForOtherHost({ reason, message }: Failure): Outcome | null {
  return reason === 'other-host' ? { status: 'paused', reason: 'interrupted', message, warnings: [] } : null;
}

/** Its host cannot transfer all results; null for any other problem. */
export function cutOffBy({ reason, message }: Failure): Outcome | null {
  return reason === 'other-host' ? { status: 'paused', reason: 'host-lost', message, warnings: [] } : null;
}

/** Its host was lost, or ended it after a lost connection; null when it ended by itself. */
export function hostLossOutcome(end: AttemptExit, isDone: boolean): Outcome | null {
  if (end.kind === 'lost') {
    const message = `The connection to host ${end.host} was lost. The session continues from its last checkpoint.`;
    return { status: 'paused', reason: 'host-lost', message, warnings: [] };
  }
  if (end.kind !== 'fenced' || isDone) return null;
  const message = `The host ${end.host} ended the session, which continues from its last checkpoint.`;
  return { status: 'paused', reason: 'host-lost', message, warnings: [] };
}

/** Holds all unused reserved money: the host's report may come late or never. */
export function holdingAllReserved(usage: Usage, reservedUsd: number | undefined): Usage {
  const { heldUsd: held = 0, estimated: _, ...rest } = usage;
  const known = roundUsd(usage.costUsd - held);
  // Without a cap nothing is reserved.
  if (reservedUsd === undefined) return usage;
  const heldUsd = Math.max(0, roundUsd(reservedUsd - known));
  return { ...rest, costUsd: roundUsd(known + heldUsd), ...(heldUsd > 0 ? { heldUsd } : {}) };
}

export function unexpectedEnd(error: unknown): Outcome {
  return { status: 'failed', ...unexpectedFailure(error), warnings: [] };
}

/** An error of the system, or a bug of this program. */
export function unexpectedFailure(error: unknown): SessionFailure<'write-failed' | 'internal'> {
  if (errorCode(error) !== '') {
    return {
      reason: 'write-failed',
      message: `The session could not be supervised: ${errorText(error)}.`,
      next: 'Check the disk and the limits for open files and processes, then retry the session.',
    };
  }
  return {
    reason: 'internal',
    message: `Internal error while the session was supervised: ${errorText(error)}.`,
    next: 'This is a bug in claude-code-agent: please report it. The session can be retried.',
  };
}

const leftoverWarning = (): Warning => ({
  code: 'leftover-processes',
  message: `Some processes of this session could not be stopped. See: ${commandText(['doctor'])}`,
});

export function withHeld(outcome: Outcome, { heldUsd }: Usage, groupId: GroupId): Outcome {
  if (heldUsd === undefined) return outcome;
  if (outcome.status === 'paused' && outcome.reason === 'host-lost') {
    const about = `Up to ${formatMoney(heldUsd)} of possible further cost is held until the host reports`;
    const message = `${outcome.message} ${about}, or you decide. See: ${commandText(['group', 'budget', groupId])}`;
    return { ...outcome, message };
  }
  const message =
    'The machine crashed, claude was killed, or output of the session was lost. ' +
    `Up to ${formatMoney(heldUsd)} of possible further cost is held until you decide. ` +
    `See: ${commandText(['group', 'budget', groupId])}`;
  return { ...outcome, warnings: [...outcome.warnings, { code: 'held-cost', message }] };
}

export function withLeftovers(outcome: Outcome): Outcome {
  return { ...outcome, warnings: [...outcome.warnings, leftoverWarning()] };
}

const limitSentences: Readonly<Record<LimitKind, string>> = {
  memory:
    'The session reached its memory limit (--memory plus an allowance for claude), and the ' +
    'system ended some of its processes.',
  processes: 'The session reached --max-processes and could not start further processes or threads.',
};

/** Adds the reached limits, which may have caused the failure. */
export function withLimitsHit(outcome: Outcome, hit: readonly LimitKind[]): Outcome {
  if (hit.length === 0) return outcome;
  const sentences = hit.map((kind) => limitSentences[kind]);
  const warnings = [...outcome.warnings, ...sentences.map((message): Warning => ({ code: 'limit-reached', message }))];
  if (outcome.status !== 'failed') return { ...outcome, warnings };
  // A retry would reach the same limits.
  const { transient: _, ...ended } = outcome;
  return { ...ended, message: [outcome.message, ...sentences].join(' '), warnings };
}
