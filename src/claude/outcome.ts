/** The outcome of an attempt. Only a success that claude printed and that nothing contradicts is `completed`. */
import type { StopReason, Warning } from '../core/event.ts';
import { deniedSentence } from '../core/progress.ts';
import type { ExitStatus } from '../system/world.ts';
import { endings, stopReasons } from './endings.ts';
import {
  type AttemptVerdict,
  attributed,
  describeEnding,
  describeFailedResult,
  describeUnanswered,
  sentence,
} from './failure-text.ts';
import type { ResultMessage } from './messages.ts';
import { isUnknownModel } from './pricing.ts';
import { type AttemptStream, complaintsOf, denialCounts, isSuccess, isWorkPending, unknownModels } from './stream.ts';
import { cleanLine, clip } from './text.ts';

export interface JudgeInput {
  readonly stream: AttemptStream;
  readonly exit: ExitStatus;
  /** Present when we asked the worker to stop before its final result. */
  readonly stop?: {
    readonly reason: StopReason;
    /** A success was printed before claude confirmed our interrupt (`AttemptStream.successBeforeAnswer`). */
    readonly successBeforeAnswer: boolean;
    /** A signal was sent before that success was printed; a result printed while claude dies is not finished work. */
    readonly signalled: boolean;
  };
  /** We ended the process after its final result, so an end by our signal does not contradict the result. */
  readonly endedByUs: boolean;
  /** Whether a runner observed the exit, or a later one found the process gone. */
  readonly found: 'watched' | 'after-crash';
  /** Our SessionStart hook was configured, so its success must be in the stream. */
  readonly expectHook: boolean;
  /** The managed settings that disable our hooks. A missing hook is then only a warning. */
  readonly managedHooks?: string;
  /** The session has an `outputSchema`, so its result must be structured. */
  readonly expectStructured: boolean;
  /** The model's last message is missing in the conversation that claude kept. */
  readonly isCutOff?: boolean;
  readonly isDiskFull?: boolean;
  readonly stderrTail?: string;
}

export type Outcome = AttemptVerdict & { readonly warnings: readonly Warning[] };

export const contextLostCode = 'context-lost';

export const cutOffCode = 'conversation-cut';

/** How much of an answer is kept. transcript.jsonl has all of it. */
const resultChars = 50_000;
/** A structured result is kept completely or not at all. */
const structuredChars = 250_000;
const stderrChars = 300;

export function attemptOutcome(input: JudgeInput): Outcome {
  const verdict = judgeEnd(input);
  // After a failure, the last line of stderr is usually the reason, which the failure already reports.
  const stderr = verdict.status === 'completed' ? input.stderrTail : '';
  return { ...verdict, warnings: [...warningsOf(input), ...complaintsOf(input.stream.complaints, stderr)] };
}

function judgeEnd(input: JudgeInput): AttemptVerdict {
  const { stream, stop } = input;
  const result = stream.lastResult;
  if (stop !== undefined) {
    const finished = stop.successBeforeAnswer && !stop.signalled;
    if (finished && result !== undefined && isSuccess(result)) return judgeSuccess(input, result);
    const isOverdue = stop.reason === 'timeout' || stop.reason === 'stall';
    const unanswered = isOverdue ? describeUnanswered(stream) : null;
    return unanswered ?? { status: 'paused', reason: stop.reason, message: stopSentence(stop.reason) };
  }
  if (startedWithoutHook(input)) return withoutHook;
  if (result === undefined) return judgeSilence(input);
  const odd = describeEnding(stream, result);
  if (odd !== null) return odd;
  if (result.subtype !== 'success' || result.isError) return describeFailedResult(stream, result);
  if (result.numTurns === 0) return notSent(result);
  // A worker may have died between its first answer and the answer to its background work.
  if (input.exit.kind === 'unknown' && isWorkPending(stream)) return judgeSilence(input);
  return contradiction(input) ?? judgeSuccess(input, result);
}

/**
 * claude reports our hook before it identifies itself, so a hook that is missing by then was ignored. It is ended for
 * that, and may report the hook meanwhile.
 */
function startedWithoutHook({ stream, expectHook, managedHooks, endedByUs }: JudgeInput): boolean {
  if (!expectHook || managedHooks !== undefined || !stream.startedWithoutHook) return false;
  const isDone = stream.lastResult !== undefined && isSuccess(stream.lastResult);
  return !stream.hookSeen || (endedByUs && !isDone);
}

const withoutHook: AttemptVerdict = {
  status: 'failed',
  reason: 'config-invalid',
  message:
    'claude started without the SessionStart hook of the generated settings.json, so its hooks and rules may not ' +
    'have been in effect.',
  next:
    'Correct the settings of its template, check the work of the session, and check the installed claude with: ' +
    "doctor --claude. If your organisation manages claude's settings on a server, ask whether they disable hooks.",
};

