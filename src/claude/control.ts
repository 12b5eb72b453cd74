/**
 * What is written into a worker's stdin: messages and control requests, one JSON line each (the caller adds the line
 * end). The answer to a control request repeats its id, so the id says what was asked.
 */

const interruptPrefix = 'interrupt:';
const usagePrefix = 'usage:';
const baseId = `${usagePrefix}base`;
const modelPrefix = 'model:';
const withdrawalPrefix = 'withdraw:';

/**
 * A message to the model. The text must not be blank (claude prints nothing for it); the caller sees to that.
 * claude expands a slash command, as it does when a person types it. With an attempt and its `index` among what is said
 * to that attempt, the message can be taken back by `withdrawal` as long as claude has not read it. What waits in
 * claude's queue and begins with a slash is not handed over with a tool's result but begins a turn of its own. A path
 * is no command, so words of ours come before it.
 */
export function userMessage(text: string, attemptId?: string, index = 0): string {
  const isPath = /^\s*\//.test(text) && !isSlashCommand(text);
  const before = isPath ? (attemptId === undefined ? '\n' : 'The user adds:\n') : '';
  const uuid = attemptId === undefined ? {} : { uuid: messageId(attemptId, index) };
  return JSON.stringify({ type: 'user', message: { role: 'user', content: `${before}${text}` }, ...uuid });
}

/** True for `/fix-issue 12` and `/plugin:command`, which claude expands only at the very beginning of a message. */
export function isSlashCommand(text: string): boolean {
  return /^\/[\w.:-]+(?=\s|$)/.test(text);
}

/** Takes a message back from claude's queue; its answer tells whether it was still there, see `readWithdrawal`. */
export function withdrawal(attemptId: string, index: number): string {
  const message_uuid = messageId(attemptId, index);
  return controlRequest(`${withdrawalPrefix}${index}`, 'cancel_async_message', { message_uuid });
}

/** What the answer to a `withdrawal` in `line` tells; null when it answers something else or says nothing. */
export function readWithdrawal(requestId: string, line: string): { index: number; withdrawn: boolean } | null {
  const index = Number(requestId.slice(withdrawalPrefix.length));
  if (!requestId.startsWith(withdrawalPrefix) || !Number.isSafeInteger(index)) return null;
  const { response } = JSON.parse(line) as { response?: { response?: { cancelled?: unknown } | null } | null };
  const withdrawn = response?.response?.cancelled;
  return typeof withdrawn === 'boolean' ? { index, withdrawn } : null;
}

/** The same for every runner, so that one that takes a worker over can take back what an earlier one said. */
function messageId(attemptId: string, index: number): string {
  const hex = new Bun.CryptoHasher('sha256').update(`${attemptId} ${index}`).digest('hex');
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
}

/** How long claude may take to confirm an interrupt before it is signalled. */
export const interruptGraceMs = 5_000;

/** Stops the turn: the running tool is killed and a `result` with the cost follows. `id` is any text. */
export function interruptRequest(id: string): string {
  return controlRequest(`${interruptPrefix}${id}`, 'interrupt');
}

/** Sent before the first message: with `--resume` the totals go on, so what they begin with is taken off. */
export function baseRequest(): string {
  return controlRequest(baseId, 'get_usage');
}

export function openingLines(prompt: string): string[] {
  return [baseRequest(), userMessage(prompt)];
}

export function answersBase(requestId: string): boolean {
  return requestId === baseId;
}

export function usageRequest(id: string): string {
  return controlRequest(`${usagePrefix}${id}`, 'get_usage');
}

/** The last question before claude is ended. */
export function parkingRequest(): string {
  return usageRequest('parking');
}

export function answersParking(requestId: string): boolean {
  return requestId === `${usagePrefix}parking`;
}

/** From its next request on claude uses this model. */
export function modelRequest(model: string): string {
  return controlRequest(`${modelPrefix}${model}`, 'set_model', { model });
}

/** The model that claude was asked to use; undefined when the id says another thing. */
export function modelAsked(requestId: string): string | undefined {
  return requestId.startsWith(modelPrefix) ? requestId.slice(modelPrefix.length) : undefined;
}

export function answersInterrupt(requestId: string): boolean {
  return requestId.startsWith(interruptPrefix);
}

/** The answer to what claude asks of the program that started it. */
export function refusalLine(requestId: string): string {
  const response = { subtype: 'error', request_id: requestId, error: 'There is nobody to answer this.' };
  return JSON.stringify({ type: 'control_response', response });
}

function controlRequest(id: string, subtype: string, more: object = {}): string {
  return JSON.stringify({ type: 'control_request', request_id: id, request: { subtype, ...more } });
}
