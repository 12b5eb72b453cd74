/** Classifies an unsuccessful result: its cause, whether a retry helps, and the next step for the user. */
import { defined } from '../core/defined.ts';
import type { PauseReason } from '../core/event.ts';
import type { SessionFailureReason } from '../core/failure.ts';
import { throttled } from '../core/state.ts';
import { momentText } from '../core/text.ts';
import { endingOf, stopReasons } from './endings.ts';
import { isAborted, type ResultMessage } from './messages.ts';
import { type AttemptStream, targetOf } from './stream.ts';
import { cleanLine } from './text.ts';

export type AttemptVerdict =
  | { readonly status: 'completed'; readonly result: string; readonly structured?: unknown }
  | {
      readonly status: 'failed';
      readonly reason: SessionFailureReason;
      readonly message: string;
      readonly next: string;
      /** A retry may succeed. */
      readonly transient?: true;
      /** The network or the whole service is down. */
      readonly outage?: true;
    }
  | {
      readonly status: 'paused';
      readonly reason: PauseReason;
      readonly message: string;
      /** The reset of a usage limit, ms since 1970, and its type, if claude reported them. */
      readonly resetsAtMs?: number;
      readonly limitType?: string;
      /** A limit of this model only, such as Opus. */
      readonly limitedModel?: string;
    };

const quoteChars = 300;

export function isOverCap({ subtype }: ResultMessage): boolean {
  return subtype === 'error_max_budget_usd';
}

/**
 * Checks the most specific field first: error code, API status, terminal reason, then the text. `subtype` is no help:
 * every API failure is `success` with `is_error`.
 */
export function describeFailedResult(stream: AttemptStream, result: ResultMessage): AttemptVerdict {
  const said = attributed(result);
  const error = stream.apiError ?? '';
  const status = result.apiErrorStatus;
  if (isOverCap(result)) {
    return { status: 'paused', reason: 'budget', message: 'The attempt used all its reserved budget.' };
  }
  if (status === 429 || isUsageLimit(said)) return limited(stream, said);
  if (isLoginProblem(error, said)) return notLoggedIn(status, said);
  if (error === 'billing_error' || /credit balance is too low/i.test(said)) {
    const next = 'Fix the billing of the account, or log in with another account.';
    return failed('billing', 'The account has a billing problem', said, next);
  }
  if (error === 'model_not_found' || status === 404) {
    const next = 'Choose a model that the account can use.';
    return failed('model-not-found', 'The model is unknown or not allowed', said, next);
  }
  if (result.terminalReason === 'prompt_too_long' || /^prompt is too long/i.test(said)) {
    const next = 'Rewind the conversation (--rewind) or start a new one (--fresh) with a smaller task.';
    return failed('prompt-too-long', 'The conversation no longer fits the model’s window', said, next);
  }
  if (status !== undefined || error !== '' || /^API Error/i.test(said)) {
    const verdict = notServed(status, said);
    return isTransient(status, error) ? passing(verdict, status) : verdict;
  }
  return reportedError(result, said);
}

const needsPerson: ReadonlySet<string> = new Set(['authentication_failed', 'oauth_org_not_allowed', 'billing_error']);

/** For a session that timed out while it waited for the API; otherwise null. */
export function describeUnanswered(stream: AttemptStream): AttemptVerdict | null {
  if (stream.lastRetry === undefined) return null;
  const { error, errorStatus } = stream.lastRetry;
  const status = errorStatus ?? undefined;
  const said = `requests were still being retried when the session timed out (${error})`;
  if (status === 429) return limited(stream, said);
  if (needsPerson.has(stream.apiError ?? '') || !isTransient(status, error)) return null;
  return passing(notServed(status, said), status);
}

/** Null for an ordinary end, in which the result alone decides. */
export function describeEnding(stream: AttemptStream, result: ResultMessage): AttemptVerdict | null {
  const { stopReason, subtype, isError, deferred } = result;
  const objection = cleanLine(stream.objection ?? '', quoteChars);
  if (stopReasons[stopReason ?? ''] === 'refused') {
    const next = 'Rephrase the task, or use another model.';
    return failed('refused', 'The model refuses to answer', firstSentence(attributed(result)), next);
  }
  if (stream.isEndForced && subtype === 'success' && !isError) {
    const next = 'Check what the Stop hook requires, then retry the session.';
    return failed('hook-stopped', 'A Stop hook kept claude from ending until claude gave up', objection, next);
  }
  const ending = endingOf(result);
  if (ending === 'result') return null;
  const call = deferred && cleanLine(`${deferred.tool} ${targetOf(deferred.input, undefined)}`, quoteChars);
  const said = ending.reason === 'hook-stopped' ? objection : (call ?? attributed(result));
  return failed(ending.reason, ending.what, said, ending.next);
}

/** Drops claude's advice, which is for a user at a terminal. */
function firstSentence(said: string): string {
  return said.replace(/^API Error: /, '').split(/(?<=\.) (?=[A-Z])/)[0] ?? '';
}