function judgeSuccess(input: JudgeInput, result: ResultMessage): AttemptVerdict {
  const { stream, expectStructured } = input;
  if (startedWithoutHook(input)) return withoutHook;
  const denied = denialCounts(stream);
  if (denied !== undefined && stream.toolsDone === 0) {
    return {
      status: 'failed',
      reason: 'permission',
      message: `No work was done: no tool call succeeded (denied: ${clip(denied.tools.join(', '), 200)}).`,
      next: 'Choose which rules to allow.',
    };
  }
  // The last message is empty after a Stop hook objected, or when the model only thought.
  const text = clip(result.result || (stream.lastSaid ?? ''), resultChars);
  if (!expectStructured) return { status: 'completed', result: text };
  // A later message is answered without the schema; the earlier structured answer still counts.
  const structured = result.structured ?? stream.structured;
  return structured === undefined || JSON.stringify(structured).length > structuredChars
    ? unstructured(structured === undefined)
    : { status: 'completed', result: text, structured };
}

function unstructured(isAbsent: boolean): AttemptVerdict {
  const limit = `more than ${structuredChars.toLocaleString('en-US')} characters long`;
  return {
    status: 'failed',
    reason: 'no-structured-result',
    message: `The session finished, but the result for the output schema is ${isAbsent ? 'missing' : limit}.`,
    next: 'Describe the expected result in the prompt or simplify the schema, then retry the session.',
  };
}

function notSent(result: ResultMessage): AttemptVerdict {
  return {
    status: 'failed',
    reason: 'prompt-not-sent',
    message: sentence('The prompt never reached the model', attributed(result)),
    next: 'Check that the prompt is not a claude command and that no hook of the project blocks it.',
  };
}

function contradiction(input: JudgeInput): AttemptVerdict | undefined {
  const { exit, endedByUs } = input;
  const next = 'Check the end of the session log and stderr.log, then retry the session.';
  if (exit.kind === 'exited' && exit.code !== 0) {
    if (endedByUs && (exit.code === 143 || exit.code === 137)) return undefined;
    const message = `claude reported success but ended with exit code ${exit.code}${stderrPart(input)}.`;
    return { status: 'failed', reason: 'exit-nonzero', message, next };
  }
  if (exit.kind === 'signalled') {
    if (endedByUs && (exit.signal === 'SIGTERM' || exit.signal === 'SIGKILL')) return undefined;
    const message = `claude reported success but was then killed by ${exit.signal}, which this program did not send.`;
    return { status: 'failed', reason: 'signalled', message, next, transient: true };
  }
  return undefined;
}

function judgeSilence(input: JudgeInput): AttemptVerdict {
  const { exit, found } = input;
  // The last output of claude is lost, so the session has not failed.
  if (input.isDiskFull === true && exit.kind === 'exited' && signalOfCode(exit.code) === undefined) {
    return { status: 'paused', reason: 'disk', message: 'The disk is full: the last output of claude is lost.' };
  }
  if (found === 'after-crash') {
    const message = 'The worker ended without a final result while no runner was watching.';
    return { status: 'paused', reason: 'interrupted', message };
  }
  if (exit.kind === 'unknown') {
    // Only the runner that started a worker learns its exit status, so an adopting runner does not count this as a
    // failure.
    const message = 'The worker of an earlier runner ended without a final result.';
    return { status: 'paused', reason: 'interrupted', message };
  }
  const signal = exit.kind === 'signalled' ? exit.signal : signalOfCode(exit.code);
  if (exit.kind === 'signalled' || signal !== undefined) {
    return {
      status: 'failed',
      reason: 'signalled',
      message: `claude was killed by ${signal}, which this program did not send${stderrPart(input)}.`,
      next: 'If the system ran out of memory, run fewer sessions at once. Then retry the session.',
      transient: true,
    };
  }
  return {
    status: 'failed',
    reason: 'no-result',
    message: `claude ended with exit code ${exit.code} without a result${stderrPart(input)}.`,
    next: 'Check stderr.log and the end of the session log, then retry the session.',
  };
}

/** claude converts some signals to exit codes. */
function signalOfCode(code: number): string | undefined {
  return { 129: 'SIGHUP', 137: 'SIGKILL', 143: 'SIGTERM' }[code];
}

function stderrPart(input: JudgeInput): string {
  const tail = cleanLine(lastLine(input), stderrChars);
  return tail === '' ? '' : `; last output: ${tail.replace(/\.$/, '')}`;
}

function lastLine({ stderrTail = '' }: JudgeInput): string {
  return stderrTail.split('\n').at(-1) ?? '';
}

