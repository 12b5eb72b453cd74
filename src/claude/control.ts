/**
 * Lines for a worker's stdin: messages and control requests, one JSON line each (the caller adds the newline). The
 * answer to a control request repeats its id, so the id encodes the request.
 */

const interruptPrefix = 'interrupt:';
const usagePrefix = 'usage:';
const modelPrefix = 'model:';
const withdrawalPrefix = 'withdraw:';

/**
 * A message to the model. The text must not be blank (claude prints nothing for it). claude expands a slash command as
 * if it were typed. With an attempt and an `index` among that attempt's messages, it can be withdrawn by `withdrawal`
 * until claude reads it. A queued message that begins with a slash is not delivered with a tool's result but starts its
 * own turn. A path is not a command, so our own text precedes it.
 */
export function userMessage(text: string, attemptId?: string, index = 0): string {
  const isPath = /^\s*\//.test(text) && !isSlashCommand(text);
  const before = isPath ? (attemptId === undefined ? '\n' : 'The user adds:\n') : '';
  const uuid = attemptId === undefined ? {} : { uuid: messageId(attemptId, index) };
  return JSON.stringify({ type: 'user', message: { role: 'user', content: `${before}${text}` }, ...uuid });
}

/** True for `/fix-issue 12` and `/plugin:command`, which claude expands only at the very start of a message. */
export function isSlashCommand(text: string): boolean {
  return /^\/[\w.:-]+(?=\s|$)/.test(text);
}

/** Withdraws a message from claude's queue; the answer says whether it was still there, see `readWithdrawal`. */
export function withdrawal(attemptId: string, index: number): string {
  const message_uuid = messageId(attemptId, index);
  return controlRequest(`${withdrawalPrefix}${index}`, 'cancel_async_message', { message_uuid });
}

/** The result in `line` of a `withdrawal`; null for any other line. */
export function readWithdrawal(requestId: string, line: string): { index: number; withdrawn: boolean } | null {
  const index = Number(requestId.slice(withdrawalPrefix.length));
  if (!requestId.startsWith(withdrawalPrefix) || !Number.isSafeInteger(index)) return null;
  const { response } = JSON.parse(line) as { response?: { response?: { cancelled?: unknown } | null } | null };
  const withdrawn = response?.response?.cancelled;
  return typeof withdrawn === 'boolean' ? { index, withdrawn } : null;
}

/** Identical for every runner, so that an adopting runner can withdraw messages of an earlier one. */
function messageId(attemptId: string, index: number): string {
  const hex = new Bun.CryptoHasher('sha256').update(`${attemptId} ${index}`).digest('hex');
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
}

/** How long claude may take to confirm an interrupt before it gets a signal. */
export const interruptGraceMs = 5_000;

/** Stops the turn: the running tool is killed and a `result` with the cost follows. `id` is any text. */
export function interruptRequest(id: string): string {
  return controlRequest(`${interruptPrefix}${id}`, 'interrupt');
}

/** With `--resume` the totals continue, so the baseline is requested first and subtracted. */
export function openingLines(prompt: string): string[] {
  return [usageRequest('base'), userMessage(prompt)];
}

export function answersBase(requestId: string): boolean {
  return requestId === `${usagePrefix}base`;
}

export function usageRequest(id: string): string {
  return controlRequest(`${usagePrefix}${id}`, 'get_usage');
}

/** The last request before claude is ended. */
export function parkingRequest(): string {
  return usageRequest('parking');
}

export function answersParking(requestId: string): boolean {
  return requestId === `${usagePrefix}parking`;
}

/** claude uses this model from its next request on. */
export function modelRequest(model: string): string {
  return controlRequest(`${modelPrefix}${model}`, 'set_model', { model });
}

/** The model of a `modelRequest`; undefined for any other id. */
export function modelAsked(requestId: string): string | undefined {
  return requestId.startsWith(modelPrefix) ? requestId.slice(modelPrefix.length) : undefined;
}

export function answersInterrupt(requestId: string): boolean {
  return requestId.startsWith(interruptPrefix);
}

/** Refuses a request of claude to its host program. */
export function refusalLine(requestId: string): string {
  const response = { subtype: 'error', request_id: requestId, error: 'There is no one to answer this.' };
  return JSON.stringify({ type: 'control_response', response });
}

function controlRequest(id: string, subtype: string, more: object = {}): string {
  return JSON.stringify({ type: 'control_request', request_id: id, request: { subtype, ...more } });
}