type Failed = Extract<AttemptVerdict, { status: 'failed' }>;

function notServed(status: number | undefined, said: string): Failed {
  const what = status === undefined ? 'The API did not serve the request' : `The API answered ${status}`;
  const next =
    status === 400
      ? 'If it happens again, rewind the conversation (--rewind) or start a new one (--fresh).'
      : 'Retry the session later.';
  return failed('api-error', what, said, next);
}

function passing(verdict: Failed, status: number | undefined): Failed {
  return { ...verdict, transient: true, ...(isOutage(status) ? { outage: true } : {}) };
}

function reportedError(result: ResultMessage, said: string): AttemptVerdict {
  if (/no conversation found/i.test(said)) {
    const next = 'Retry the session. If the conversation is still missing, start a new one with --fresh.';
    return failed('claude-error', 'claude could not find the conversation to continue', said, next);
  }
  if (isAborted(result)) {
    const next = 'Another program interrupted claude. Retry the session.';
    return failed('claude-error', 'claude was interrupted from outside', said, next);
  }
  const kind = result.subtype === 'success' ? 'an error' : cleanLine(result.subtype, 60);
  return failed('claude-error', `claude reported ${kind}`, said, 'Check the session log, then retry the session.');
}

/** Server and network problems, which may be temporary (docs/claude-contract.md). */
function isTransient(status: number | undefined, error: string): boolean {
  if (status !== undefined) return status === 408 || status === 409 || status >= 500;
  return error !== 'invalid_request' && error !== 'max_output_tokens';
}

/** No response, or an error of the whole service (502 to 599). A 500 may be caused by this conversation. */
function isOutage(status: number | undefined): boolean {
  return status === undefined || status > 500;
}

export function attributed(result: ResultMessage): string {
  const text = result.result ?? '';
  return cleanLine(text === '' ? result.errors.slice(0, 10).join('; ') : text, quoteChars);
}

/** Any 429 after claude's retries counts as a limit, even without a reset time. */
function limited(stream: AttemptStream, said: string): AttemptVerdict {
  const limit = stream.rateLimit;
  if (limit?.status !== 'rejected' && !isUsageLimit(said)) {
    const message = sentence('The server is throttling requests. This is not a usage limit', said);
    return { status: 'paused', reason: 'limit', message, limitType: throttled };
  }
  const resetsAtMs = limit?.status === 'rejected' ? limit.resetsAtMs : undefined;
  const until = resetsAtMs === undefined ? undefined : momentText(resetsAtMs);
  const rest = until === undefined ? '' : ` It resets at ${until}.`;
  const limitedModel = modelOfLimit(limit?.limitType);
  const other = limitedModel === undefined ? '' : ' Use another model, or wait.';
  const what = limitedModel === undefined ? 'A usage or rate limit' : `The usage limit of ${limitedModel}`;
  return {
    status: 'paused',
    reason: 'limit',
    message: `${sentence(`${what} was reached`, said)}${rest}${other}`,
    ...defined({ resetsAtMs, limitType: limit?.limitType, limitedModel }),
  };
}

/** Opus for `seven_day_opus`. */
function modelOfLimit(limitType = ''): string | undefined {
  const [, model] = /_(opus|sonnet|haiku|fable|mythos)$/.exec(limitType) ?? [];
  return model === undefined ? undefined : `${model[0]?.toUpperCase()}${model.slice(1)}`;
}

function isUsageLimit(said: string): boolean {
  return /^you['’]ve hit your .*limit|usage limit reached/i.test(said);
}

function isLoginProblem(error: string, said: string): boolean {
  if (error === 'authentication_failed' || error === 'oauth_org_not_allowed') return true;
  return /^not logged in|please run \/login|^invalid api key|^failed to authenticate/i.test(said);
}

/** A gateway or proxy may refuse a key temporarily, for example while it rotates keys. */
function notLoggedIn(status: number | undefined, said: string): AttemptVerdict {
  const login = 'Log in with `claude auth login`, or set a valid ANTHROPIC_API_KEY.';
  if (status === undefined) return failed('not-logged-in', 'claude has no valid login', said, login);
  if (status !== 403) return passing(failed('not-logged-in', 'claude has no valid login', said, login), status);
  const next = `Check whether a proxy or a firewall blocks the API. If none does: ${login}`;
  return passing(failed('not-logged-in', 'The API refused access, or a proxy blocked it', said, next), status);
}

function failed(reason: SessionFailureReason, what: string, said: string, next: string): Failed {
  return { status: 'failed', reason, message: sentence(what, said), next };
}

/** A full sentence, with claude's text after a colon. */
export function sentence(what: string, said: string): string {
  if (said === '') return `${what}.`;
  return /[.!?…]$/.test(said) ? `${what}: ${said}` : `${what}: ${said}.`;
}