function stopSentence(reason: StopReason): string {
  switch (reason) {
    case 'user':
      return 'Paused on request.';
    case 'signal':
      return 'Paused because the runner was asked to stop.';
    case 'budget':
      return 'Paused because the budget is exhausted.';
    case 'error-threshold':
      return 'Paused because too many other sessions failed.';
    case 'deleted':
      return 'Stopped because the session or its group is being deleted.';
    case 'top-up':
      return 'Interrupted to receive more budget.';
    case 'disk':
      return 'Interrupted because the disk is nearly full. It resumes when space is available.';
    case 'timeout':
      return 'The session exceeded its timeout.';
    case 'stall':
      return 'Interrupted because it made no progress.';
    case 'waits-for-answer':
      return 'Stopped until its question is answered.';
  }
}

function warningsOfEnd({ lastResult, lastSaid }: AttemptStream): Warning[] {
  if (lastResult === undefined || !isSuccess(lastResult)) return [];
  const { terminalReason, stopReason, result = '', structured } = lastResult;
  const warnings: Warning[] = [];
  for (const [word, known] of [
    [terminalReason, endings],
    [stopReason, stopReasons],
  ] as const) {
    if (word === undefined || Object.hasOwn(known, word)) continue;
    const message = `claude ended for an unknown reason (${cleanLine(word, 60)}): check its work.`;
    warnings.push({ code: 'unknown-end', message });
  }
  if (stopReasons[stopReason ?? ''] === 'unfinished') {
    warnings.push({ code: 'unfinished-answer', message: 'The last answer of the model is incomplete.' });
  }
  if (result === '' && structured === undefined) {
    const instead = lastSaid === undefined ? 'the session has no result text' : 'its previous text is the result';
    warnings.push({ code: 'empty-result', message: `Its last answer has no text; ${instead}.` });
  }
  return warnings;
}

function warningsOf(input: JudgeInput): Warning[] {
  const { stream } = input;
  const warnings: Warning[] = [];
  const denied = denialCounts(stream);
  if (denied !== undefined) warnings.push({ code: 'denied-tools', message: deniedSentence(denied) });
  if (input.expectHook && stream.sawInit && !stream.hookOk) {
    const how = stream.hookSeen ? 'failed' : 'did not run';
    const why = stream.hookSeen || input.managedHooks === undefined ? '' : `${input.managedHooks}. `;
    const message = `${why}The SessionStart hook ${how}: the session may lack its context after a compaction.`;
    warnings.push({ code: 'hook-missing', message });
  }
  if (stream.contextLost) {
    const message = 'The state of the session was not restored after a compaction. The next attempt tells claude so.';
    warnings.push({ code: contextLostCode, message });
  }
  if (input.isCutOff === true) {
    const message =
      'claude did not save the end of the conversation: the disk was full, or it was killed. The ' +
      'next attempt tells claude so.';
    warnings.push({ code: cutOffCode, message });
  }
  warnings.push(...warningsOfEnd(stream));
  if (stream.otherModel !== undefined) {
    const { asked, answered } = stream.otherModel;
    const message = `${cleanLine(answered, 60)} answered instead of ${cleanLine(asked, 60)}, at least in part.`;
    warnings.push({ code: 'other-model', message });
  }
  const listed = [...stream.taskList.values()];
  const open = listed.filter(({ status }) => status === 'pending' || status === 'in_progress');
  // Only a session that reports success can have forgotten a task.
  if (open.length > 0 && stream.lastResult !== undefined && isSuccess(stream.lastResult)) {
    const tasks = open.length === 1 ? '1 task of its list was' : `${open.length} tasks of its list were`;
    const message = `${tasks} not completed: ${clip(open.map(({ subject }) => subject).join('; '), 300)}.`;
    warnings.push({ code: 'open-tasks', message });
  }
  if (stream.malformed > 0) {
    const lines = stream.malformed === 1 ? '1 line' : `${stream.malformed} lines`;
    warnings.push({ code: 'malformed-lines', message: `${lines} of claude’s output could not be read.` });
  }
  if (stream.unrecordedCostUsd > 0) {
    const message =
      `claude recorded $${stream.unrecordedCostUsd.toFixed(6)} more than the earlier attempts reported. It is ` +
      'counted with this one.';
    warnings.push({ code: 'estimated-cost', message });
  }
  if (stream.estimated && stream.costUsd > 0) {
    const unknown = Object.keys(stream.models).filter((model) => isUnknownModel(model, stream.prices));
    const guess = unknown.length > 0 ? ` The price of ${cleanLine(unknown.join(', '), 100)} is a guess.` : '';
    const message = `claude did not report its final cost, so it is estimated from its output.${guess}`;
    warnings.push({ code: 'estimated-cost', message });
  } else if (unknownModels(stream).length > 0) {
    const names = cleanLine(unknownModels(stream).join(', '), 100);
    const how = 'so the highest known price is used. Set its price under `prices` in config.yaml.';
    const message = `The price of ${names} is not known, ${how}`;
    warnings.push({ code: 'estimated-cost', message });
  }
  return warnings;
}
